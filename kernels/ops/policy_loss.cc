#include "kernels/ops/policy_loss.h"

#include "kernels/backend.h"

namespace tandem::kernels {

namespace {

// Whether `begin` cuts the tokens into sequences: ascending from 0 to their number, so that every
// token belongs to one sequence. Sequences may be empty.
bool are_sequences(const Stream& stream, const TensorView& begin, std::int64_t tokens) {
  const std::int64_t sequences = begin.dim(0) - 1;
  if (sequences < 0 || !is_i32(begin, {sequences + 1})) return false;
  if (stream.device != device::DeviceKind::kCpu) return true;  // the host cannot read its memory
  const std::int32_t* at = begin.i32();
  for (std::int64_t s = 0; s < sequences; ++s) {
    if (at[s] > at[s + 1]) return false;
  }
  return at[0] == 0 && at[sequences] == tokens;
}

}  // namespace

void policy_loss(const Stream& stream, const PolicyLoss& op) {
  const std::int64_t tokens = op.current.dim(0);
  for (const TensorView& view : {op.current, op.proximal, op.advantage, op.weight, op.dlog_prob}) {
    CHECK(is_f32(view, {tokens}));
  }
  for (const TensorView& view : {op.importance, op.reference, op.entropy, op.dentropy, op.loss}) {
    CHECK(view.empty() || is_f32(view, {tokens}));
  }
  // A coefficient without the operand that it weighs would be a term left out in silence.
  CHECK(tokens == 0 || op.kl_coef == 0 || !op.reference.empty());
  CHECK(tokens == 0 || op.entropy_coef == 0 || (!op.entropy.empty() && !op.dentropy.empty()));
  CHECK(op.clip_low >= 0 && op.clip_high >= 0);
  CHECK(op.clip_dual == 0 || op.clip_dual > 1);
  CHECK(op.mode != LossMode::kGspo || !op.sequence_begin.empty());
  CHECK(op.sequence_begin.empty() || are_sequences(stream, op.sequence_begin, tokens));
  CHECK(op.stats != nullptr);
  backend(stream.device).policy_loss(stream, op);
}

void importance_weights(const Stream& stream, const ImportanceWeights& op) {
  const std::int64_t tokens = op.weight.dim(0);
  for (const TensorView& view : {op.proximal, op.behaviour, op.weight, op.importance}) {
    CHECK(is_f32(view, {tokens}));
  }
  CHECK(op.threshold > 0);
  CHECK(op.level == ImportanceLevel::kToken || are_sequences(stream, op.sequence_begin, tokens));
  backend(stream.device).importance_weights(stream, op);
}

}  // namespace tandem::kernels
