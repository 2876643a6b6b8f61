// PagedDecoder: the forward pass of generation over a paged cache of keys and values.
//
// A call first lays out tables on the host (which token, position and cache slot each row has,
// which pages each sequence), uploads them in one copy, and then gives the stream all operators of
// the model. Nothing is read back. The tables have two sides, so that the host fills one while the
// device may still read the other.
//
// A decode step consists of many short operators. A GPU records such a step as a CUDA graph, so
// that one launch replaces those of all operators. A graph has fixed shapes: the step is padded to
// one of a few sizes (pad), and everything that varies between steps lies in the tables, whose
// device address is always the same.
#include <algorithm>
#include <map>

#include "actors/model/decoder.h"
#include "actors/model/decoder_parts.h"
#include "actors/model/shared_prefix.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/attention_input.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/swiglu.h"
#include "runtime/base/check.h"
#include "runtime/device/graph.h"
#include "runtime/device/queue.h"

namespace tandem::model {
namespace {

using device::columns;
using device::rows;
using device::split_heads;
using device::Stream;
using device::TensorView;
using kernels::Output;

// Activations on the device, of the largest call. A layer overwrites those of the layer before it.
struct Buffers {
  TensorView x, h;       // [T, H] the residual; a normalised copy
  TensorView qkv;        // [T, Q]
  TensorView attention;  // [T, A D]
  TensorView gate_up;    // [T, 2 F]
  TensorView act;        // [T, F]
  TensorView picked;     // [R, H] rows whose logits are wanted
  TensorView logits;     // [R, V]
  TensorView splits;     // attention's workspace
};

// The tables are filled on the host and uploaded once per call. S is the number of slices.
struct Tables {
  std::span<std::int32_t> tokens, positions, slots;  // [T]
  TensorView ones;                                   // [T, 1] of a model with biases
  std::span<std::int32_t> picks;                     // [R]
  std::span<std::int32_t> query_begin;               // [S + 1]
  std::span<std::int32_t> first_position;            // [S]
  std::span<std::int32_t> block_tables;              // [S, blocks]
  std::span<kernels::SharedPrefix> shared;           // [S]
};

constexpr std::size_t kTableSides = 2;  // one is filled while the other is on its way

// Whether attention with one query per sequence can compute the splits of a sequence in parallel
// (attention.h). Only then are shared prefixes and a workspace of use.
bool spreads_splits(const ModelConfig& config, device::DeviceKind device) {
  return device == device::DeviceKind::kCuda && config.dtype == device::DType::kBF16;
}

// How many blocks of `block` positions hold `positions`, rounded up.
std::int64_t blocks_for(std::int64_t positions, std::int64_t block) {
  return (positions + block - 1) / block;
}

// The workspace has room for all splits of this many sequences. Larger decode steps keep a GPU busy
// without spreading their splits.
constexpr std::int64_t kSpreadSequences = 8;

// Floats of attention's workspace: for either the shareable splits of every sequence or all splits
// of kSpreadSequences sequences, whichever is more.
std::int64_t split_sums(const ModelConfig& config, const PagedLimits& limits,
                        device::DeviceKind device) {
  if (!spreads_splits(config, device)) return 0;
  const auto floats = [&](std::int64_t sequences, std::int64_t splits) {
    return kernels::attention_paged_workspace(sequences, config.heads, config.head_dim, splits);
  };
  const std::int64_t shared =
      std::min(limits.positions_max / kernels::kSplitPositions, kSharedSplitsMax);
  return std::max(floats(limits.slices_max, shared),
                  floats(std::min(limits.slices_max, kSpreadSequences),
                         blocks_for(limits.positions_max, kernels::kSplitPositions)));
}

Buffers cut_buffers(BufferCutter& cut, const ModelConfig& config, const PagedLimits& limits,
                    device::DeviceKind device) {
  const std::int64_t T = limits.rows_max, R = limits.logit_rows_max;
  const std::int64_t H = config.hidden_size, F = config.intermediate_size;
  const auto tensor = [&](std::initializer_list<std::int64_t> shape) {
    return cut.tensor(config.dtype, shape);
  };
  return {.x = tensor({T, H}),
          .h = tensor({T, H}),
          .qkv = tensor({T, config.qkv_width()}),
          .attention = tensor({T, config.q_width()}),
          .gate_up = tensor({T, 2 * F}),
          .act = tensor({T, F}),
          .picked = tensor({R, H}),
          .logits = cut.f32({R, config.vocab_size}),
          .splits = cut.f32({split_sums(config, limits, device)})};
}

Tables cut_tables(BufferCutter& cut, const ModelConfig& config, const PagedLimits& limits) {
  const std::int64_t T = limits.rows_max, S = limits.slices_max;
  constexpr std::int64_t kWords = sizeof(kernels::SharedPrefix) / sizeof(std::int32_t);
  return {.tokens = cut.i32(T),
          .positions = cut.i32(T),
          .slots = cut.i32(T),
          .ones = cut_ones(cut, config, T),
          .picks = cut.i32(limits.logit_rows_max),
          .query_begin = cut.i32(S + 1),
          .first_position = cut.i32(S),
          .block_tables = cut.i32(S * blocks_for(limits.positions_max, kernels::kChunkPositions)),
          .shared = {reinterpret_cast<kernels::SharedPrefix*>(cut.i32(S * kWords).data()),
                     static_cast<std::size_t>(S)}};
}

// How much of the buffers one call fills.
struct Batch {
  std::int64_t rows = 0;
  std::int64_t picks = 0;
  std::int64_t slices = 0;
  std::int64_t blocks = 0;  // columns of the block tables
  bool shares = false;      // attention is told of shared prefixes
  TensorView drawn;         // [D] tokens that rows may refer to; see PagedDecoder::forward
};

}  // namespace

// The recorded decode steps, and the objects whose addresses the recordings contain.
struct Recorded {
  const void* stream = nullptr;
  const void* weights = nullptr;
  const void* cache = nullptr;
  const void* drawn = nullptr;
  std::int32_t pages = 0, page_positions = 0;  // the cache's pages and their size
  // The graphs by padded size. An empty graph means that the GPU had no memory for the recording;
  // it is kept so that the recording is not tried again at every step.
  std::map<std::int64_t, device::Graph> graphs;

