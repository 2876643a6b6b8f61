// The keys and values of every sequence in flight, in pages, as one allocation.
//
// A page holds page_positions positions of one sequence in every layer. This class is only the
// memory: scheduler/batch decides which sequence owns which page (page_pool.h, prefix_cache.h).
// Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "actors/model/model_config.h"
#include "kernels/ops/kv_cache.h"
#include "runtime/base/result.h"
#include "runtime/device/memory.h"
#include "runtime/device/staged.h"
#include "runtime/device/stream.h"
#include "runtime/device/tensor_view.h"

namespace tandem::model {

class KvCache {
 public:
  // page_positions is a multiple of kernels::kChunkPositions. The error means too little memory.
  static Result<KvCache> allocate(const ModelConfig& config, std::int32_t pages,
                                  std::int32_t page_positions, device::DeviceKind device);

  // The size of one page: keys and values of all layers.
  static std::size_t page_bytes(const ModelConfig& config, std::int64_t page_positions);

  std::int32_t pages() const { return pages_; }
  std::int32_t page_positions() const { return page_positions_; }

  // [pages, B, page_positions, D] of one layer, in the layout of kernels/ops/kv_cache.h.
  device::TensorView keys(std::int64_t layer) const;
  device::TensorView values(std::int64_t layer) const;

  // Copies whole pages in all layers, in the order of the list. Used when a sequence goes on from a
  // shared page that is partly filled: the sequence gets a copy, because shared pages are never
  // written. `copies` lies in the host's memory and is read before the call returns.
  void copy_pages(const device::Stream& stream, std::span<const kernels::PageCopy> copies);

 private:
  KvCache(const ModelConfig& config, std::int32_t pages, std::int32_t page_positions,
          device::Buffer memory, device::Staged copies);
  device::TensorView pool(std::int64_t index) const;

  std::int64_t layers_, kv_heads_, head_dim_;
  std::int32_t pages_;
  std::int32_t page_positions_;
  device::DType dtype_;
  device::Buffer memory_;  // per layer the keys' pool, then the values'
  device::Staged copies_;  // the list of copy_pages() on its way to the device
};

}  // namespace tandem::model
