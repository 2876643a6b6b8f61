#include "kernels/ops/kv_cache.h"

#include "kernels/backend.h"

namespace tandem::kernels {

namespace {

// The pages as the host can check them: a GPU's list is in its memory, and none of it is readable.
std::span<const PageCopy> readable(const Stream& stream, std::span<const PageCopy> pages) {
  return stream.device == device::DeviceKind::kCpu ? pages : std::span<const PageCopy>{};
}

}  // namespace

bool are_page_pools(const TensorView& k_pages, const TensorView& v_pages) {
  const std::int64_t pages = k_pages.dim(0), groups = k_pages.dim(1);
  const std::int64_t positions = k_pages.dim(2), channels = k_pages.dim(3);
  return is(k_pages.dtype, k_pages, {pages, groups, positions, channels}) && k_pages.dense() &&
         is(k_pages.dtype, v_pages, {pages, groups, positions, channels}) && v_pages.dense() &&
         positions % kChunkPositions == 0;
}

void kv_write(const Stream& stream, const KvWrite& op) {
  CHECK(computes(op.k_pages.dtype) && are_page_pools(op.k_pages, op.v_pages));
  const std::int64_t tokens = op.slots.dim(0), groups = op.k_pages.dim(1);
  CHECK(is_i32(op.slots, {tokens}));
  CHECK(is(op.k_pages.dtype, op.k, {tokens, groups, op.k_pages.dim(3)}));
  CHECK(is(op.k_pages.dtype, op.v, {tokens, groups, op.k_pages.dim(3)}));
  backend(stream.device).kv_write(stream, op);
}

void kv_copy(const Stream& stream, const KvCopy& op) {
  CHECK(computes(op.k_pages.dtype) && are_page_pools(op.k_pages, op.v_pages));
  for (const PageCopy& copy : readable(stream, op.pages)) {
    CHECK(copy.from >= 0 && copy.from < op.k_pages.dim(0));
    CHECK(copy.to >= 0 && copy.to < op.k_pages.dim(0));
  }
  backend(stream.device).kv_copy(stream, op);
}

}  // namespace tandem::kernels
