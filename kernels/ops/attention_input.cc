#include "kernels/ops/attention_input.h"

#include "kernels/backend.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/kv_cache.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"

namespace tandem::kernels {

namespace {

// The form without norms, by the operators that every device has. The table's attention_input is
// for models with norms.
void turn_and_write(const Stream& stream, const AttentionInput& op) {
  for (const TensorView& x : {op.q, op.k})
    rope(stream, {.x = x, .positions = op.positions, .cos = op.cos, .sin = op.sin});
  kv_write(stream,
           {.k = op.k, .v = op.v, .slots = op.slots, .k_pages = op.k_pages, .v_pages = op.v_pages});
}

}  // namespace

void attention_input(const Stream& stream, const AttentionInput& op) {
  const device::DType dtype = op.q.dtype;
  const std::int64_t tokens = op.q.dim(0), channels = op.q.dim(2);
  const std::int64_t groups = op.k_pages.dim(1);
  CHECK(computes(dtype) && is(dtype, op.q, {tokens, op.q.dim(1), channels}));
  CHECK(channels % kChunkPositions == 0 && channels <= kHeadChannelsMax);
  for (const TensorView& view : {op.k, op.v}) CHECK(is(dtype, view, {tokens, groups, channels}));
  CHECK(op.q_norm.empty() == op.k_norm.empty());
  if (op.q_norm.empty()) return turn_and_write(stream, op);
  CHECK(is(dtype, op.q_norm, {channels}) && is(dtype, op.k_norm, {channels}) && op.eps >= 0);
  CHECK(is_i32(op.positions, {tokens}) && is_i32(op.slots, {tokens}));
  CHECK(is_f32(op.cos, {op.cos.dim(0), channels / 2}) && op.cos.dense());
  CHECK(is_f32(op.sin, {op.cos.dim(0), channels / 2}) && op.sin.dense());
  CHECK(op.k_pages.dtype == dtype && op.k_pages.dim(3) == channels);
  CHECK(are_page_pools(op.k_pages, op.v_pages));
  backend(stream.device).attention_input(stream, op);
}

}  // namespace tandem::kernels
