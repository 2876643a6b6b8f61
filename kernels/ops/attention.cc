#include "kernels/ops/attention.h"

#include "kernels/backend.h"

namespace tandem::kernels {

namespace {

void check_heads(const TensorView& q, std::int64_t groups, std::int64_t channels) {
  CHECK(groups > 0 && q.dim(1) % groups == 0 && q.dim(1) / groups <= kGroupHeadsMax);
  CHECK(channels > 0 && channels % kChunkPositions == 0 && channels <= kHeadChannelsMax);
}

// Checks the segments of a CPU's call. Those of a GPU are in its memory, which the host cannot
// read. Segments that overlap are not found if their lengths add up to the number of rows.
void check_segments(const Stream& stream, std::span<const Segment> segments, std::int64_t rows) {
  if (stream.device != device::DeviceKind::kCpu) return;
  const Segment* root = nullptr;  // the latest segment without a prefix
  std::int64_t own_rows = 0;
  for (const Segment& segment : segments) {
    CHECK(segment.len > 0 && segment.begin >= 0 && segment.begin + segment.len <= rows);
    own_rows += segment.len;
    if (segment.prefix_len == 0) {
      root = &segment;
      continue;
    }
    CHECK(root != nullptr && segment.prefix_begin == root->begin);
    CHECK(segment.prefix_len > 0 && segment.prefix_len <= root->len);
  }
  CHECK(own_rows == rows);
}

}  // namespace

// The GPU's number per row and head is the mean that cuda/attention.cu computes first.
std::int64_t attention_backward_workspace(device::DeviceKind device, const TensorView& q,
                                          const TensorView& k) {
  if (device == device::DeviceKind::kCuda) return q.dim(0) * q.dim(1);
  return q.dtype == device::DType::kBF16 ? q.elements() + 2 * k.elements() : 0;
}

void attention(const Stream& stream, const AttentionPacked& op) {
  const std::int64_t rows = op.q.dim(0), heads = op.q.dim(1), channels = op.q.dim(2);
  const std::int64_t groups = op.k.dim(1);
  CHECK(computes(op.q.dtype));
  check_heads(op.q, groups, channels);
  CHECK(is(op.q.dtype, op.q, {rows, heads, channels}) &&
        is(op.q.dtype, op.out, {rows, heads, channels}));
  CHECK(is(op.q.dtype, op.k, {rows, groups, channels}) &&
        is(op.q.dtype, op.v, {rows, groups, channels}));
  CHECK(op.lse.empty() || (is_f32(op.lse, {rows, heads}) && op.lse.dense()));
  CHECK(op.scale > 0);
  check_segments(stream, op.segments, rows);
  backend(stream.device).attention_packed(stream, op);
}

void attention(const Stream& stream, const AttentionBackward& op) {
  const std::int64_t rows = op.q.dim(0), heads = op.q.dim(1), channels = op.q.dim(2);
  const std::int64_t groups = op.k.dim(1);
  CHECK(computes(op.q.dtype));
  check_heads(op.q, groups, channels);
  for (const TensorView& view : {op.dout, op.q, op.out, op.dq}) {
    CHECK(is(op.q.dtype, view, {rows, heads, channels}));
  }
  for (const TensorView& view : {op.k, op.v, op.dk, op.dv}) {
    CHECK(is(op.q.dtype, view, {rows, groups, channels}));
  }
  CHECK(is_f32(op.lse, {rows, heads}) && op.lse.dense());
  CHECK(op.scale > 0);
  check_segments(stream, op.segments, rows);
  const std::int64_t needed = attention_backward_workspace(stream.device, op.q, op.k);
  CHECK(needed == 0 ||
        (is_f32(op.workspace, {op.workspace.dim(0)}) && op.workspace.elements() >= needed));
  backend(stream.device).attention_backward(stream, op);
}

void attention(const Stream& stream, const AttentionPaged& op) {
  const std::int64_t rows = op.q.dim(0), heads = op.q.dim(1), channels = op.q.dim(2);
  const std::int64_t pages = op.k_pages.dim(0), groups = op.k_pages.dim(1);
  const std::int64_t positions = op.k_pages.dim(2), sequences = op.first_position.dim(0);
  CHECK(computes(op.q.dtype));
  check_heads(op.q, groups, channels);
  CHECK(is(op.q.dtype, op.q, {rows, heads, channels}) &&
        is(op.q.dtype, op.out, {rows, heads, channels}));
  CHECK(is(op.q.dtype, op.k_pages, {pages, groups, positions, channels}) && op.k_pages.dense());
  CHECK(is(op.q.dtype, op.v_pages, {pages, groups, positions, channels}) && op.v_pages.dense());
  // A chunk of positions lies on one page.
  CHECK(positions % kChunkPositions == 0);
  CHECK(is_i32(op.first_position, {sequences}) && is_i32(op.query_begin, {sequences + 1}));
  CHECK(is_i32(op.block_tables, {sequences, op.block_tables.dim(1)}));
  CHECK(op.scale > 0);
  CHECK(op.shared_prefixes.empty() || std::ssize(op.shared_prefixes) == sequences);
  // A workspace of any size will do: it bounds the splits that are shared or spread.
  CHECK(op.workspace.empty() || is_f32(op.workspace, {op.workspace.dim(0)}));
  backend(stream.device).attention_paged(stream, op);
}

}  // namespace tandem::kernels
