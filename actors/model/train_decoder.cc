// Activations are kept, logits are not: a chunk of them is made, reduced to log-probabilities and
// made again in backward (one more product with the head). A batch whose logits fit one chunk keeps
// them. Recomputing the layers too (checkpointing) would save more memory and cost a third more
// time; at the sizes that a CPU trains, memory is not what is short.
#include <algorithm>
#include <cstring>
#include <vector>

#include "actors/model/decoder.h"
#include "actors/model/decoder_parts.h"
#include "actors/model/parameters.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/log_prob.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"
#include "kernels/ops/swiglu.h"
#include "runtime/base/check.h"

namespace tandem::actors {
namespace {

using kernels::Output;
using runtime::columns;
using runtime::rows;
using runtime::split_heads;
using runtime::Stream;
using runtime::tensor;
using runtime::TensorView;

constexpr std::int64_t kLogitsPerChunk = 1 << 20;
constexpr std::int64_t kChunkRowsMin = 16;

std::int64_t chunk_rows(const ModelConfig& config) {
  return std::max(kLogitsPerChunk / config.vocab_size, kChunkRowsMin);
}

// Of y = x times the weight: dx is written, dweight is added to.
struct MatrixBackward {
  TensorView dy, x;
  const MatrixOperand& weight;
  TensorView dx, dweight;
};
void matrix_backward(const Stream& stream, const MatrixBackward& of) {
  kernels::matmul(
      stream, kernels::MatmulBackwardInput{.dy = of.dy, .weight = of.weight.plain, .dx = of.dx});
  kernels::matmul(stream,
                  kernels::MatmulBackwardWeight{.dy = of.dy, .x = of.x, .dweight = of.dweight});
}

// What backward needs of one layer.
struct LayerActivations {
  TensorView x, inv, h;       // [T, H] [T] [T, H]  into attention: residual, its norm
  TensorView qkv;             // [T, Q]  before q/k-norm
  TensorView inv_q, inv_k;    // [T, A] [T, B]
  TensorView q, k;            // [T, A D] [T, B D]  normalised and turned
  TensorView attention, lse;  // [T, A D] [T, A]
  TensorView x2, inv2, h2;    // [T, H] [T] [T, H]  into the MLP
  TensorView gate_up, act;    // [T, 2 F] [T, F]
};

struct Buffers {
  std::vector<LayerActivations> layers;
  TensorView x;                                     // [T, H] the last residual
  std::span<std::int32_t> tokens, positions;        // [T]
  std::span<std::int32_t> item_rows, item_targets;  // [M]
  TensorView lse, entropy;                          // [M]
  TensorView picked, picked_inv, picked_h, logits;  // of one chunk: [C, H] [C] [C, H] [C, V]
  TensorView dx, dh;                                // [T, H]
  TensorView dqkv, dattention, dact;                // [T, Q] [T, A D] [T, F]
  TensorView dpicked;                               // [C, H]
  TensorView norm_sums;                             // rms_norm's workspace
};

// Cuts for T rows and M items; `buffers.layers` keeps its memory from call to call.
void cut_buffers(BufferCutter& cut, const ModelConfig& config, std::int64_t T, std::int64_t M,
                 Buffers& buffers) {
  const std::int64_t H = config.hidden_size, F = config.intermediate_size, Q = config.qkv_width();
  const std::int64_t A = config.heads, B = config.kv_heads, D = config.head_dim;
  const std::int64_t C = std::min(M, chunk_rows(config));
  buffers.layers.resize(static_cast<std::size_t>(config.layers));
  for (LayerActivations& layer : buffers.layers)
    layer = {.x = cut.f32({T, H}),
             .inv = cut.f32({T}),
             .h = cut.f32({T, H}),
             .qkv = cut.f32({T, Q}),
             .inv_q = cut.f32({T, A}),
             .inv_k = cut.f32({T, B}),
             .q = cut.f32({T, A * D}),
             .k = cut.f32({T, B * D}),
             .attention = cut.f32({T, A * D}),
             .lse = cut.f32({T, A}),
             .x2 = cut.f32({T, H}),
             .inv2 = cut.f32({T}),
             .h2 = cut.f32({T, H}),
             .gate_up = cut.f32({T, 2 * F}),
             .act = cut.f32({T, F})};
  buffers.x = cut.f32({T, H});
  buffers.tokens = cut.i32(T);
  buffers.positions = cut.i32(T);
  buffers.item_rows = cut.i32(M);
  buffers.item_targets = cut.i32(M);
  buffers.lse = cut.f32({M});
  buffers.entropy = cut.f32({M});
  buffers.picked = cut.f32({C, H});
  buffers.picked_inv = cut.f32({C});
  buffers.picked_h = cut.f32({C, H});
  buffers.logits = cut.f32({C, config.vocab_size});
  buffers.dx = cut.f32({T, H});
  buffers.dh = cut.f32({T, H});
  buffers.dqkv = cut.f32({T, Q});
  buffers.dattention = cut.f32({T, A * D});
  buffers.dact = cut.f32({T, F});
  buffers.dpicked = cut.f32({C, H});
  buffers.norm_sums = cut.f32(
      {std::max({kernels::rms_norm_workspace(T, H), kernels::rms_norm_workspace(T * A, D),
                 kernels::rms_norm_workspace(T * B, D), kernels::rms_norm_workspace(C, H)})});
}

std::size_t buffer_bytes(const ModelConfig& config, const TrainLimits& limits) {
  BufferCutter cut(nullptr);
  Buffers buffers;
  cut_buffers(cut, config, limits.rows_max, limits.items_max, buffers);
  return cut.bytes();
}

// One layer's gradients, as views of the gradient arena.
struct LayerGradients {
  TensorView input_norm, qkv, q_norm, k_norm, o, post_attention_norm, gate_up, down;
};

LayerGradients layer_gradients(const runtime::Arena& gradients, std::int64_t layer) {
  const LayerNames names(layer);
  return {.input_norm = gradients.view(names.input_norm),
          .qkv = gradients.fused(names.q, names.v),
          .q_norm = gradients.view(names.q_norm),
          .k_norm = gradients.view(names.k_norm),
          .o = gradients.view(names.o),
          .post_attention_norm = gradients.view(names.post_attention_norm),
          .gate_up = gradients.fused(names.gate, names.up),
          .down = gradients.view(names.down)};
}

// Views of the gradient arena, made when an arena is first seen: names are looked up once.
struct Gradients {
  const std::byte* base = nullptr;
  TensorView embedding, final_norm, head;
  std::vector<LayerGradients> layers;

