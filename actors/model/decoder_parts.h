// Parts that PagedDecoder and TrainDecoder share: cutting a block of memory into buffers, the
// rotary table, and the product that computes queries, keys and values. Internal to decoder.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "actors/model/model_config.h"
#include "actors/model/weights.h"
#include "kernels/ops/matmul.h"
#include "runtime/base/result.h"
#include "runtime/device/memory.h"
#include "runtime/device/staged.h"
#include "runtime/device/stream.h"
#include "runtime/device/tensor_view.h"

namespace tandem::model {

// Cuts one block into aligned buffers, one after another. The same cutting code runs twice: first
// on a null block, to learn the size from bytes(), then on memory of that size. Views that were cut
// from a null block must not be used. The block outlives the views; the cutter itself owns nothing.
class BufferCutter {
 public:
  explicit BufferCutter(std::byte* block) : block_(block) {}
  device::TensorView tensor(device::DType dtype, std::initializer_list<std::int64_t> shape);
  device::TensorView f32(std::initializer_list<std::int64_t> shape);
  std::span<std::int32_t> i32(std::int64_t count);
  std::size_t bytes() const { return used_; }  // cut so far, with the gaps of alignment

 private:
  void* take(std::size_t bytes);

  std::byte* block_;
  std::size_t used_ = 0;
};

float attention_scale(const ModelConfig& config);  // 1 / sqrt(D)

// cos and sin of every position that a decoder may compute (kernels/ops/rope.h).
struct RotaryTable {
  // The error means too little memory. 1 <= positions_max <= config.max_position_embeddings.
  static Result<RotaryTable> make(const ModelConfig& config, std::int64_t positions_max,
                                  device::DeviceKind device);
  static std::size_t bytes(const ModelConfig& config, std::int64_t positions_max);

  device::Staged memory;
  device::TensorView cos, sin;  // [positions_max, D / 2]
};

// A bias is treated as the weight of one more input feature that is always 1, in a product of its
// own. The bias is therefore added when the sum over the other features is complete, which matters
// because biases of q and k can be far larger than that sum; and its gradient is a sum over rows in
// ascending order (matmul.h), like that of any weight.
device::TensorView cut_ones(BufferCutter& cut, const ModelConfig& config,
                            std::int64_t T);     // [T, 1], or empty in a family without biases
void fill_ones(const device::TensorView& ones);  // `ones` is host memory

// qkv = h Wqkv^T + bias
struct QkvProduct {
  const LayerWeights& weights;
  device::TensorView h;     // [T, H]
  device::TensorView ones;  // [T, 1]; empty in a family without biases
  device::TensorView qkv;   // [T, Q] written
  kernels::Rows rows;
};
void multiply_qkv(const device::Stream& stream, const QkvProduct& op);

}  // namespace tandem::model
