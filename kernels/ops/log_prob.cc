#include "kernels/ops/log_prob.h"

#include "kernels/backend.h"

namespace tandem::kernels {

void log_prob(const Stream& stream, const LogProb& op) {
  const std::int64_t rows = op.logits.dim(0);
  CHECK(computes(op.logits.dtype));
  CHECK(is(op.logits.dtype, op.logits, {rows, op.logits.dim(1)}));
  CHECK(op.logits.dim(1) > 0);
  CHECK(is_i32(op.targets, {rows}) && is_f32(op.log_prob, {rows}));
  CHECK(op.entropy.empty() || is_f32(op.entropy, {rows}));
  CHECK(op.lse.empty() || is_f32(op.lse, {rows}));
  CHECK(op.temperature > 0);
  backend(stream.device).log_prob(stream, op);
}

void log_prob(const Stream& stream, const LogProbBackward& op) {
  const std::int64_t rows = op.logits.dim(0), vocabulary = op.logits.dim(1);
  CHECK(computes(op.logits.dtype));
  CHECK(is(op.logits.dtype, op.logits, {rows, vocabulary}));
  CHECK(is(op.dlogits.dtype, op.dlogits, {rows, vocabulary}));
  // The result may overwrite the logits only where both have one dtype: a bf16 result would
  // overwrite half of an f32 logit that may still have to be read.
  if (op.dlogits.dtype != op.logits.dtype) {
    CHECK(computes(op.dlogits.dtype) && op.logits.dtype == device::DType::kF32);
    CHECK(op.dlogits.empty() || op.dlogits.data != op.logits.data);
  }
  CHECK(vocabulary > 0);
  CHECK(is_i32(op.targets, {rows}));
  CHECK(is_f32(op.lse, {rows}) && is_f32(op.dlog_prob, {rows}));
  CHECK(op.entropy.empty() == op.dentropy.empty());
  CHECK(op.dentropy.empty() || (is_f32(op.dentropy, {rows}) && is_f32(op.entropy, {rows})));
  CHECK(op.temperature > 0);
  backend(stream.device).log_prob_backward(stream, op);
}

}  // namespace tandem::kernels
