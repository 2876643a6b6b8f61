// TrainDecoder: forward and hand-written backward of a packed batch.
//
// Memory decides the shape of this file. Activations of all layers are kept for backward; logits
// are not, because V is large: a chunk of them is computed, reduced to log-probabilities, and
// computed again in backward at the price of one more product with the head. (A batch whose logits
// fit one chunk keeps them.) With checkpointing a layer's activations are computed again too, from
// its input: backward needs the memory of one layer, and repeats all of forward except each layer's
// last product.
//
// Where activations are bf16, logits and sums that are scattered into a gradient are still f32.
//
// Data of the host (tables, and two numbers for each item) lies in staged memory, and is copied
// once per call. Everything else stays on the device.
#include <algorithm>
#include <vector>

#include "actors/model/decoder.h"
#include "actors/model/decoder_parts.h"
#include "actors/model/parameters.h"
#include "actors/model/train_buffers.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/log_prob.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"
#include "kernels/ops/swiglu.h"
#include "runtime/base/check.h"
#include "runtime/device/queue.h"
#include "runtime/device/staged.h"

namespace tandem::model {
namespace {

using device::columns;
using device::DeviceKind;
using device::rows;
using device::split_heads;
using device::Stream;
using device::tensor;
using device::TensorView;
using kernels::Output;

// Backward of y = x weight^T: writes dx (=) and adds to dweight (+=).
struct MatrixBackward {
  TensorView dy, x;
  const MatrixOperand& weight;
  TensorView dx, dweight;
  kernels::Rows rows;
};
void matrix_backward(const Stream& stream, const MatrixBackward& of) {
  kernels::matmul(stream,
                  kernels::MatmulBackwardInput{
                      .dy = of.dy, .weight = of.weight.plain, .dx = of.dx, .rows = of.rows});
  kernels::matmul(stream,
                  kernels::MatmulBackwardWeight{.dy = of.dy, .x = of.x, .dweight = of.dweight});
}

// One layer's gradients, as views of the gradient arena.
struct LayerGradients {
  TensorView input_norm, qkv, o, post_attention_norm, gate_up, down;
  OptionalVectors vectors;
};

LayerGradients layer_gradients(const device::Arena& gradients, std::int64_t layer) {
  const LayerNames names(layer);
  return {.input_norm = gradients.view(names.input_norm),
          .qkv = gradients.fused(names.q, names.v),
          .o = gradients.view(names.o),
          .post_attention_norm = gradients.view(names.post_attention_norm),
          .gate_up = gradients.fused(names.gate, names.up),
          .down = gradients.view(names.down),
          .vectors = optional_vectors(gradients, names)};
}

// Views of the gradient arena, made when an arena is first seen, so that names are looked up once.
struct Gradients {
  const void* base = nullptr;
  TensorView embedding, final_norm, head;
  std::vector<LayerGradients> layers;

  void bind(const ModelConfig& config, const device::Arena& arena) {
    if (base == arena.flat().data) return;
    base = arena.flat().data;
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

void copy(const Stream& stream, const TensorView& from, const TensorView& to) {
  device::copy(stream, to.data, from.data, device::size_bytes(from));
}

}  // namespace

struct TrainDecoder::Workspace {
  ModelConfig config;
  device::Manifest master;                 // the layout of gradients and of the master weights
  std::vector<std::int64_t> layer_begins;  // in that layout, in floats (parameters.h)
  TrainLimits limits;
  DeviceKind device = DeviceKind::kCpu;
  RotaryTable rotary;
  device::Buffer memory;
  device::Staged table_memory, score_memory, slope_memory;
  // The buffers and tables are cut for the batch that forward() computed last.
  TrainBuffers now;
  TrainTables tables;  // host side
  PerItem scores;      // host side of forward's results
  PerItem slopes;      // host side of the derivatives that the caller gives to backward()
  std::size_t table_bytes_used = 0;
  Gradients sums;            // the gradient arena's views
  bool has_entropy = false;  // forward() computed entropies
  bool consumed = true;      // backward() has overwritten the activations

