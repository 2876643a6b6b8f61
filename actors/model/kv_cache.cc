// One buffer holds 2 L pools, per layer that of the keys and then that of the values. A pool is
// [pages, B, page_positions, D], so a page is a stretch of every pool and not one piece of memory.
#include "actors/model/kv_cache.h"

#include <algorithm>

#include "kernels/ops/attention.h"
#include "runtime/base/check.h"

namespace tandem::model {
namespace {

constexpr std::size_t kCopiesAtOnce = 1024;  // copies of one list; longer lists go in parts
constexpr std::size_t kListSides = 2;        // one is filled while the other is on its way

}  // namespace

std::size_t KvCache::page_bytes(const ModelConfig& config, std::int64_t page_positions) {
  return static_cast<std::size_t>(2 * config.layers * page_positions * config.kv_width()) *
         device::size_bytes(config.dtype);
}

Result<KvCache> KvCache::allocate(const ModelConfig& config, std::int32_t pages,
                                  std::int32_t page_positions, device::DeviceKind device) {
  CHECK(page_positions > 0 && pages > 0 &&
        pages <= INT32_MAX / page_positions);  // kernels address a position by an i32 slot
  CHECK(page_positions % kernels::kChunkPositions == 0);
  Result<device::Buffer> memory =
      device::Buffer::allocate(static_cast<std::size_t>(pages) * page_bytes(config, page_positions),
                               "KV pages", device::operand_memory(device));
  if (!memory) return memory.error();
  Result<device::Staged> copies = device::Staged::allocate(
      kCopiesAtOnce * sizeof(kernels::PageCopy), "lists of page copies", device, kListSides);
  if (!copies) return copies.error();
  return KvCache(config, pages, page_positions, *std::move(memory), *std::move(copies));
}

KvCache::KvCache(const ModelConfig& config, std::int32_t pages, std::int32_t page_positions,
                 device::Buffer memory, device::Staged copies)
    : layers_(config.layers),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      pages_(pages),
      page_positions_(page_positions),
      dtype_(config.dtype),
      memory_(std::move(memory)),
      copies_(std::move(copies)) {}

device::TensorView KvCache::pool(std::int64_t index) const {
  const std::int64_t elements = pages_ * kv_heads_ * page_positions_ * head_dim_;
  const auto bytes = static_cast<std::size_t>(index * elements) * device::size_bytes(dtype_);
  return device::tensor(memory_.data() + bytes, dtype_,
                        {pages_, kv_heads_, page_positions_, head_dim_});
}

device::TensorView KvCache::keys(std::int64_t layer) const { return pool(2 * layer); }
device::TensorView KvCache::values(std::int64_t layer) const { return pool(2 * layer + 1); }

void KvCache::copy_pages(const device::Stream& stream, std::span<const kernels::PageCopy> copies) {
  for (std::size_t begin = 0; begin < copies.size(); begin += kCopiesAtOnce) {
    const auto some = copies.subspan(begin, std::min(kCopiesAtOnce, copies.size() - begin));
    // Waits only if the device has not yet read the list before the last one.
    copies_.turn();
    auto* const list = reinterpret_cast<kernels::PageCopy*>(copies_.host());
    std::ranges::copy(some, list);
    copies_.upload(stream, some.size_bytes());
    const std::span<const kernels::PageCopy> there{copies_.on_device(list), some.size()};
    for (std::int64_t layer = 0; layer < layers_; ++layer)
      kernels::kv_copy(stream, {.pages = there, .k_pages = keys(layer), .v_pages = values(layer)});
  }
}

}  // namespace tandem::model
