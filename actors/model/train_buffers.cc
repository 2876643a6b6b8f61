#include "actors/model/train_buffers.h"

#include <algorithm>

#include "kernels/ops/rms_norm.h"

namespace tandem::model {
namespace {

constexpr std::int64_t kLogitsPerChunk = 1 << 20;  // on a CPU
// Half a GiB. Each chunk reads the whole head and updates its whole gradient, so with few rows per
// chunk a GPU would mostly wait for memory.
constexpr std::int64_t kLogitsPerChunkOnGpu = 1 << 27;
constexpr std::int64_t kChunkRowsMin = 16;

}  // namespace

std::int64_t logit_rows_per_chunk(const ModelConfig& config, device::DeviceKind device) {
  const bool cpu = device == device::DeviceKind::kCpu;
  const std::int64_t logits = cpu ? kLogitsPerChunk : kLogitsPerChunkOnGpu;
  return std::max(logits / config.vocab_size, kChunkRowsMin);
}

void cut_train_buffers(BufferCutter& cut, const ModelConfig& config, device::DeviceKind device,
                       const TrainLimits& limits, TrainBuffers& buffers) {
  const std::int64_t T = limits.rows_max, M = limits.items_max;
  const std::int64_t H = config.hidden_size, F = config.intermediate_size, Q = config.qkv_width();
  const std::int64_t A = config.heads, B = config.kv_heads, D = config.head_dim;
  const std::int64_t C = std::min(M, logit_rows_per_chunk(config, device));
  const auto norm_sums = [device](std::int64_t rows, std::int64_t channels) {
    return kernels::rms_norm_workspace(device, rows, channels);
  };
  const auto tensor = [&](std::initializer_list<std::int64_t> shape) {
    return cut.tensor(config.dtype, shape);
  };
  // The order of the cuts is the layout of the block; it has to be the same at every size.
  const bool normal = config.qk_norm();
  const auto rest_of_layer = [&](const device::TensorView& x) {
    LayerActivations layer{.x = x,
                           .inv = cut.f32({T}),
                           .h = tensor({T, H}),
                           .qkv = tensor({T, Q}),
                           .inv_q = normal ? cut.f32({T, A}) : device::TensorView{},
                           .inv_k = normal ? cut.f32({T, B}) : device::TensorView{},
                           .q = normal ? tensor({T, A * D}) : device::TensorView{},
                           .k = normal ? tensor({T, B * D}) : device::TensorView{},
                           .attention = tensor({T, A * D}),
                           .lse = cut.f32({T, A}),
                           .x2 = tensor({T, H}),
                           .inv2 = cut.f32({T}),
                           .h2 = tensor({T, H}),
                           .gate_up = tensor({T, 2 * F}),
                           .act = tensor({T, F})};
    if (!normal) {
      layer.q = device::columns(layer.qkv, 0, config.q_width());
      layer.k = device::columns(layer.qkv, config.q_width(), config.kv_width());
    }
    return layer;
  };
  buffers.layers.resize(static_cast<std::size_t>(config.layers));
  for (LayerActivations& layer : buffers.layers) {
    // With checkpointing the layers after the first take only their own x, and the first layer's
    // views for the rest.
    const bool shares = limits.checkpointing && &layer != buffers.layers.data();
    const device::TensorView x = tensor({T, H});
    layer = shares ? buffers.layers.front() : rest_of_layer(x);
    layer.x = x;
  }
  const bool f32 = config.dtype == device::DType::kF32;
  buffers.x = tensor({T, H});
  buffers.lse = cut.f32({M});
  buffers.picked = tensor({C, H});
  buffers.picked_inv = cut.f32({C});
  buffers.picked_h = tensor({C, H});
  buffers.logits = cut.f32({C, config.vocab_size});
  buffers.dlogits = f32 ? buffers.logits : tensor({C, config.vocab_size});
  buffers.dx = tensor({T, H});
  buffers.dx_sums = f32 ? buffers.dx : cut.f32({T, H});
  buffers.dh = tensor({T, H});
  buffers.dqkv = tensor({T, Q});
  buffers.dattention = tensor({T, A * D});
  buffers.dact = tensor({T, F});
  buffers.dpicked = tensor({C, H});
  // One workspace serves all norms, because they run one after another: it has the largest size.
  buffers.norm_sums = cut.f32(
      {std::max({norm_sums(T, H), norm_sums(T * A, D), norm_sums(T * B, D), norm_sums(C, H)})});
  buffers.attention_sums = cut.f32({kernels::attention_backward_workspace(
      device, device::tensor(nullptr, config.dtype, {T, A, D}),
      device::tensor(nullptr, config.dtype, {T, B, D}))});
}

std::size_t train_buffer_bytes(const ModelConfig& config, const TrainLimits& limits,
                               device::DeviceKind device) {
  BufferCutter cut(nullptr);
  TrainBuffers buffers;
  cut_train_buffers(cut, config, device, limits, buffers);
  return cut.bytes();
}

TrainTables cut_train_tables(BufferCutter& cut, const ModelConfig& config, std::int64_t T,
                             std::int64_t M, std::int64_t S) {
  // Segments are cut as words, because the cutter knows no other types of tables.
  constexpr std::int64_t kWords = sizeof(kernels::Segment) / sizeof(std::int32_t);
  TrainTables tables{.tokens = cut.i32(T),
                     .positions = cut.i32(T),
                     .ones = cut_ones(cut, config, T),
                     .item_rows = cut.i32(M),
                     .item_targets = cut.i32(M),
                     .segments = {}};
  tables.segments = {reinterpret_cast<kernels::Segment*>(cut.i32(S * kWords).data()),
                     static_cast<std::size_t>(S)};
  return tables;
}

std::size_t train_table_bytes(const ModelConfig& config, const TrainLimits& limits) {
  BufferCutter cut(nullptr);
  cut_train_tables(cut, config, limits.rows_max, limits.items_max, limits.rows_max);
  return cut.bytes();
}

PerItem cut_per_item(BufferCutter& cut, std::int64_t M) {
  return {.logprob = cut.f32({M}), .entropy = cut.f32({M})};
}

std::size_t per_item_bytes(std::int64_t M, bool with_entropy) {
  BufferCutter cut(nullptr);
  cut.f32({M});
  if (with_entropy) cut.f32({M});
  return cut.bytes();
}

}  // namespace tandem::model
