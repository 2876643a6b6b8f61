#include "kernels/ops/log_prob.h"

#include "kernels/cpu/operators.h"
#include "kernels/cpu/soft_max.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {
constexpr std::int64_t kElementsPerRange = 32768;

// A row is never cut, so that its sums are one tree (LP-1).
std::int64_t rows_per_range(std::int64_t vocabulary) {
  return vocabulary < kElementsPerRange ? kElementsPerRange / vocabulary : 1;
}

template <class T>
void forward(const Stream& stream, const LogProb& op) {
  const std::int64_t vocabulary = op.logits.dim(1);
  const std::int32_t* targets = op.targets.i32();
  const float factor = 1.0f / op.temperature;
  device::parallel_for(stream.pool, op.logits.dim(0), rows_per_range(vocabulary),
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t r = begin; r < end; ++r) {
                           const T* logits = data<T>(op.logits) + r * op.logits.row_stride;
                           const SoftmaxSums sums =
                               op.entropy.empty() ? softmax_sums<false>(logits, vocabulary, factor)
                                                  : softmax_sums<true>(logits, vocabulary, factor);
                           const float log_sum = log(sums.sum);
                           op.log_prob.f32()[r] =
                               (widened(logits[targets[r]]) * factor - sums.maximum) - log_sum;
                           if (!op.entropy.empty())
                             op.entropy.f32()[r] = log_sum - sums.weighted / sums.sum;
                           if (!op.lse.empty()) op.lse.f32()[r] = sums.maximum + log_sum;
                         }
                       });
}

// Lanes of logits are loaded before the same lanes of dlogits are stored: the two may be one
// memory. With p = exp(z - lse), no sum over the row is needed.
template <class T, class Out>
void backward_row(const LogProbBackward& op, std::int64_t r) {
  const std::int64_t vocabulary = op.logits.dim(1), target = op.targets.i32()[r];
  const T* logits = data<T>(op.logits) + r * op.logits.row_stride;
  Out* dlogits = data<Out>(op.dlogits) + r * op.dlogits.row_stride;
  const bool flat = op.dentropy.empty();
  const F32x16 factor = set(1.0f / op.temperature), lse = set(op.lse.f32()[r]);
  const F32x16 dlog_prob = set(op.dlog_prob.f32()[r]) * factor;
  const F32x16 dentropy = flat ? zero() : set(op.dentropy.f32()[r]) * factor;
  const F32x16 entropy = set(flat ? 0.0f : op.entropy.f32()[r]);
  for (std::int64_t i = 0; i < vocabulary; i += kLanes) {
    const int n = lanes(vocabulary - i);
    const F32x16 log_p = load(logits + i, n) * factor - lse;
    const F32x16 p = exp(log_p);
    F32x16 gradient = zero() - p * dlog_prob;
    if (!flat) {
      // Where p is 0, log p may be minus infinity, and their product NaN: the term is left out.
      const F32x16 more = fnma(p * dentropy, log_p + entropy, gradient);
      gradient = select(less(zero(), p), more, gradient);
    }
    if (target >= i && target < i + n) {  // lane target - i alone
      const int lane = static_cast<int>(target - i);
      gradient =
          select(first(lane), gradient, select(first(lane + 1), gradient + dlog_prob, gradient));
    }
    store(dlogits + i, gradient, n);
  }
}

template <class T, class Out>
void backward(const Stream& stream, const LogProbBackward& op) {
  device::parallel_for(stream.pool, op.logits.dim(0), rows_per_range(op.logits.dim(1)),
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t r = begin; r < end; ++r) backward_row<T, Out>(op, r);
                       });
}

}  // namespace

void log_prob(const Stream& stream, const LogProb& op) {
  with_type(op.logits.dtype, [&]<class T>(T) { forward<T>(stream, op); });
}

void log_prob_backward(const Stream& stream, const LogProbBackward& op) {
  if (op.dlogits.dtype != op.logits.dtype) return backward<float, Bf16>(stream, op);
  with_type(op.logits.dtype, [&]<class T>(T) { backward<T, T>(stream, op); });
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
