// What the two decoders share: how a block of memory is cut into buffers, the rotary table, and the
// product that makes queries, keys and values. Internal to decoder.h.
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

namespace tandem::actors {

// Cuts one block into aligned buffers, in order. On a null block it only adds up sizes; the views
// it then makes are not to be used.
class BufferCutter {
 public:
  explicit BufferCutter(std::byte* block) : block_(block) {}
  runtime::TensorView tensor(runtime::DType dtype, std::initializer_list<std::int64_t> shape);
  runtime::TensorView f32(std::initializer_list<std::int64_t> shape);
  std::span<std::int32_t> i32(std::int64_t count);
  std::size_t bytes() const { return used_; }

 private:
  void* take(std::size_t bytes);

  std::byte* block_;
  std::size_t used_ = 0;
};

float attention_scale(const ModelConfig& config);  // 1 / sqrt(D)

// cos and sin of every position that a decoder may see (kernels/ops/rope.h).
struct RotaryTable {
  static Result<RotaryTable> make(const ModelConfig& config, std::int64_t positions_max,
                                  runtime::DeviceKind device);
  static std::size_t bytes(const ModelConfig& config, std::int64_t positions_max);

  runtime::Staged memory;
  runtime::TensorView cos, sin;  // [positions_max, D / 2]
};

// A bias is the weight of one more input feature that is always 1, and is multiplied as such: added
// when the sum over the others is complete, since biases of q and k can be far larger than they
// are, and with a gradient that is a sum over rows, ascending (matmul.h).
runtime::TensorView cut_ones(BufferCutter& cut, const ModelConfig& config,
                             std::int64_t T);     // [T, 1]
void fill_ones(const runtime::TensorView& ones);  // on the host

// qkv = h Wqkv^T + bias
struct QkvProduct {
  const LayerWeights& weights;
  runtime::TensorView h;     // [T, H]
  runtime::TensorView ones;  // [T, 1] of a model with biases
  runtime::TensorView qkv;   // [T, Q] written
  kernels::Rows rows;
};
void multiply_qkv(const runtime::Stream& stream, const QkvProduct& op);

}  // namespace tandem::actors
