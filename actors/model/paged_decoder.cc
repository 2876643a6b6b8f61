#include <algorithm>

#include "actors/model/decoder.h"
#include "actors/model/decoder_parts.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/kv_cache.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"
#include "kernels/ops/swiglu.h"
#include "runtime/base/check.h"
#include "runtime/device/queue.h"

namespace tandem::actors {
namespace {

using kernels::Output;
using runtime::columns;
using runtime::rows;
using runtime::split_heads;
using runtime::Stream;
using runtime::TensorView;

struct Buffers {
  TensorView x, h;       // [T, H] the residual; a normalised copy
  TensorView qkv;        // [T, Q]
  TensorView attention;  // [T, A D]
  TensorView gate_up;    // [T, 2 F]
  TensorView act;        // [T, F]
  TensorView picked;     // [R, H] rows whose logits are wanted
  TensorView logits;     // [R, V]
};

struct Tables {                                      // filled on the host
  std::span<std::int32_t> tokens, positions, slots;  // [T]
  std::span<std::int32_t> picks;                     // [R]
  std::span<std::int32_t> query_begin;               // [S + 1]
  std::span<std::int32_t> first_position;            // [S]
  std::span<std::int32_t> block_tables;              // [S, blocks]
};

std::int64_t blocks_for(std::int64_t positions, std::int64_t block) {
  return (positions + block - 1) / block;
}

Buffers cut_buffers(BufferCutter& cut, const ModelConfig& config, const PagedLimits& limits) {
  const std::int64_t T = limits.rows_max, R = limits.logit_rows_max;
  const std::int64_t H = config.hidden_size, F = config.intermediate_size;
  return {.x = cut.f32({T, H}),
          .h = cut.f32({T, H}),
          .qkv = cut.f32({T, config.qkv_width()}),
          .attention = cut.f32({T, config.q_width()}),
          .gate_up = cut.f32({T, 2 * F}),
          .act = cut.f32({T, F}),
          .picked = cut.f32({R, H}),
          .logits = cut.f32({R, config.vocab_size})};
}

Tables cut_tables(BufferCutter& cut, const PagedLimits& limits) {
  const std::int64_t T = limits.rows_max, S = limits.slices_max;
  return {.tokens = cut.i32(T),
          .positions = cut.i32(T),
          .slots = cut.i32(T),
          .picks = cut.i32(limits.logit_rows_max),
          .query_begin = cut.i32(S + 1),
          .first_position = cut.i32(S),
          .block_tables = cut.i32(S * blocks_for(limits.positions_max, kernels::kChunkPositions))};
}

// The part of the buffers that one call fills.
struct Batch {
  std::int64_t rows = 0;
  std::int64_t picks = 0;
  std::int64_t slices = 0;
  std::int64_t blocks = 0;  // columns of the block tables
};

}  // namespace

struct PagedDecoder::Workspace {
  ModelConfig config;
  PagedLimits limits;
  RotaryTable rotary;
  runtime::Buffer memory;
  Buffers all;
  runtime::Staged staged;
  Tables tables;

