#include "actors/model/kv_cache.h"

#include "kernels/ops/attention.h"
#include "runtime/base/check.h"

namespace tandem::actors {

std::size_t KvCache::page_bytes(const ModelConfig& config, std::int32_t page_positions) {
  return static_cast<std::size_t>(2 * config.layers * page_positions * config.kv_width()) *
         sizeof(float);
}

Result<KvCache> KvCache::allocate(const ModelConfig& config, std::int32_t pages,
                                  std::int32_t page_positions) {
  CHECK(page_positions > 0 && pages > 0 &&
        pages <= INT32_MAX / page_positions);  // a slot is an i32
  CHECK(page_positions % kernels::kChunkPositions == 0);
  Result<runtime::HostBuffer> memory = runtime::HostBuffer::allocate(
      static_cast<std::size_t>(pages) * page_bytes(config, page_positions), "KV pages");
  if (!memory) return memory.error();
  return KvCache(config, pages, page_positions, *std::move(memory));
}

KvCache::KvCache(const ModelConfig& config, std::int32_t pages, std::int32_t page_positions,
                 runtime::HostBuffer memory)
    : layers_(config.layers),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      pages_(pages),
      page_positions_(page_positions),
      memory_(std::move(memory)) {}

runtime::TensorView KvCache::pool(std::int64_t index) const {
  const std::int64_t elements = pages_ * kv_heads_ * page_positions_ * head_dim_;
  return runtime::tensor(memory_.as<float>().data() + index * elements,
                         {pages_, kv_heads_, page_positions_, head_dim_});
}

runtime::TensorView KvCache::keys(std::int64_t layer) const { return pool(2 * layer); }
runtime::TensorView KvCache::values(std::int64_t layer) const { return pool(2 * layer + 1); }

void KvCache::copy_pages(const runtime::Stream& stream, std::span<const kernels::PageCopy> copies) {
  for (std::int64_t layer = 0; layer < layers_; ++layer)
    kernels::kv_copy(stream, {.pages = copies, .k_pages = keys(layer), .v_pages = values(layer)});
}

}  // namespace tandem::actors