  bool same_place(const Recorded& other) const {
    return stream == other.stream && weights == other.weights && cache == other.cache &&
           drawn == other.drawn && pages == other.pages && page_positions == other.page_positions;
  }
};

struct PagedDecoder::Workspace {
  ModelConfig config;
  PagedLimits limits;
  device::DeviceKind device = device::DeviceKind::kCpu;
  RotaryTable rotary;
  device::Buffer memory;
  Buffers all;
  device::Staged staged;
  Tables tables;
  Recorded recorded;

  // The first `count` of a table, as operators see it.
  TensorView on_device(std::span<std::int32_t> table, std::int64_t count) const {
    return staged.on_device(device::tensor(table.data(), {count}));
  }
  TensorView ones(std::int64_t count) const {
    return config.qkv_bias() ? rows(staged.on_device(tables.ones), 0, count) : TensorView{};
  }
  std::span<const kernels::SharedPrefix> shared_prefixes(const Batch& batch) const {
    if (!batch.shares) return {};
    return {staged.on_device(tables.shared.data()), static_cast<std::size_t>(batch.slices)};
  }
  Batch lay_out(std::span<const PagedSlice> slices, const KvCache& cache, const TensorView& drawn,
                std::int64_t padded);
  std::int64_t padded_size(const Stream& stream, std::span<const PagedSlice> slices) const;
  void pad(Batch& batch, std::int64_t slices);
  void compute(const Stream& stream, const Weights& weights, const KvCache& cache,
               const Batch& batch);
  void replay(const Stream& stream, const Weights& weights, const KvCache& cache,
              const Batch& batch);
  void add_slice(Batch& batch, const PagedSlice& slice, const KvCache& cache);
  void attend(const Stream& stream, const LayerWeights& layer, const Batch& batch,
              const TensorView& keys, const TensorView& values);
};

PagedDecoder::PagedDecoder(std::unique_ptr<Workspace> workspace) : work_(std::move(workspace)) {}
PagedDecoder::PagedDecoder(PagedDecoder&&) noexcept = default;
PagedDecoder& PagedDecoder::operator=(PagedDecoder&&) noexcept = default;
PagedDecoder::~PagedDecoder() = default;

std::size_t PagedDecoder::workspace_bytes(const ModelConfig& config, const PagedLimits& limits,
                                          device::DeviceKind device) {
  BufferCutter buffers(nullptr), tables(nullptr);
  cut_buffers(buffers, config, limits, device);
  cut_tables(tables, config, limits);
  return buffers.bytes() + tables.bytes() + RotaryTable::bytes(config, limits.positions_max);
}

Result<PagedDecoder> PagedDecoder::make(const ModelConfig& config, const PagedLimits& limits,
                                        device::DeviceKind device) {
  Result<RotaryTable> rotary = RotaryTable::make(config, limits.positions_max, device);
  if (!rotary) return rotary.error();
  BufferCutter measure(nullptr), measure_tables(nullptr);
  cut_buffers(measure, config, limits, device);
  cut_tables(measure_tables, config, limits);
  Result<device::Buffer> memory = device::Buffer::allocate(
      measure.bytes(), "the decoder's workspace", device::operand_memory(device));
  if (!memory) return memory.error();
  Result<device::Staged> staged =
      device::Staged::allocate(measure_tables.bytes(), "the decoder's tables", device, kTableSides);
  if (!staged) return staged.error();
  BufferCutter cut(memory->data());
  CHECK(std::ranges::is_sorted(limits.capture_sizes));
  for (const std::int64_t size : limits.capture_sizes)
    CHECK(size >= 1 &&
          size <= std::min({limits.rows_max, limits.slices_max, limits.logit_rows_max}));
  auto workspace = std::make_unique<Workspace>();
  workspace->config = config;
  workspace->limits = limits;
  workspace->device = device;
  workspace->all = cut_buffers(cut, config, limits, device);
  workspace->rotary = *std::move(rotary);
  workspace->memory = *std::move(memory);
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
    CHECK(slice.tokens[i] < config.vocab_size);
    CHECK(slice.tokens[i] >= 0 || ~slice.tokens[i] < batch.drawn.elements());
    tables.tokens[row] = slice.tokens[i];
    tables.positions[row] = position;
    tables.slots[row] =
        slice.pages[position / page_positions] * page_positions + position % page_positions;
  }
  std::int32_t* table = tables.block_tables.data() + batch.slices * batch.blocks;
  for (std::int64_t block = 0; block < batch.blocks; ++block) {
    table[block] = block < pages ? slice.pages[block] : 0;  // attention reads no entry past the end
    CHECK(table[block] >= 0 && table[block] < cache.pages());
  }
  for (std::int64_t i = count - slice.logits_last; i < count; ++i)
    tables.picks[batch.picks++] = static_cast<std::int32_t>(batch.rows + i);
  tables.query_begin[batch.slices] = static_cast<std::int32_t>(batch.rows);
  tables.first_position[batch.slices] = slice.position;
  batch.rows += count;
  ++batch.slices;
}