  // The first `count` of a table, as operators see it.
  TensorView on_device(std::span<std::int32_t> table, std::int64_t count) const {
    return staged.on_device(runtime::tensor(table.data(), {count}));
  }
  Batch lay_out(std::span<const PagedSlice> slices, const KvCache& cache);
  void add_slice(Batch& batch, const PagedSlice& slice, const KvCache& cache);
  void attend(const Stream& stream, const LayerWeights& layer, const Batch& batch,
              const TensorView& keys, const TensorView& values);
};

PagedDecoder::PagedDecoder(std::unique_ptr<Workspace> workspace) : work_(std::move(workspace)) {}
PagedDecoder::PagedDecoder(PagedDecoder&&) noexcept = default;
PagedDecoder& PagedDecoder::operator=(PagedDecoder&&) noexcept = default;
PagedDecoder::~PagedDecoder() = default;

std::size_t PagedDecoder::workspace_bytes(const ModelConfig& config, const PagedLimits& limits) {
  BufferCutter buffers(nullptr), tables(nullptr);
  cut_buffers(buffers, config, limits);
  cut_tables(tables, limits);
  return buffers.bytes() + tables.bytes() + RotaryTable::bytes(config, limits.positions_max);
}

Result<PagedDecoder> PagedDecoder::make(const ModelConfig& config, const PagedLimits& limits,
                                        runtime::DeviceKind device) {
  Result<RotaryTable> rotary = RotaryTable::make(config, limits.positions_max, device);
  if (!rotary) return rotary.error();
  BufferCutter measure(nullptr), measure_tables(nullptr);
  cut_buffers(measure, config, limits);
  cut_tables(measure_tables, limits);
  Result<runtime::Buffer> memory = runtime::Buffer::allocate(
      measure.bytes(), "the decoder's workspace", runtime::operand_place(device));
  if (!memory) return memory.error();
  Result<runtime::Staged> staged =
      runtime::Staged::allocate(measure_tables.bytes(), "the decoder's tables", device);
  if (!staged) return staged.error();
  BufferCutter cut(memory->data()), cut_tables_from(staged->host());
  auto workspace = std::make_unique<Workspace>();
  workspace->config = config;
  workspace->limits = limits;
  workspace->all = cut_buffers(cut, config, limits);
  workspace->rotary = *std::move(rotary);
  workspace->memory = *std::move(memory);
  workspace->tables = cut_tables(cut_tables_from, limits);
  workspace->staged = *std::move(staged);
  return PagedDecoder(std::move(workspace));
}

void PagedDecoder::Workspace::add_slice(Batch& batch, const PagedSlice& slice,
                                        const KvCache& cache) {
  const auto count = static_cast<std::int64_t>(slice.tokens.size());
  const std::int32_t page_positions = cache.page_positions();
  const std::int64_t pages = blocks_for(slice.position + count, page_positions);
  CHECK(count >= 1 && slice.position >= 0 && slice.position + count <= limits.positions_max);
  CHECK(batch.rows + count <= limits.rows_max);
  CHECK(std::ssize(slice.pages) >= pages);
  CHECK(slice.logits_last >= 0 && slice.logits_last <= count);
  CHECK(batch.picks + slice.logits_last <= limits.logit_rows_max);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = batch.rows + i;
    const auto position = static_cast<std::int32_t>(slice.position + i);
    CHECK(slice.tokens[i] >= 0 && slice.tokens[i] < config.vocab_size);
    tables.tokens[row] = slice.tokens[i];
    tables.positions[row] = position;
    tables.slots[row] =
        slice.pages[position / page_positions] * page_positions + position % page_positions;
  }
  std::int32_t* table = tables.block_tables.data() + batch.slices * batch.blocks;
  for (std::int64_t block = 0; block < batch.blocks; ++block) {
    table[block] = block < pages ? slice.pages[block] : 0;  // past the end: read by nobody
    CHECK(table[block] >= 0 && table[block] < cache.pages());
  }
  for (std::int64_t i = count - slice.logits_last; i < count; ++i)
    tables.picks[batch.picks++] = static_cast<std::int32_t>(batch.rows + i);
  tables.query_begin[batch.slices] = static_cast<std::int32_t>(batch.rows);
  tables.first_position[batch.slices] = slice.position;
  batch.rows += count;
  ++batch.slices;
}

Batch PagedDecoder::Workspace::lay_out(std::span<const PagedSlice> slices, const KvCache& cache) {
  CHECK(std::ssize(slices) <= limits.slices_max);
  Batch batch;
  for (const PagedSlice& slice : slices)
    batch.blocks = std::max(batch.blocks, blocks_for(slice.position + std::ssize(slice.tokens),
                                                     cache.page_positions()));
  for (const PagedSlice& slice : slices) add_slice(batch, slice, cache);
  tables.query_begin[batch.slices] = static_cast<std::int32_t>(batch.rows);
  return batch;
}

