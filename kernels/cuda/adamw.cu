#include <cmath>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kThreads = 256;

double power(double base, std::int64_t exponent) {  // by squaring, as the CPU's
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

struct Update {
  float* parameters;
  const float* gradients;
  float *m, *v;
  Bf16* rounded;
  std::int64_t count;
  float grad_scale, blend1, keep2, blend2, root2, eps, keep, step;
  bool moves;
};

template <bool kVector>
__global__ void adamw_kernel(Update op) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kPack<float>;
  if (at >= op.count) return;
  const std::int64_t left = op.count - at;
  const Pack<float> gradients = load_pack<kVector>(op.gradients + at, left);
  Pack<float> m = load_pack<kVector>(op.m + at, left), v = load_pack<kVector>(op.v + at, left);
  Pack<float> parameters = load_pack<kVector>(op.parameters + at, left);
  for (int i = 0; i < kPack<float>; ++i) {
    const float g = gradients.at[i] * op.grad_scale;
    m.at[i] = fmaf(op.blend1, g - m.at[i], m.at[i]);
    v.at[i] = fmaf(op.blend2 * g, g, op.keep2 * v.at[i]);
    if (!op.moves) continue;
    const float update = m.at[i] / (sqrtf(v.at[i]) / op.root2 + op.eps);
    parameters.at[i] = fmaf(-op.step, update, parameters.at[i] * op.keep);
  }
  store_pack<kVector>(op.m + at, m, left);
  store_pack<kVector>(op.v + at, v, left);
  if (op.moves) store_pack<kVector>(op.parameters + at, parameters, left);
  if (op.rounded == nullptr) return;
  for (int i = 0; i < kPack<float> && i < left; ++i) {
    op.rounded[at + i] = from_float<Bf16>(parameters.at[i]);
  }
}

}  // namespace

void adamw(const Stream& stream, const AdamW& op) {
  const double correction1 = 1.0 - power(op.beta1, op.step);
  const double correction2 = 1.0 - power(op.beta2, op.step);
  const Update update{.parameters = data<float>(op.parameters),
                      .gradients = data<float>(op.gradients),
                      .m = data<float>(op.m),
                      .v = data<float>(op.v),
                      .rounded = data<Bf16>(op.rounded),
                      .count = op.parameters.dim(0),
                      .grad_scale = op.grad_scale,
                      .blend1 = static_cast<float>(1.0 - op.beta1),
                      .keep2 = static_cast<float>(op.beta2),
                      .blend2 = static_cast<float>(1.0 - op.beta2),
                      .root2 = static_cast<float>(std::sqrt(correction2)),
                      .eps = static_cast<float>(op.eps),
                      .keep = static_cast<float>(1.0 - op.lr * op.weight_decay),
                      .step = static_cast<float>(op.lr / correction1),
                      .moves = op.lr != 0};
  with_flag(packs_align({op.parameters, op.gradients, op.m, op.v}), [&](auto vector) {
    launch(stream, {.grid = blocks_for(update.count, kThreads * kPack<float>), .block = kThreads},
           adamw_kernel<vector>, update);
  });
}

}  // namespace tandem::kernels::cuda