// The padded size under which a decode step of these slices is recorded. 0: the slices are no
// decode step, or none that is recorded.
std::int64_t PagedDecoder::Workspace::padded_size(const Stream& stream,
                                                  std::span<const PagedSlice> slices) const {
  if (stream.device == device::DeviceKind::kCpu || slices.empty()) return 0;
  for (const PagedSlice& slice : slices)
    if (slice.tokens.size() != 1 || slice.logits_last != 1) return 0;
  const auto size = std::ranges::lower_bound(limits.capture_sizes, std::ssize(slices));
  return size == limits.capture_sizes.end() ? 0 : *size;
}

// Fills the batch up to `slices` rows and sequences. The added sequences have no query, and the
// added rows belong to no sequence and write no slot (-1). The results of added rows may be
// anything, even infinite; no other row depends on them (DE-1), and forward() does not return them.
void PagedDecoder::Workspace::pad(Batch& batch, std::int64_t slices) {
  for (; batch.rows < slices; ++batch.rows) {
    tables.tokens[batch.rows] = 0;
    tables.positions[batch.rows] = 0;
    tables.slots[batch.rows] = -1;
    tables.picks[batch.picks++] = static_cast<std::int32_t>(batch.rows);
  }
  const std::int32_t end = tables.query_begin[batch.slices];
  for (; batch.slices < slices; ++batch.slices) {
    tables.query_begin[batch.slices + 1] = end;
    tables.first_position[batch.slices] = 0;
    tables.shared[batch.slices] = {.leader = static_cast<std::int32_t>(batch.slices)};
  }
}

