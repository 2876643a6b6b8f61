#include "kernels/cpu/operators.h"
#include "kernels/cpu/soft_max.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {
constexpr std::int64_t kElementsPerRange = 32768;

std::int64_t rows_per_range(std::int64_t vocabulary) {
  return vocabulary < kElementsPerRange ? kElementsPerRange / vocabulary : 1;
}
}  // namespace

void log_prob(const Stream& stream, const LogProb& op) {
  const std::int64_t vocabulary = op.logits.dim(1);
  const std::int32_t* targets = op.targets.i32();
  const float factor = 1.0f / op.temperature;
  runtime::parallel_for(stream.pool, op.logits.dim(0), rows_per_range(vocabulary),
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t r = begin; r < end; ++r) {
                            const float* logits = op.logits.f32() + r * op.logits.row_stride;
                            const SoftmaxSums sums =
                                op.entropy.empty() ? softmax_sums<false>(logits, vocabulary, factor)
                                                   : softmax_sums<true>(logits, vocabulary, factor);
                            const float log_sum = log(sums.sum);
                            op.log_prob.f32()[r] =
                                (logits[targets[r]] * factor - sums.maximum) - log_sum;
                            if (!op.entropy.empty())
                              op.entropy.f32()[r] = log_sum - sums.weighted / sums.sum;
                            if (!op.lse.empty()) op.lse.f32()[r] = sums.maximum + log_sum;
                          }
                        });
}

void log_prob_backward(const Stream& stream, const LogProbBackward& op) {
  const std::int64_t vocabulary = op.logits.dim(1);
  const std::int32_t* targets = op.targets.i32();
  const float factor = 1.0f / op.temperature;
  runtime::parallel_for(stream.pool, op.logits.dim(0), rows_per_range(vocabulary),
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t r = begin; r < end; ++r) {
                            const float* logits = op.logits.f32() + r * op.logits.row_stride;
                            float* dlogits = op.dlogits.f32() + r * op.dlogits.row_stride;
                            const F32x16 lse = set(op.lse.f32()[r]);
                            const float dlog_prob = op.dlog_prob.f32()[r] * factor;
                            const bool flat = op.dentropy.empty();
                            const F32x16 dentropy =
                                set(flat ? 0.0f : op.dentropy.f32()[r] * factor);
                            const F32x16 entropy = set(flat ? 0.0f : op.entropy.f32()[r]);
                            for (std::int64_t i = 0; i < vocabulary; i += kLanes) {
                              const int n = lanes(vocabulary - i);
                              const F32x16 log_p = load(logits + i, n) * set(factor) - lse;
                              const F32x16 p = exp(log_p);
                              F32x16 gradient = zero() - p * set(dlog_prob);
                              if (!flat) {
                                const F32x16 more = fnma(p * dentropy, log_p + entropy, gradient);
                                gradient = select(less(zero(), p), more, gradient);
                              }
                              store(dlogits + i, gradient, n);
                            }
                            dlogits[targets[r]] += dlog_prob;
                          }
                        });
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
