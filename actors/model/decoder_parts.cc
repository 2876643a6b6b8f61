#include "actors/model/decoder_parts.h"

#include <algorithm>
#include <cmath>

#include "kernels/ops/rope.h"
#include "runtime/base/check.h"
#include "runtime/device/queue.h"

namespace tandem::model {

void* BufferCutter::take(std::size_t bytes) {
  // Computed as an integer: arithmetic on a null pointer, as for measuring, is undefined.
  const auto address = reinterpret_cast<std::uintptr_t>(block_) + used_;
  used_ += device::align_up(bytes);
  return reinterpret_cast<void*>(address);
}

device::TensorView BufferCutter::tensor(device::DType dtype,
                                        std::initializer_list<std::int64_t> shape) {
  std::size_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  return device::tensor(take(count * device::size_bytes(dtype)), dtype, shape);
}

device::TensorView BufferCutter::f32(std::initializer_list<std::int64_t> shape) {
  return tensor(device::DType::kF32, shape);
}

std::span<std::int32_t> BufferCutter::i32(std::int64_t count) {
  const auto size = static_cast<std::size_t>(count);
  return {static_cast<std::int32_t*>(take(size * sizeof(std::int32_t))), size};
}

float attention_scale(const ModelConfig& config) {
  return 1.0f / std::sqrt(static_cast<float>(config.head_dim));
}

std::size_t RotaryTable::bytes(const ModelConfig& config, std::int64_t positions_max) {
  // The same cuts as in make().
  BufferCutter cut(nullptr);
  for (int table = 0; table < 2; ++table) cut.f32({positions_max, config.head_dim / 2});
  return cut.bytes();
}

// The table is computed on the host and then copied, so that every device has the same bits.
Result<RotaryTable> RotaryTable::make(const ModelConfig& config, std::int64_t positions_max,
                                      device::DeviceKind device) {
  CHECK(positions_max >= 1 && positions_max <= config.max_position_embeddings);
  Result<device::Staged> memory =
      device::Staged::allocate(bytes(config, positions_max), "the rotary table", device);
  if (!memory) return memory.error();
  RotaryTable table;
  table.memory = *std::move(memory);
  BufferCutter cut(table.memory.host());
  const device::TensorView cos = cut.f32({positions_max, config.head_dim / 2});
  const device::TensorView sin = cut.f32({positions_max, config.head_dim / 2});
  kernels::fill_rope_table(
      {.cos = cos, .sin = sin, .theta = config.rope_theta, .scaling = config.rope_scaling});
  const device::Queue queue(device);
  table.memory.upload(queue.stream(), cut.bytes());
  device::synchronize(queue.stream());
  table.cos = table.memory.on_device(cos);
  table.sin = table.memory.on_device(sin);
  return table;
}

device::TensorView cut_ones(BufferCutter& cut, const ModelConfig& config, std::int64_t T) {
  return config.qkv_bias() ? cut.tensor(config.dtype, {T, 1}) : device::TensorView{};
}

void fill_ones(const device::TensorView& ones) {
  if (ones.dtype == device::DType::kF32) {
    std::fill_n(ones.f32(), ones.elements(), 1.0f);
  } else {
    std::fill_n(ones.bits16(), ones.elements(), device::f32_to_bf16(1.0f));
  }
}

void multiply_qkv(const device::Stream& stream, const QkvProduct& op) {
  kernels::matmul(
      stream,
      kernels::Matmul{.x = op.h, .weight = op.weights.qkv.packed, .y = op.qkv, .rows = op.rows});
  if (op.weights.qkv_bias.empty()) return;

  kernels::matmul(stream, kernels::MatmulPlain{.x = op.ones,
                                               .weight = op.weights.qkv_bias,
                                               .y = op.qkv,
                                               .output = kernels::Output::kAdd,
                                               .rows = op.rows});
}

}  // namespace tandem::model