// Fills the tables. `padded` is padded_size() of the slices. If it is not 0, block tables get the
// greatest width that a sequence may need, because a graph keeps the width of its recording.
Batch PagedDecoder::Workspace::lay_out(std::span<const PagedSlice> slices, const KvCache& cache,
                                       const TensorView& drawn, std::int64_t padded) {
  CHECK(std::ssize(slices) <= limits.slices_max);
  staged.turn();
  BufferCutter cut(staged.host());
  tables = cut_tables(cut, config, limits);
  if (config.qkv_bias()) fill_ones(tables.ones);
  Batch batch{.drawn = drawn};
  for (const PagedSlice& slice : slices)
    batch.blocks = std::max(batch.blocks, blocks_for(slice.position + std::ssize(slice.tokens),
                                                     cache.page_positions()));
  if (padded > 0) batch.blocks = blocks_for(limits.positions_max, cache.page_positions());
  for (const PagedSlice& slice : slices) add_slice(batch, slice, cache);
  tables.query_begin[batch.slices] = static_cast<std::int32_t>(batch.rows);
  if (spreads_splits(config, device) && batch.rows == batch.slices) {
    const bool any = find_shared(slices, cache.page_positions(), tables.shared);
    // A recording always passes the table of shared prefixes, because a later batch that replays
    // the recording may share even if this one does not.
    batch.shares = any || padded > 0;
  }
  if (padded > 0) pad(batch, padded);
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

  kernels::rms_norm(
      stream, {.x = x, .weight = layer.input_norm, .y = h, .inv_rms = {}, .eps = eps, .add = {}});
  multiply_qkv(stream,
               {.weights = layer, .h = h, .ones = ones(T), .qkv = qkv, .rows = limits.products});
  kernels::attention_input(stream, {.q = q,
                                    .k = k,
                                    .v = v,
                                    .q_norm = layer.q_norm,
                                    .k_norm = layer.k_norm,
                                    .eps = eps,
                                    .positions = on_device(tables.positions, T),
                                    .cos = rotary.cos,
                                    .sin = rotary.sin,
                                    .slots = on_device(tables.slots, T),
                                    .k_pages = keys,
                                    .v_pages = values});
  kernels::attention(
      stream, kernels::AttentionPaged{
                  .q = q,
                  .k_pages = keys,
                  .v_pages = values,
                  .block_tables = device::reshape(on_device(tables.block_tables, S * batch.blocks),
                                                  {S, batch.blocks}),
                  .query_begin = on_device(tables.query_begin, S + 1),
                  .first_position = on_device(tables.first_position, S),
                  .scale = attention_scale(config),
                  .out = split_heads(attention, config.heads),
                  .shared_prefixes = shared_prefixes(batch),
                  .workspace = all.splits});
  kernels::matmul(stream, kernels::Matmul{.x = attention,
                                          .weight = layer.o.packed,
                                          .y = x,
                                          .output = Output::kAdd,
                                          .rows = limits.products});
}

