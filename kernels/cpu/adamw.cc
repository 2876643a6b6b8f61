// One pass over the range updates the moments, the parameters and their rounded copy, and writes a
// flag for each value of the copy whose bits changed. The list of changes is then made from the
// flags by one thread, so that its order is that of the range.
#include "kernels/ops/adamw.h"

#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

// Threads write whole words of flags: a range is a multiple of kChangesPerWord.
constexpr std::int64_t kElementsPerRange = 16384;

double power(double base, std::int64_t exponent) {  // by squaring: libm's pow differs by version
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

// Rounds the first n parameters to `to`. Bit i of the result says whether to[i] got other bits.
std::uint32_t store_rounded(F32x16 parameters, int n, Bf16* to) {
  Bf16 before[kLanes];
  __builtin_memcpy(before, to, static_cast<std::size_t>(n) * sizeof(Bf16));
  store(to, parameters, n);
  std::uint32_t changed = 0;
  for (int i = 0; i < n; ++i)
    changed |= static_cast<std::uint32_t>(before[i].bits != to[i].bits) << i;
  return changed;
}

// The list of changed values, from the flags in the workspace.
void list_changes(const AdamW& op) {
  const std::int32_t* flags = op.workspace.i32();
  std::int32_t* changed = op.changed.i32();
  std::int32_t count = 0;
  for (std::int64_t i = 0; i < op.parameters.dim(0); i += kChangesPerWord) {
    auto left = static_cast<std::uint32_t>(flags[i / kChangesPerWord]);
    for (; left != 0; left &= left - 1)
      changed[count++] = static_cast<std::int32_t>(i) + __builtin_ctz(left);
  }
  *op.changed_count.i32() = count;
}

}  // namespace

void adamw(const Stream& stream, const AdamW& op) {
  // The constants of a step are computed in double and rounded once, as for a GPU.
  const double correction1 = 1.0 - power(op.beta1, op.step);
  const double correction2 = 1.0 - power(op.beta2, op.step);
  const F32x16 grad_scale = set(op.grad_scale);
  const F32x16 blend1 = set(static_cast<float>(1.0 - op.beta1));
  const F32x16 keep2 = set(static_cast<float>(op.beta2));
  const F32x16 blend2 = set(static_cast<float>(1.0 - op.beta2));
  const F32x16 root2 = set(static_cast<float>(__builtin_sqrt(correction2)));
  const F32x16 eps = set(static_cast<float>(op.eps));
  const F32x16 keep = set(static_cast<float>(1.0 - op.lr * op.weight_decay));
  const F32x16 step = set(static_cast<float>(op.lr / correction1));
  // With lr = 0 the parameters keep their bits, whatever the update is.
  const bool moves = op.lr != 0;
  float* parameters = op.parameters.f32();
  const float* gradients = op.gradients.f32();
  float *first_moment = op.m.f32(), *second_moment = op.v.f32();
  Bf16* rounded = data<Bf16>(op.rounded);
  std::int32_t* flags = op.changed_count.empty() ? nullptr : op.workspace.i32();
  device::parallel_for(stream.pool, op.parameters.dim(0), kElementsPerRange,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t i = begin; i < end; i += kLanes) {
                           const int n = lanes(end - i);
                           const F32x16 g = load(gradients + i, n) * grad_scale;
                           const F32x16 before = load(first_moment + i, n);
                           const F32x16 m = fma(blend1, g - before, before);
                           const F32x16 v = fma(blend2 * g, g, keep2 * load(second_moment + i, n));
                           store(first_moment + i, m, n);
                           store(second_moment + i, v, n);
                           F32x16 p = load(parameters + i, n);
                           if (moves) {
                             const F32x16 update = m / (sqrt(v) / root2 + eps);
                             p = fnma(step, update, p * keep);
                             store(parameters + i, p, n);
                           }
                           if (rounded == nullptr) continue;
                           const std::uint32_t changed = store_rounded(p, n, rounded + i);
                           if (flags == nullptr) continue;
                           // A word takes two vectors; the first one clears the old word.
                           std::int32_t& word = flags[i / kChangesPerWord];
                           word = i % kChangesPerWord == 0
                                      ? static_cast<std::int32_t>(changed)
                                      : word | static_cast<std::int32_t>(changed << kLanes);
                         }
                       });
  if (flags != nullptr) list_changes(op);
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