  void bind(const ModelConfig& config, const runtime::Arena& arena) {
    if (base == arena.bytes().data()) return;
    base = arena.bytes().data();
    embedding = arena.view(kEmbeddingName);
    final_norm = arena.view(kFinalNormName);
    head = config.tie_word_embeddings ? embedding : arena.view(kHeadName);
    layers.clear();
    for (std::int64_t i = 0; i < config.layers; ++i) layers.push_back(layer_gradients(arena, i));
  }
};

struct Heads {  // the parts of a [T, Q] buffer
  TensorView q, k, v;
};

Heads split_qkv(const ModelConfig& config, const TensorView& qkv) {
  const std::int64_t q = config.q_width(), kv = config.kv_width();
  return {split_heads(columns(qkv, 0, q), config.heads),
          split_heads(columns(qkv, q, kv), config.kv_heads),
          split_heads(columns(qkv, q + kv, kv), config.kv_heads)};
}

void copy(const TensorView& from, const TensorView& to) {
  std::memcpy(to.f32(), from.f32(), static_cast<std::size_t>(from.elements()) * sizeof(float));
}

}  // namespace

struct TrainDecoder::Workspace {
  ModelConfig config;
  TrainLimits limits;
  RotaryTable rotary;
  runtime::HostBuffer memory;
  Buffers now;     // cut for the batch that forward() computed last
  Gradients sums;  // the gradient arena's views
  bool has_entropy = false;
  bool consumed = true;