// All operators of the model, from the tables on the device to the logits of the picked rows. This
// is the work that a graph records: it may depend on the host only through sizes in `batch`.
void PagedDecoder::Workspace::compute(const Stream& stream, const Weights& weights,
                                      const KvCache& cache, const Batch& batch) {
  const std::int64_t T = batch.rows, R = batch.picks;
  const float eps = static_cast<float>(config.rms_norm_eps);
  const TensorView x = rows(all.x, 0, T), h = rows(all.h, 0, T);
  const TensorView gate_up = rows(all.gate_up, 0, T), act = rows(all.act, 0, T);
  kernels::embedding(stream, kernels::Embedding{.ids = on_device(tables.tokens, T),
                                                .table = weights.embedding().plain,
                                                .y = x,
                                                .drawn = batch.drawn,
                                                .packed = weights.embedding().packed});
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const LayerWeights& layer = weights.layer(i);
    attend(stream, layer, batch, cache.keys(i), cache.values(i));
    kernels::rms_norm(stream, {.x = x,
                               .weight = layer.post_attention_norm,
                               .y = h,
                               .inv_rms = {},
                               .eps = eps,
                               .add = {}});
    kernels::matmul(
        stream, kernels::Matmul{
                    .x = h, .weight = layer.gate_up.packed, .y = gate_up, .rows = limits.products});
    kernels::swiglu(stream, kernels::Swiglu{.x = gate_up, .y = act});
    kernels::matmul(stream, kernels::Matmul{.x = act,
                                            .weight = layer.down.packed,
                                            .y = x,
                                            .output = Output::kAdd,
                                            .rows = limits.products});
  }
  if (R == 0) return;
  const TensorView picked = rows(all.picked, 0, R);
  // In a decode step all rows are picked, in order because picks ascend, and no copy is needed.
  const bool every = R == T;
  if (!every)
    kernels::embedding(
        stream, kernels::Embedding{.ids = on_device(tables.picks, R), .table = x, .y = picked});
  kernels::rms_norm(stream, {.x = every ? x : picked,
                             .weight = weights.final_norm(),
                             .y = picked,
                             .inv_rms = {},
                             .eps = eps,
                             .add = {}});
  kernels::matmul(stream, kernels::Matmul{.x = picked,
                                          .weight = weights.head().packed,
                                          .y = rows(all.logits, 0, R),
                                          .rows = limits.products});
}

// Replays the recording of this padded size. A new size is computed first and recorded afterwards:
// when CUDA's libraries first see a shape they create objects, which is not allowed while a stream
// records (runtime/device/graph.h).
void PagedDecoder::Workspace::replay(const Stream& stream, const Weights& weights,
                                     const KvCache& cache, const Batch& batch) {
  Recorded now{.stream = stream.native,
               .weights = weights.final_norm().data,
               .cache = cache.keys(0).data,
               .drawn = batch.drawn.data,
               .pages = cache.pages(),
               .page_positions = cache.page_positions(),
               .graphs = {}};
  if (!recorded.same_place(now)) {
    device::synchronize(stream);  // GR-4: a graph that still runs must not be destroyed
    recorded = std::move(now);
  }
  const auto found = recorded.graphs.find(batch.slices);
  const bool known = found != recorded.graphs.end();
  if (known && found->second) return found->second.launch(stream);
  const auto work = [&] { compute(stream, weights, cache, batch); };
  work();
  if (!known) recorded.graphs.emplace(batch.slices, device::Graph::capture(stream, work));
}

TensorView PagedDecoder::forward(const Stream& stream, const Weights& weights, KvCache& cache,
                                 std::span<const PagedSlice> slices, const TensorView& drawn) {
  Workspace& w = *work_;
  const std::int64_t padded = w.padded_size(stream, slices);
  const Batch batch = w.lay_out(slices, cache, drawn, padded);
  if (batch.rows > 0) {
    w.staged.upload(stream, w.staged.size());
    if (padded > 0) {
      w.replay(stream, weights, cache, batch);
    } else {
      w.compute(stream, weights, cache, batch);
    }
  }
  // In a padded step the rows behind those of the caller's slices are left out.
  return rows(w.all.logits, 0, padded > 0 ? std::ssize(slices) : batch.picks);
}

std::int64_t PagedDecoder::graphs_recorded() const {
  return std::ranges::count_if(work_->recorded.graphs,
                               [](const auto& of) { return static_cast<bool>(of.second); });
}

}  // namespace tandem::model