  float eps() const { return static_cast<float>(config.rms_norm_eps); }
  TensorView on_device(std::span<std::int32_t> table) const {
    return table_memory.on_device(tensor(table.data(), {std::ssize(table)}));
  }
  TensorView positions() const { return on_device(tables.positions); }
  TensorView ones() const {
    return config.qkv_bias() ? table_memory.on_device(tables.ones) : TensorView{};
  }
  std::span<const kernels::Segment> segments() const {
    return {table_memory.on_device(tables.segments.data()), tables.segments.size()};
  }
  void cut(std::int64_t T, std::int64_t M, std::int64_t S);
  void lay_out(const PackedBatch& batch);
  void norm(const Stream& stream, const TensorView& x, const TensorView& weight,
            const TensorView& y, const TensorView& inv) const {
    kernels::rms_norm(stream,
                      {.x = x, .weight = weight, .y = y, .inv_rms = inv, .eps = eps(), .add = {}});
  }
  void attend(const Stream& stream, const LayerWeights& weights,
              const LayerActivations& layer) const;
  void activate(const Stream& stream, const LayerWeights& weights,
                const LayerActivations& layer) const;
  void feed_forward(const Stream& stream, const LayerWeights& weights,
                    const LayerActivations& layer, const TensorView& out) const;
  void attend_backward(const Stream& stream, const LayerWeights& weights,
                       const LayerActivations& layer, const LayerGradients& gradients) const;
  void feed_forward_backward(const Stream& stream, const LayerWeights& weights,
                             const LayerActivations& layer, const LayerGradients& gradients) const;

