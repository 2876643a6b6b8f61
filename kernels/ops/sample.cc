#include "kernels/ops/sample.h"

#include "kernels/backend.h"

namespace tandem::kernels {

void sample(const Stream& stream, const Sample& op) {
  const std::int64_t rows = std::ssize(op.rows);
  const std::int64_t logit_rows = op.logits.dim(0), vocabulary = op.logits.dim(1);
  CHECK(vocabulary > 0 && vocabulary <= kVocabularyMax);
  CHECK(computes(op.logits.dtype) && is(op.logits.dtype, op.logits, {logit_rows, vocabulary}));
  CHECK(is_i32(op.tokens, {rows}) && is_f32(op.log_prob, {rows}));
  for (const RowSampling& row : op.rows) {
    if (stream.device != device::DeviceKind::kCpu) break;  // the host cannot read their memory
    CHECK(row.logits_row < logit_rows && row.logits_row >= kOwnRow);
    // A draw of its own row needs that row to exist: there may be more draws than rows of logits.
    CHECK(row.logits_row != kOwnRow || &row - op.rows.data() < logit_rows);
    CHECK(row.temperature >= 0 && row.top_k >= 0);
    CHECK(row.top_p > 0 && row.top_p <= 1 && row.min_p >= 0 && row.min_p < 1);
    // At least one token must remain to be drawn.
    CHECK(std::ssize(row.banned) < vocabulary);
  }
  backend(stream.device).sample(stream, op);
}

}  // namespace tandem::kernels