// x += attention(norm(x)), with the new keys and values written to their slots first.
void PagedDecoder::Workspace::attend(const Stream& stream, const LayerWeights& layer,
                                     const Batch& batch, const TensorView& keys,
                                     const TensorView& values) {
  const std::int64_t T = batch.rows, S = batch.slices;
  const float eps = static_cast<float>(config.rms_norm_eps);
  const TensorView x = rows(all.x, 0, T), h = rows(all.h, 0, T), qkv = rows(all.qkv, 0, T);
  const TensorView attention = rows(all.attention, 0, T);
  const TensorView q = split_heads(columns(qkv, 0, config.q_width()), config.heads);
  const TensorView k =
      split_heads(columns(qkv, config.q_width(), config.kv_width()), config.kv_heads);
  const TensorView v = split_heads(
      columns(qkv, config.q_width() + config.kv_width(), config.kv_width()), config.kv_heads);
  const TensorView positions = on_device(tables.positions, T);

  kernels::rms_norm(
      stream, {.x = x, .weight = layer.input_norm, .y = h, .inv_rms = {}, .eps = eps, .add = {}});
  kernels::matmul(stream, kernels::Matmul{.x = h, .weight = layer.qkv.packed, .y = qkv});
  kernels::rms_norm(stream,
                    {.x = q, .weight = layer.q_norm, .y = q, .inv_rms = {}, .eps = eps, .add = {}});
  kernels::rms_norm(stream,
                    {.x = k, .weight = layer.k_norm, .y = k, .inv_rms = {}, .eps = eps, .add = {}});
  for (const TensorView& turned : {q, k})
    kernels::rope(stream,
                  {.x = turned, .positions = positions, .cos = rotary.cos, .sin = rotary.sin});
  kernels::kv_write(
      stream,
      {.k = k, .v = v, .slots = on_device(tables.slots, T), .k_pages = keys, .v_pages = values});
  kernels::attention(
      stream, kernels::AttentionPaged{
                  .q = q,
                  .k_pages = keys,
                  .v_pages = values,
                  .block_tables = runtime::reshape(on_device(tables.block_tables, S * batch.blocks),
                                                   {S, batch.blocks}),
                  .query_begin = on_device(tables.query_begin, S + 1),
                  .first_position = on_device(tables.first_position, S),
                  .scale = attention_scale(config),
                  .out = split_heads(attention, config.heads)});
  kernels::matmul(
      stream,
      kernels::Matmul{.x = attention, .weight = layer.o.packed, .y = x, .output = Output::kAdd});
}

TensorView PagedDecoder::forward(const Stream& stream, const Weights& weights, KvCache& cache,
                                 std::span<const PagedSlice> slices) {
  Workspace& w = *work_;
  runtime::synchronize(stream);
  const Batch batch = w.lay_out(slices, cache);
  const std::int64_t T = batch.rows, R = batch.picks;
  const float eps = static_cast<float>(w.config.rms_norm_eps);
  const TensorView x = rows(w.all.x, 0, T), h = rows(w.all.h, 0, T);
  const TensorView gate_up = rows(w.all.gate_up, 0, T), act = rows(w.all.act, 0, T);
  const TensorView logits = rows(w.all.logits, 0, R);
  if (T == 0) return logits;

  w.staged.upload(stream, w.staged.size());
  kernels::embedding(
      stream, kernels::Embedding{
                  .ids = w.on_device(w.tables.tokens, T), .table = weights.embedding(), .y = x});
  for (std::int64_t i = 0; i < w.config.layers; ++i) {
    const LayerWeights& layer = weights.layer(i);
    w.attend(stream, layer, batch, cache.keys(i), cache.values(i));
    kernels::rms_norm(stream, {.x = x,
                               .weight = layer.post_attention_norm,
                               .y = h,
                               .inv_rms = {},
                               .eps = eps,
                               .add = {}});
    kernels::matmul(stream, kernels::Matmul{.x = h, .weight = layer.gate_up.packed, .y = gate_up});
    kernels::swiglu(stream, kernels::Swiglu{.x = gate_up, .y = act});
    kernels::matmul(
        stream,
        kernels::Matmul{.x = act, .weight = layer.down.packed, .y = x, .output = Output::kAdd});
  }
  if (R == 0) return logits;
  const TensorView picked = rows(w.all.picked, 0, R);
  kernels::embedding(
      stream, kernels::Embedding{.ids = w.on_device(w.tables.picks, R), .table = x, .y = picked});
  kernels::rms_norm(stream, {.x = picked,
                             .weight = weights.final_norm(),
                             .y = picked,
                             .inv_rms = {},
                             .eps = eps,
                             .add = {}});
  kernels::matmul(stream,
                  kernels::Matmul{.x = picked, .weight = weights.head().packed, .y = logits});
  return logits;
}

}  // namespace tandem::actors