  void score_items(const Stream& stream, const Weights& weights, float temperature) const;
  void head_backward(const Stream& stream, const Weights& weights, float temperature,
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

std::size_t TrainDecoder::workspace_bytes(const ModelConfig& config, const TrainLimits& limits,
                                          DeviceKind device) {
  return train_buffer_bytes(config, limits, device) + train_table_bytes(config, limits) +
         2 * per_item_bytes(limits.items_max, true) +
         RotaryTable::bytes(config, limits.positions_max);
}

Result<TrainDecoder> TrainDecoder::make(const ModelConfig& config, const TrainLimits& limits,
                                        DeviceKind device) {
  Result<RotaryTable> rotary = RotaryTable::make(config, limits.positions_max, device);
  if (!rotary) return rotary.error();
  Result<device::Buffer> memory =
      device::Buffer::allocate(train_buffer_bytes(config, limits, device),
                               "the training activations", device::operand_memory(device));
  if (!memory) return memory.error();
  auto workspace = std::make_unique<Workspace>();
  struct Block {
    device::Staged& memory;
    std::size_t bytes;
    const char* purpose;
  };
  const std::size_t per_item = per_item_bytes(limits.items_max, true);
  for (const Block& block :
       {Block{workspace->table_memory, train_table_bytes(config, limits),
              "the training batch's tables"},
        Block{workspace->score_memory, per_item, "the training batch's log-probabilities"},
        Block{workspace->slope_memory, per_item, "the gradients of log-probabilities"}}) {
    Result<device::Staged> staged = device::Staged::allocate(block.bytes, block.purpose, device);
    if (!staged) return staged.error();
    block.memory = *std::move(staged);
  }
  workspace->config = config;
  workspace->master = make_manifest(config);
  workspace->layer_begins = layer_begins(config);
  workspace->limits = limits;
  workspace->device = device;
  workspace->rotary = *std::move(rotary);
  workspace->memory = *std::move(memory);
  workspace->now.layers.reserve(static_cast<std::size_t>(config.layers));
  return TrainDecoder(std::move(workspace));
}

void TrainDecoder::Workspace::cut(std::int64_t T, std::int64_t M, std::int64_t S) {
  CHECK(T >= 1 && T <= limits.rows_max && M <= limits.items_max && S <= T);
  BufferCutter buffers(memory.data()), table_cut(table_memory.host());
  BufferCutter score_cut(score_memory.host()), slope_cut(slope_memory.host());
  cut_train_buffers(buffers, config, device,
                    {.rows_max = T,
                     .items_max = M,
                     .positions_max = limits.positions_max,
                     .checkpointing = limits.checkpointing},
                    now);
  CHECK(buffers.bytes() <= memory.size());
  tables = cut_train_tables(table_cut, config, T, M, S);
  if (config.qkv_bias()) fill_ones(tables.ones);
  table_bytes_used = table_cut.bytes();
  scores = cut_per_item(score_cut, M);
  slopes = cut_per_item(slope_cut, M);
}

// Fills the tables and checks that segments tile the rows and refer to prefixes in front of them.
void TrainDecoder::Workspace::lay_out(const PackedBatch& batch) {
  const std::int64_t T = std::ssize(batch.tokens), M = std::ssize(batch.items);
  CHECK(batch.temperature > 0);
  cut(T, M, std::ssize(batch.segments));
  for (std::int64_t t = 0; t < T; ++t) {
    CHECK(batch.tokens[t] >= 0 && batch.tokens[t] < config.vocab_size);
    tables.tokens[t] = batch.tokens[t];
  }
  std::int64_t row = 0;
  kernels::Segment root;  // the last one without prefix
  for (const kernels::Segment& segment : batch.segments) {
    CHECK(segment.begin == row && segment.len >= 1 && row + segment.len <= T);
    if (segment.prefix_len == 0) root = segment;
    CHECK(segment.prefix_len >= 0 && segment.prefix_len <= root.len);
    CHECK(segment.prefix_len == 0 || segment.prefix_begin == root.begin);
    CHECK(segment.prefix_len + segment.len <= limits.positions_max);
    for (std::int32_t i = 0; i < segment.len; ++i) tables.positions[row++] = segment.prefix_len + i;
  }
  CHECK(row == T);
  std::copy(batch.segments.begin(), batch.segments.end(), tables.segments.begin());
  for (std::int64_t m = 0; m < M; ++m) {
    const LogprobItem& item = batch.items[m];
    CHECK(item.row >= 0 && item.row < T && item.target >= 0 && item.target < config.vocab_size);
    tables.item_rows[m] = item.row;
    tables.item_targets[m] = item.target;
  }
}

// layer.x2 = layer.x + attention(norm(layer.x))
void TrainDecoder::Workspace::attend(const Stream& stream, const LayerWeights& weights,
                                     const LayerActivations& layer) const {
  norm(stream, layer.x, weights.input_norm, layer.h, layer.inv);
  multiply_qkv(stream, {.weights = weights,
                        .h = layer.h,
                        .ones = ones(),
                        .qkv = layer.qkv,
                        .rows = limits.products});
  const Heads raw = split_qkv(config, layer.qkv);
  const TensorView q = split_heads(layer.q, config.heads);
  const TensorView k = split_heads(layer.k, config.kv_heads);
  if (config.qk_norm()) {
    norm(stream, raw.q, weights.q_norm, q, layer.inv_q);
    norm(stream, raw.k, weights.k_norm, k, layer.inv_k);
  }
  for (const TensorView& turned : {q, k})
    kernels::rope(stream,
                  {.x = turned, .positions = positions(), .cos = rotary.cos, .sin = rotary.sin});
  kernels::attention(stream,
                     kernels::AttentionPacked{.q = q,
                                              .k = k,
                                              .v = raw.v,
                                              .segments = segments(),
                                              .scale = attention_scale(config),
                                              .out = split_heads(layer.attention, config.heads),
                                              .lse = layer.lse});
  copy(stream, layer.x, layer.x2);
  kernels::matmul(stream, kernels::Matmul{.x = layer.attention,
                                          .weight = weights.o.packed,
                                          .y = layer.x2,
                                          .output = Output::kAdd,
                                          .rows = limits.products});
}

// layer.act = silu(g) * u, the input of the down projection
void TrainDecoder::Workspace::activate(const Stream& stream, const LayerWeights& weights,
                                       const LayerActivations& layer) const {
  norm(stream, layer.x2, weights.post_attention_norm, layer.h2, layer.inv2);
  kernels::matmul(stream, kernels::Matmul{.x = layer.h2,
                                          .weight = weights.gate_up.packed,
                                          .y = layer.gate_up,
                                          .rows = limits.products});
  kernels::swiglu(stream, kernels::Swiglu{.x = layer.gate_up, .y = layer.act});
}

// out = layer.x2 + mlp(norm(layer.x2))
void TrainDecoder::Workspace::feed_forward(const Stream& stream, const LayerWeights& weights,
                                           const LayerActivations& layer,
                                           const TensorView& out) const {
  activate(stream, weights, layer);
  copy(stream, layer.x2, out);
  kernels::matmul(stream, kernels::Matmul{.x = layer.act,
                                          .weight = weights.down.packed,
                                          .y = out,
                                          .output = Output::kAdd,
                                          .rows = limits.products});
}

TrainDecoder::Workspace::Chunk TrainDecoder::Workspace::chunk(std::int64_t begin) const {
  const std::int64_t count =
      std::min(std::ssize(tables.item_rows) - begin, logit_rows_per_chunk(config, device));
  return {.begin = begin,
          .count = count,
          .rows = rows(on_device(tables.item_rows), begin, count),
          .targets = rows(on_device(tables.item_targets), begin, count),
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
  kernels::matmul(
      stream,
      kernels::Matmul{
          .x = part.h, .weight = weights.head().packed, .y = part.logits, .rows = limits.products});
}

// Fills the device side of `scores`, chunk by chunk.
void TrainDecoder::Workspace::score_items(const Stream& stream, const Weights& weights,
                                          float temperature) const {
  const TensorView logprob = score_memory.on_device(scores.logprob);
  const TensorView entropy = score_memory.on_device(scores.entropy);
  const std::int64_t M = std::ssize(tables.item_rows);
  for (std::int64_t at = 0; at < M;) {
    const Chunk part = chunk(at);
    chunk_logits(stream, weights, part);
    kernels::log_prob(
        stream,
        kernels::LogProb{.logits = part.logits,
                         .targets = part.targets,
                         .temperature = temperature,
                         .log_prob = rows(logprob, at, part.count),
                         .entropy = has_entropy ? rows(entropy, at, part.count) : TensorView{},
                         .lse = rows(now.lse, at, part.count)});
    at += part.count;
  }
}

void TrainDecoder::forward(const Stream& stream, const Weights& weights, const PackedBatch& batch,
                           std::span<float> logprob, std::span<float> entropy,
                           const WeightsNeeded& needed) {
  Workspace& w = *work_;
  CHECK(stream.device == w.device && logprob.size() == batch.items.size());
  CHECK(entropy.empty() || entropy.size() == batch.items.size());
  // A GPU may not yet have read the staged blocks of the last backward(), which are filled anew
  // here. On a CPU this wait is free.
  device::synchronize(stream);
  w.lay_out(batch);
  w.consumed = false;
  // Room for entropies is always there; without them the kernel and the download skip that half.
  w.has_entropy = !entropy.empty();
  w.table_memory.upload(stream, w.table_bytes_used);
  const auto need = [&](std::int64_t end) {
    if (needed) needed(end);
  };
  need(w.layer_begins.front());
  kernels::embedding(stream, kernels::Embedding{.ids = w.on_device(w.tables.tokens),
                                                .table = weights.embedding().plain,
                                                .y = w.now.layers.front().x,
                                                .drawn = {},
                                                .packed = weights.embedding().packed});
  for (std::size_t i = 0; i < w.now.layers.size(); ++i) {
    const LayerActivations& layer = w.now.layers[i];
    const LayerWeights& of = weights.layer(static_cast<std::int64_t>(i));
    need(w.layer_begins[i + 1]);
    w.attend(stream, of, layer);
    w.feed_forward(stream, of, layer,
                   i + 1 < w.now.layers.size() ? w.now.layers[i + 1].x : w.now.x);
  }
  need(static_cast<std::int64_t>(w.master.bytes_total / sizeof(float)));
  w.score_items(stream, weights, batch.temperature);
  const std::int64_t M = std::ssize(batch.items);
  w.score_memory.download(stream, per_item_bytes(M, w.has_entropy));
  device::synchronize(stream);
  std::copy_n(w.scores.logprob.f32(), M, logprob.data());
  if (w.has_entropy) std::copy_n(w.scores.entropy.f32(), M, entropy.data());
}

// Turns now.dx from the gradient of the layer's output into that of layer.x2: the residual passes
// it on as it is, and the norm's backward adds the MLP's part. Overwrites layer.gate_up.
void TrainDecoder::Workspace::feed_forward_backward(const Stream& stream,
                                                    const LayerWeights& weights,
                                                    const LayerActivations& layer,
                                                    const LayerGradients& gradients) const {
  matrix_backward(stream, {.dy = now.dx,
                           .x = layer.act,
                           .weight = weights.down,
                           .dx = now.dact,
                           .dweight = gradients.down,
                           .rows = limits.products});
  kernels::swiglu(stream,
                  kernels::SwigluBackward{.dy = now.dact, .x = layer.gate_up, .dx = layer.gate_up});
  matrix_backward(stream, {.dy = layer.gate_up,
                           .x = layer.h2,
                           .weight = weights.gate_up,
                           .dx = now.dh,
                           .dweight = gradients.gate_up,
                           .rows = limits.products});
  kernels::rms_norm(stream, kernels::RmsNormBackward{.dy = now.dh,
                                                     .x = layer.x2,
                                                     .weight = weights.post_attention_norm,
                                                     .inv_rms = layer.inv2,
                                                     .dx = now.dx,
                                                     .dweight = gradients.post_attention_norm,
                                                     .workspace = now.norm_sums});
}

// Turns now.dx from the gradient of layer.x2 into that of layer.x, in the same way.
void TrainDecoder::Workspace::attend_backward(const Stream& stream, const LayerWeights& weights,
                                              const LayerActivations& layer,
                                              const LayerGradients& gradients) const {
  const Heads raw = split_qkv(config, layer.qkv), d = split_qkv(config, now.dqkv);
  matrix_backward(stream, {.dy = now.dx,
                           .x = layer.attention,
                           .weight = weights.o,
                           .dx = now.dattention,
                           .dweight = gradients.o,
                           .rows = limits.products});
  kernels::attention(stream,
                     kernels::AttentionBackward{.dout = split_heads(now.dattention, config.heads),
                                                .q = split_heads(layer.q, config.heads),
                                                .k = split_heads(layer.k, config.kv_heads),
                                                .v = raw.v,
                                                .out = split_heads(layer.attention, config.heads),
                                                .lse = layer.lse,
                                                .segments = segments(),
                                                .scale = attention_scale(config),
                                                .dq = d.q,
                                                .dk = d.k,
                                                .dv = d.v,
                                                .workspace = now.attention_sums});
  struct Side {
    TensorView d, raw, inv, weight, dweight;
  };
  const OptionalVectors& into = gradients.vectors;
  for (const Side& side : {Side{d.q, raw.q, layer.inv_q, weights.q_norm, into.q_norm},
                           Side{d.k, raw.k, layer.inv_k, weights.k_norm, into.k_norm}}) {
    kernels::rope(stream, {.x = side.d,
                           .positions = positions(),
                           .cos = rotary.cos,
                           .sin = rotary.sin,
                           .direction = kernels::Direction::kBackward});
    if (!config.qk_norm()) continue;
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
                           .dweight = gradients.qkv,
                           .rows = limits.products});
  if (config.qkv_bias())
    kernels::matmul(stream, kernels::MatmulBackwardWeight{
                                .dy = now.dqkv, .x = ones(), .dweight = into.qkv_bias});
  kernels::rms_norm(stream, kernels::RmsNormBackward{.dy = now.dh,
                                                     .x = layer.x,
                                                     .weight = weights.input_norm,
                                                     .inv_rms = layer.inv,
                                                     .dx = now.dx,
                                                     .dweight = gradients.input_norm,
                                                     .workspace = now.norm_sums});
}

// Computes now.dx, the gradient of the last residual, from the derivatives of the items. Rows are
// added up in f32 (dx_sums), because several items may pick the same row.
void TrainDecoder::Workspace::head_backward(const Stream& stream, const Weights& weights,
                                            float temperature, const TensorView& dlogprob,
                                            const TensorView& dentropy) const {
  const TensorView entropy = score_memory.on_device(scores.entropy);
  const std::int64_t M = std::ssize(tables.item_rows);
  const bool logits_kept = M <= logit_rows_per_chunk(config, device);
  device::zero(stream, now.dx_sums.data, device::size_bytes(now.dx_sums));
  for (std::int64_t at = 0; at < M;) {
    const Chunk part = chunk(at);
    const TensorView dpicked = rows(now.dpicked, 0, part.count);
    const TensorView dlogits = rows(now.dlogits, 0, part.count);
    const bool with_entropy = !dentropy.empty();
    if (!logits_kept) chunk_logits(stream, weights, part);
    kernels::log_prob(stream,
                      kernels::LogProbBackward{
                          .logits = part.logits,
                          .targets = part.targets,
                          .temperature = temperature,
                          .lse = rows(now.lse, at, part.count),
                          .entropy = with_entropy ? rows(entropy, at, part.count) : TensorView{},
                          .dlog_prob = rows(dlogprob, at, part.count),
                          .dentropy = with_entropy ? rows(dentropy, at, part.count) : TensorView{},
                          .dlogits = dlogits});
    matrix_backward(stream, {.dy = dlogits,
                             .x = part.h,
                             .weight = weights.head(),
                             .dx = dpicked,
                             .dweight = sums.head,
                             .rows = limits.products});
    kernels::rms_norm(stream, kernels::RmsNormBackward{.dy = dpicked,
                                                       .x = part.picked,
                                                       .weight = weights.final_norm(),
                                                       .inv_rms = part.inv,
                                                       .dx = dpicked,
                                                       .output = Output::kWrite,
                                                       .dweight = sums.final_norm,
                                                       .workspace = now.norm_sums});
    kernels::embedding(
        stream, kernels::EmbeddingBackward{.ids = part.rows, .dy = dpicked, .dtable = now.dx_sums});
    at += part.count;
  }
  if (now.dx.dtype == device::DType::kF32) return;
  const std::int64_t count = now.dx.elements();
  kernels::convert(
      stream, {.x = device::reshape(now.dx_sums, {count}), .y = device::reshape(now.dx, {count})});
}

void TrainDecoder::backward(const Stream& stream, const Weights& weights, const PackedBatch& batch,
                            std::span<const float> dlogprob, std::span<const float> dentropy,
                            const device::Arena& gradients, const GradientsFinished& finished) {
  Workspace& w = *work_;
  const std::int64_t T = std::ssize(w.tables.tokens), M = std::ssize(w.tables.item_rows);
  CHECK(stream.device == w.device && !w.consumed && weights.use() != WeightsUse::kInference);
  CHECK(gradients.manifest() == w.master);
  CHECK(std::ssize(batch.tokens) == T && std::ssize(batch.items) == M);
  CHECK(std::ssize(dlogprob) == M && (dentropy.empty() || std::ssize(dentropy) == M));
  CHECK(dentropy.empty() || w.has_entropy);
  w.consumed = true;
  w.sums.bind(w.config, gradients);
  std::copy(dlogprob.begin(), dlogprob.end(), w.slopes.logprob.f32());
  std::copy(dentropy.begin(), dentropy.end(), w.slopes.entropy.f32());
  w.slope_memory.upload(stream, per_item_bytes(M, !dentropy.empty()));
  const auto tell = [&](const TensorView& first) {
    if (finished) finished(first.f32() - gradients.flat().f32());
  };
  w.head_backward(stream, weights, batch.temperature, w.slope_memory.on_device(w.slopes.logprob),
                  dentropy.empty() ? TensorView{} : w.slope_memory.on_device(w.slopes.entropy));
  // DE-4: an untied head lies behind the final norm. A tied head's gradient goes into the
  // embedding, which is announced last.
  tell(w.sums.final_norm);
  for (std::int64_t i = w.config.layers - 1; i >= 0; --i) {
    const LayerActivations& layer = w.now.layers[static_cast<std::size_t>(i)];
    const LayerGradients& into = w.sums.layers[static_cast<std::size_t>(i)];
    // The shared memory still has the last layer's activations. The down projection is not
    // repeated: its result is the next layer's x.
    if (w.limits.checkpointing && i + 1 < w.config.layers) {
      w.attend(stream, weights.layer(i), layer);
      w.activate(stream, weights.layer(i), layer);
    }
    w.feed_forward_backward(stream, weights.layer(i), layer, into);
    w.attend_backward(stream, weights.layer(i), layer, into);
    tell(into.input_norm);
  }
  kernels::embedding(
      stream, kernels::EmbeddingBackward{
                  .ids = w.on_device(w.tables.tokens), .dy = w.now.dx, .dtable = w.sums.embedding});
  tell(w.sums.embedding);
}

}  // namespace tandem::model