  float eps() const { return static_cast<float>(config.rms_norm_eps); }
  TensorView positions() const { return tensor(now.positions.data(), {std::ssize(now.positions)}); }
  void lay_out(const PackedBatch& batch);
  void norm(const Stream& stream, const TensorView& x, const TensorView& weight,
            const TensorView& y, const TensorView& inv) const {
    kernels::rms_norm(stream,
                      {.x = x, .weight = weight, .y = y, .inv_rms = inv, .eps = eps(), .add = {}});
  }
  void attend(const Stream& stream, const LayerWeights& weights, const PackedBatch& batch,
              const LayerActivations& layer) const;
  void feed_forward(const Stream& stream, const LayerWeights& weights,
                    const LayerActivations& layer, const TensorView& out) const;
  void attend_backward(const Stream& stream, const LayerWeights& weights, const PackedBatch& batch,
                       const LayerActivations& layer, const LayerGradients& gradients) const;
  void feed_forward_backward(const Stream& stream, const LayerWeights& weights,
                             const LayerActivations& layer, const LayerGradients& gradients) const;

  void head_backward(const Stream& stream, const Weights& weights, const PackedBatch& batch,
                     const TensorView& dlogprob, const TensorView& dentropy) const;

  // Items [begin, begin + count) as one chunk.
  struct Chunk {
    std::int64_t begin, count;
    TensorView rows, targets;
    TensorView picked, inv, h, logits;
  };
  Chunk chunk(std::int64_t begin) const;
  void chunk_logits(const Stream& stream, const Weights& weights, const Chunk& part) const;
};

TrainDecoder::TrainDecoder(std::unique_ptr<Workspace> workspace) : work_(std::move(workspace)) {}
TrainDecoder::TrainDecoder(TrainDecoder&&) noexcept = default;
TrainDecoder& TrainDecoder::operator=(TrainDecoder&&) noexcept = default;
TrainDecoder::~TrainDecoder() = default;

std::size_t TrainDecoder::workspace_bytes(const ModelConfig& config, const TrainLimits& limits) {
  return buffer_bytes(config, limits) + RotaryTable::bytes(config, limits.positions_max);
}

Result<TrainDecoder> TrainDecoder::make(const ModelConfig& config, const TrainLimits& limits) {
  Result<RotaryTable> rotary = RotaryTable::make(config, limits.positions_max);
  if (!rotary) return rotary.error();
  Result<runtime::HostBuffer> memory =
      runtime::HostBuffer::allocate(buffer_bytes(config, limits), "the training activations");
  if (!memory) return memory.error();
  auto workspace = std::make_unique<Workspace>();
  workspace->config = config;
  workspace->limits = limits;
  workspace->rotary = *std::move(rotary);
  workspace->memory = *std::move(memory);
  workspace->now.layers.reserve(static_cast<std::size_t>(config.layers));
  return TrainDecoder(std::move(workspace));
}

void TrainDecoder::Workspace::lay_out(const PackedBatch& batch) {
  const std::int64_t T = std::ssize(batch.tokens), M = std::ssize(batch.items);
  CHECK(T >= 1 && T <= limits.rows_max && M <= limits.items_max && batch.temperature > 0);
  BufferCutter cut(memory.data());
  cut_buffers(cut, config, T, M, now);
  CHECK(cut.bytes() <= memory.size());
  for (std::int64_t t = 0; t < T; ++t) {
    CHECK(batch.tokens[t] >= 0 && batch.tokens[t] < config.vocab_size);
    now.tokens[t] = batch.tokens[t];
  }
  std::int64_t row = 0;
  for (const kernels::Segment& segment : batch.segments) {
    CHECK(segment.begin == row && segment.len >= 1 && row + segment.len <= T);
    CHECK(segment.prefix_len >= 0 && segment.prefix_begin + segment.prefix_len <= row);
    CHECK(segment.prefix_len + segment.len <= limits.positions_max);
    for (std::int32_t i = 0; i < segment.len; ++i) now.positions[row++] = segment.prefix_len + i;
  }
  CHECK(row == T);
  for (std::int64_t m = 0; m < M; ++m) {
    const LogprobItem& item = batch.items[m];
    CHECK(item.row >= 0 && item.row < T && item.target >= 0 && item.target < config.vocab_size);
    now.item_rows[m] = item.row;
    now.item_targets[m] = item.target;
  }
}

// layer.x2 = layer.x + attention(norm(layer.x))
void TrainDecoder::Workspace::attend(const Stream& stream, const LayerWeights& weights,
                                     const PackedBatch& batch,
                                     const LayerActivations& layer) const {
  norm(stream, layer.x, weights.input_norm, layer.h, layer.inv);
  kernels::matmul(stream,
                  kernels::Matmul{.x = layer.h, .weight = weights.qkv.packed, .y = layer.qkv});
  const Heads raw = split_qkv(config, layer.qkv);
  const TensorView q = split_heads(layer.q, config.heads);
  const TensorView k = split_heads(layer.k, config.kv_heads);
  norm(stream, raw.q, weights.q_norm, q, layer.inv_q);
  norm(stream, raw.k, weights.k_norm, k, layer.inv_k);
  for (const TensorView& turned : {q, k})
    kernels::rope(stream,
                  {.x = turned, .positions = positions(), .cos = rotary.cos, .sin = rotary.sin});
  kernels::attention(stream,
                     kernels::AttentionPacked{.q = q,
                                              .k = k,
                                              .v = raw.v,
                                              .segments = batch.segments,
                                              .scale = attention_scale(config),
                                              .out = split_heads(layer.attention, config.heads),
                                              .lse = layer.lse});
  copy(layer.x, layer.x2);
  kernels::matmul(
      stream,
      kernels::Matmul{
          .x = layer.attention, .weight = weights.o.packed, .y = layer.x2, .output = Output::kAdd});
}

// out = layer.x2 + mlp(norm(layer.x2))
void TrainDecoder::Workspace::feed_forward(const Stream& stream, const LayerWeights& weights,
                                           const LayerActivations& layer,
                                           const TensorView& out) const {
  norm(stream, layer.x2, weights.post_attention_norm, layer.h2, layer.inv2);
  kernels::matmul(
      stream, kernels::Matmul{.x = layer.h2, .weight = weights.gate_up.packed, .y = layer.gate_up});
  kernels::swiglu(stream, kernels::Swiglu{.x = layer.gate_up, .y = layer.act});
  copy(layer.x2, out);
  kernels::matmul(
      stream, kernels::Matmul{
                  .x = layer.act, .weight = weights.down.packed, .y = out, .output = Output::kAdd});
}

TrainDecoder::Workspace::Chunk TrainDecoder::Workspace::chunk(std::int64_t begin) const {
  const std::int64_t count = std::min(std::ssize(now.item_rows) - begin, chunk_rows(config));
  return {.begin = begin,
          .count = count,
          .rows = tensor(now.item_rows.data() + begin, {count}),
          .targets = tensor(now.item_targets.data() + begin, {count}),
          .picked = rows(now.picked, 0, count),
          .inv = rows(now.picked_inv, 0, count),
          .h = rows(now.picked_h, 0, count),
          .logits = rows(now.logits, 0, count)};
}

void TrainDecoder::Workspace::chunk_logits(const Stream& stream, const Weights& weights,
                                           const Chunk& part) const {
  kernels::embedding(stream,
                     kernels::Embedding{.ids = part.rows, .table = now.x, .y = part.picked});
  norm(stream, part.picked, weights.final_norm(), part.h, part.inv);
  kernels::matmul(stream,
                  kernels::Matmul{.x = part.h, .weight = weights.head().packed, .y = part.logits});
}

void TrainDecoder::forward(const Stream& stream, const Weights& weights, const PackedBatch& batch,
                           std::span<float> logprob, std::span<float> entropy) {
  Workspace& w = *work_;
  CHECK(logprob.size() == batch.items.size());
  CHECK(entropy.empty() || entropy.size() == batch.items.size());
  w.lay_out(batch);
  w.consumed = false;
  w.has_entropy = !entropy.empty();
  const std::int64_t T = std::ssize(batch.tokens), M = std::ssize(batch.items);
  kernels::embedding(stream, kernels::Embedding{.ids = tensor(w.now.tokens.data(), {T}),
                                                .table = weights.embedding(),
                                                .y = w.now.layers.front().x});
  for (std::size_t i = 0; i < w.now.layers.size(); ++i) {
    const LayerActivations& layer = w.now.layers[i];
    const LayerWeights& of = weights.layer(static_cast<std::int64_t>(i));
    w.attend(stream, of, batch, layer);
    w.feed_forward(stream, of, layer,
                   i + 1 < w.now.layers.size() ? w.now.layers[i + 1].x : w.now.x);
  }
  for (std::int64_t at = 0; at < M;) {
    const Workspace::Chunk part = w.chunk(at);
    w.chunk_logits(stream, weights, part);
    kernels::log_prob(
        stream, kernels::LogProb{
                    .logits = part.logits,
                    .targets = part.targets,
                    .temperature = batch.temperature,
                    .log_prob = tensor(logprob.data() + at, {part.count}),
                    .entropy = entropy.empty() ? TensorView{} : rows(w.now.entropy, at, part.count),
                    .lse = rows(w.now.lse, at, part.count)});
    at += part.count;
  }
  if (!entropy.empty()) std::copy_n(w.now.entropy.f32(), M, entropy.data());
}

// dx, the gradient of the layer's output, becomes that of layer.x2.
void TrainDecoder::Workspace::feed_forward_backward(const Stream& stream,
                                                    const LayerWeights& weights,
                                                    const LayerActivations& layer,
                                                    const LayerGradients& gradients) const {
  matrix_backward(stream, {.dy = now.dx,
                           .x = layer.act,
                           .weight = weights.down,
                           .dx = now.dact,
                           .dweight = gradients.down});
  kernels::swiglu(stream,
                  kernels::SwigluBackward{.dy = now.dact, .x = layer.gate_up, .dx = layer.gate_up});
  matrix_backward(stream, {.dy = layer.gate_up,
                           .x = layer.h2,
                           .weight = weights.gate_up,
                           .dx = now.dh,
                           .dweight = gradients.gate_up});
  kernels::rms_norm(stream, kernels::RmsNormBackward{.dy = now.dh,
                                                     .x = layer.x2,
                                                     .weight = weights.post_attention_norm,
                                                     .inv_rms = layer.inv2,
                                                     .dx = now.dx,
                                                     .dweight = gradients.post_attention_norm,
                                                     .workspace = now.norm_sums});
}

// dx, the gradient of layer.x2, becomes that of layer.x.
void TrainDecoder::Workspace::attend_backward(const Stream& stream, const LayerWeights& weights,
                                              const PackedBatch& batch,
                                              const LayerActivations& layer,
                                              const LayerGradients& gradients) const {
  const Heads raw = split_qkv(config, layer.qkv), d = split_qkv(config, now.dqkv);
  matrix_backward(stream, {.dy = now.dx,
                           .x = layer.attention,
                           .weight = weights.o,
                           .dx = now.dattention,
                           .dweight = gradients.o});
  kernels::attention(stream,
                     kernels::AttentionBackward{.dout = split_heads(now.dattention, config.heads),
                                                .q = split_heads(layer.q, config.heads),
                                                .k = split_heads(layer.k, config.kv_heads),
                                                .v = raw.v,
                                                .out = split_heads(layer.attention, config.heads),
                                                .lse = layer.lse,
                                                .segments = batch.segments,
                                                .scale = attention_scale(config),
                                                .dq = d.q,
                                                .dk = d.k,
                                                .dv = d.v});
  struct Side {
    TensorView d, raw, inv, weight, dweight;
  };
  for (const Side& side : {Side{d.q, raw.q, layer.inv_q, weights.q_norm, gradients.q_norm},
                           Side{d.k, raw.k, layer.inv_k, weights.k_norm, gradients.k_norm}}) {
    kernels::rope(stream, {.x = side.d,
                           .positions = positions(),
                           .cos = rotary.cos,
                           .sin = rotary.sin,
                           .direction = kernels::Direction::kBackward});
    kernels::rms_norm(stream, kernels::RmsNormBackward{.dy = side.d,
                                                       .x = side.raw,
                                                       .weight = side.weight,
                                                       .inv_rms = side.inv,
                                                       .dx = side.d,
                                                       .output = Output::kWrite,
                                                       .dweight = side.dweight,
                                                       .workspace = now.norm_sums});
  }
  matrix_backward(stream, {.dy = now.dqkv,
                           .x = layer.h,
                           .weight = weights.qkv,
                           .dx = now.dh,
                           .dweight = gradients.qkv});
  kernels::rms_norm(stream, kernels::RmsNormBackward{.dy = now.dh,
                                                     .x = layer.x,
                                                     .weight = weights.input_norm,
                                                     .inv_rms = layer.inv,
                                                     .dx = now.dx,
                                                     .dweight = gradients.input_norm,
                                                     .workspace = now.norm_sums});
}

// now.dx becomes the gradient of the last residual: what the items' log-probabilities say.
void TrainDecoder::Workspace::head_backward(const Stream& stream, const Weights& weights,
                                            const PackedBatch& batch, const TensorView& dlogprob,
                                            const TensorView& dentropy) const {
  const std::int64_t M = std::ssize(now.item_rows);
  const bool logits_kept = M <= chunk_rows(config);
  std::fill_n(now.dx.f32(), now.dx.elements(), 0.0f);
  for (std::int64_t at = 0; at < M;) {
    const Chunk part = chunk(at);
    const TensorView dpicked = rows(now.dpicked, 0, part.count);
    const bool with_entropy = !dentropy.empty();
    if (!logits_kept) chunk_logits(stream, weights, part);
    kernels::log_prob(
        stream, kernels::LogProbBackward{
                    .logits = part.logits,
                    .targets = part.targets,
                    .temperature = batch.temperature,
                    .lse = rows(now.lse, at, part.count),
                    .entropy = with_entropy ? rows(now.entropy, at, part.count) : TensorView{},
                    .dlog_prob = rows(dlogprob, at, part.count),
                    .dentropy = with_entropy ? rows(dentropy, at, part.count) : TensorView{},
                    .dlogits = part.logits});
    matrix_backward(stream, {.dy = part.logits,
                             .x = part.h,
                             .weight = weights.head(),
                             .dx = dpicked,
                             .dweight = sums.head});
    kernels::rms_norm(stream, kernels::RmsNormBackward{.dy = dpicked,
                                                       .x = part.picked,
                                                       .weight = weights.final_norm(),
                                                       .inv_rms = part.inv,
                                                       .dx = dpicked,
                                                       .output = Output::kWrite,
                                                       .dweight = sums.final_norm,
                                                       .workspace = now.norm_sums});
    kernels::embedding(
        stream, kernels::EmbeddingBackward{.ids = part.rows, .dy = dpicked, .dtable = now.dx});
    at += part.count;
  }
}

void TrainDecoder::backward(const Stream& stream, const Weights& weights, const PackedBatch& batch,
                            std::span<const float> dlogprob, std::span<const float> dentropy,
                            const runtime::Arena& gradients) {
  Workspace& w = *work_;
  const std::int64_t T = std::ssize(w.now.tokens), M = std::ssize(w.now.item_rows);
  CHECK(!w.consumed && weights.use() == WeightsUse::kTraining);
  CHECK(gradients.manifest() == weights.manifest());
  CHECK(std::ssize(batch.tokens) == T && std::ssize(batch.items) == M);
  CHECK(std::ssize(dlogprob) == M && (dentropy.empty() || std::ssize(dentropy) == M));
  CHECK(dentropy.empty() || w.has_entropy);
  w.consumed = true;
  w.sums.bind(w.config, gradients);
  w.head_backward(stream, weights, batch, tensor(dlogprob.data(), {M}),
                  dentropy.empty() ? TensorView{} : tensor(dentropy.data(), {M}));
  for (std::int64_t i = w.config.layers - 1; i >= 0; --i) {
    const LayerActivations& layer = w.now.layers[static_cast<std::size_t>(i)];
    const LayerGradients& into = w.sums.layers[static_cast<std::size_t>(i)];
    w.feed_forward_backward(stream, weights.layer(i), layer, into);
    w.attend_backward(stream, weights.layer(i), batch, layer, into);
  }
  kernels::embedding(stream, kernels::EmbeddingBackward{.ids = tensor(w.now.tokens.data(), {T}),
                                                        .dy = w.now.dx,
                                                        .dtable = w.sums.embedding});
}

}  // namespace tandem::actors
