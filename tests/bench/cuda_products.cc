// Matrix products and attention of the models' layers.
#include <array>
#include <cmath>

#include "kernels/ops/attention.h"
#include "kernels/ops/kv_cache.h"
#include "kernels/ops/matmul.h"
#include "runtime/device/graph.h"
#include "tests/bench/cuda_bench.h"
#include "tests/bench/product_kind.h"

namespace tandem::bench {
namespace {

constexpr DType kBF16 = DType::kBF16, kF32 = DType::kF32;
constexpr double kHalf = 2;  // bytes of a bf16

struct Weight {  // [N, K]
  const char* name;
  std::int64_t n, k;
  DType y = kBF16;  // the dtype of the output

  double y_bytes(std::int64_t rows) const {
    return static_cast<double>(rows * n) * static_cast<double>(device::size_bytes(y));
  }
};

std::array<Weight, 4> layer_weights(const DecoderShape& s) {
  return {{{"qkv", s.qkv_width(), s.hidden},
           {"o", s.hidden, s.q_width()},
           {"gate_up", 2 * s.intermediate, s.hidden},
           {"down", s.hidden, s.intermediate}}};
}

// Logits are f32; their gradients are bf16 like everything that is multiplied.
Weight head(const DecoderShape& s) { return {"head", s.vocab, s.hidden, kF32}; }

double elements(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

using Kind = ProductKind;

std::function<void()> product(Operands& o, Kind kind, const Weight& w, std::int64_t rows) {
  const TensorView x = o.random(kBF16, {rows, w.k});
  const TensorView y = o.random(kind == Kind::kForward ? w.y : kBF16, {rows, w.n});
  if (kind == Kind::kBackwardWeight) {
    const kernels::MatmulBackwardWeight op{y, x, o.random(kF32, {w.n, w.k})};
    return [=] { matmul(gpu(), op); };
  }
  const TensorView weight = o.random(kBF16, {w.n, w.k});
  if (kind == Kind::kBackwardInput)
    return [=] { matmul(gpu(), kernels::MatmulBackwardInput{.dy = y, .weight = weight, .dx = x}); };
  return [=] { matmul(gpu(), kernels::MatmulPlain{.x = x, .weight = weight, .y = y}); };
}

using Calls = std::vector<std::function<void()>>;
using MakeCall = std::function<std::function<void()>(Operands&)>;

Calls calls_of(Operands& operands, double bytes, const MakeCall& make) {
  Calls calls;
  for (std::size_t set = 0; set < sets_of(bytes); ++set) calls.push_back(make(operands));
  return calls;
}

template <class Work>
void measure_sets(benchmark::State& state, const Work& work, double bytes, const MakeCall& make) {
  Operands operands;
  const Calls calls = calls_of(operands, bytes, make);
  measure(state, work, calls.size(), [&](std::size_t set) { calls[set](); });
}

// The same for calls so short that the measurement would be of launching each: they run one after
// another as one graph, as the engine launches its steps. Where there is no memory for that, they
// run one by one.
void measure_recorded(benchmark::State& state, const Memory& each, const MakeCall& make) {
  Operands operands;
  const Calls calls = calls_of(operands, each.bytes, make);
  const auto all = [&] {
    for (const auto& call : calls) call();
  };
  all();
  device::synchronize(gpu());
  const device::Graph graph = device::Graph::capture(gpu(), all);
  const Memory together{each.bytes * static_cast<double>(calls.size()), each.aim};
  measure(state, together, 1, [&](std::size_t) {
    if (graph) return graph.launch(gpu());
    all();
  });
}

// The product as the model asks for it: rows do not depend on their batch.
void add_large(const DecoderShape& shape, const Weight& w, Kind kind, std::int64_t rows) {
  const std::string title = std::string("product/") + name(kind) + "/" + shape.name + "/" + w.name +
                            "/" + std::to_string(rows);
  add(title, [=](benchmark::State& state) {
    const double y_bytes = kind == Kind::kForward ? w.y_bytes(rows) : kHalf * elements(rows, w.n);
    const double bytes = kHalf * (elements(rows, w.k) + elements(w.n, w.k)) + y_bytes;
    measure_sets(state, Arithmetic{2 * elements(rows, w.n) * static_cast<double>(w.k), 0.8}, bytes,
                 [=](Operands& o) { return product(o, kind, w, rows); });
  });
}

void add_decode(const DecoderShape& shape, const Weight& w, std::int64_t rows) {
  // From here on arithmetic is the limit, not memory.
  constexpr std::int64_t kManyRows = 128;
  const std::string title =
      std::string("decode/") + shape.name + "/" + w.name + "/" + std::to_string(rows);
  add(title, [=](benchmark::State& state) {
    const double bytes = kHalf * (elements(w.n, w.k) + elements(rows, w.k)) + w.y_bytes(rows);
    measure_recorded(state, Memory{bytes, rows < kManyRows ? 0.75 : 0}, [=](Operands& o) {
      const TensorView x = o.random(kBF16, {rows, w.k}), y = o.random(w.y, {rows, w.n});
      const TensorView panels =
          o.random(kBF16, {(w.n + kernels::kPanelColumns - 1) / kernels::kPanelColumns, w.k,
                           kernels::kPanelColumns});
      const kernels::Matmul op{.x = x, .weight = {.panels = panels, .n = w.n, .k = w.k}, .y = y};
      return [=] { matmul(gpu(), op); };
    });
  });
}

// Sequences of one length, one after another, without shared prefixes.
struct Packed {
  std::int64_t rows, length;
  std::vector<kernels::Segment> segments() const {
    std::vector<kernels::Segment> all;
    for (std::int64_t begin = 0; begin < rows; begin += length)
      all.push_back(
          {.begin = static_cast<std::int32_t>(begin), .len = static_cast<std::int32_t>(length)});
    return all;
  }
  // Counts scores and their products with v, under the causal mask.
  double operations(const DecoderShape& s) const {
    const double pairs = elements(rows, length + 1) / 2;
    return 4 * pairs * static_cast<double>(s.q_width());
  }
};

struct Attended {
  TensorView qkv, out, lse;
  std::span<const kernels::Segment> segments;
};

kernels::AttentionPacked forward(const DecoderShape& s, const Attended& a) {
  const auto part = [&](std::int64_t first_head, std::int64_t heads) {
    return split_heads(device::columns(a.qkv, first_head * s.head_dim, heads * s.head_dim), heads);
  };
  return {.q = part(0, s.heads),
          .k = part(s.heads, s.kv_heads),
          .v = part(s.heads + s.kv_heads, s.kv_heads),
          .segments = a.segments,
          .scale = 1 / std::sqrt(static_cast<float>(s.head_dim)),
          .out = split_heads(a.out, s.heads),
          .lse = a.lse};
}

Attended attended(Operands& o, const DecoderShape& s, const Packed& packed) {
  const std::vector<kernels::Segment> segments = packed.segments();
  return {.qkv = o.random(kBF16, {packed.rows, s.qkv_width()}),
          .out = o.random(kBF16, {packed.rows, s.q_width()}),
          .lse = o.random(kF32, {packed.rows, s.heads}),
          .segments = o.plain(std::span<const kernels::Segment>(segments))};
}

void attention_forward(benchmark::State& state, const DecoderShape& s, const Packed& packed) {
  const double bytes = kHalf * elements(packed.rows, s.qkv_width() + s.q_width());
  measure_sets(state, Arithmetic{packed.operations(s)}, bytes, [&](Operands& o) {
    const kernels::AttentionPacked op = forward(s, attended(o, s, packed));
    return [=] { attention(gpu(), op); };
  });
}

// Backward has five products where forward has two: products that are computed again count here, as
// they do in other benchmarks.
void attention_backward(benchmark::State& state, const DecoderShape& s, const Packed& packed) {
  const std::int64_t T = packed.rows;
  const double bytes = 2 * kHalf * elements(T, s.qkv_width() + s.q_width());
  measure_sets(state, Arithmetic{2.5 * packed.operations(s)}, bytes, [&](Operands& o) {
    const kernels::AttentionPacked f = forward(s, attended(o, s, packed));
    attention(gpu(), f);
    const kernels::AttentionPacked d = forward(s, attended(o, s, packed));  // where gradients go
    const std::int64_t workspace =
        kernels::attention_backward_workspace(device::DeviceKind::kCuda, f.q, f.k);
    const kernels::AttentionBackward op{.dout = d.out,
                                        .q = f.q,
                                        .k = f.k,
                                        .v = f.v,
                                        .out = f.out,
                                        .lse = f.lse,
                                        .segments = f.segments,
                                        .scale = f.scale,
                                        .dq = d.q,
                                        .dk = d.k,
                                        .dv = d.v,
                                        .workspace = o.random(kF32, {workspace})};
    return [=] { attention(gpu(), op); };
  });
}

// One new token of each sequence, all of one length, on pages in an order of their own; with room
// for all splits. One sequence has no aim: engine/one's is that of its whole step.
void attention_decode(benchmark::State& state, const DecoderShape& s, std::int64_t S,
                      std::int64_t positions) {
  constexpr std::int64_t kPage = 16;
  const std::int64_t blocks = (positions + kPage - 1) / kPage;
  const std::int64_t splits = (positions + kernels::kSplitPositions - 1) / kernels::kSplitPositions;
  const double bytes = 2 * kHalf * elements(S * positions, s.kv_heads * s.head_dim);
  measure_sets(state, Memory{.bytes = bytes, .aim = S == 1 ? 0 : 0.75}, bytes, [&](Operands& o) {
    std::vector<std::int32_t> tables, begins;
    for (std::int64_t i = 0; i <= S; ++i) begins.push_back(static_cast<std::int32_t>(i));
    for (std::int64_t i = 0; i < S * blocks; ++i)  // sequences grow in turns, as they do in a pool
      tables.push_back(static_cast<std::int32_t>(i % blocks * S + i / blocks));
    const std::vector<std::int32_t> firsts(static_cast<std::size_t>(S),
                                           static_cast<std::int32_t>(positions - 1));
    const kernels::AttentionPaged op{
        .q = o.random(kBF16, {S, s.heads, s.head_dim}),
        .k_pages = o.random(kBF16, {S * blocks, s.kv_heads, kPage, s.head_dim}),
        .v_pages = o.random(kBF16, {S * blocks, s.kv_heads, kPage, s.head_dim}),
        .block_tables = reshape(o.ints(tables), {S, blocks}),
        .query_begin = o.ints(begins),
        .first_position = o.ints(firsts),
        .scale = 1 / std::sqrt(static_cast<float>(s.head_dim)),
        .out = o.random(kBF16, {S, s.heads, s.head_dim}),
        .shared_prefixes = {},
        .workspace =
            o.random(kF32, {kernels::attention_paged_workspace(S, s.heads, s.head_dim, splits)})};
    return [=] { attention(gpu(), op); };
  });
}

}  // namespace

void add_products() {
  for (const Kind kind : {Kind::kForward, Kind::kBackwardInput, Kind::kBackwardWeight})
    for (const DecoderShape& shape : sizes().models) {
      for (const std::int64_t rows : sizes().product_rows)
        for (const Weight& w : layer_weights(shape)) add_large(shape, w, kind, rows);
      add_large(shape, head(shape), kind, sizes().product_rows.front());
    }
  const DecoderShape& shape = sizes().models.front();
  for (const std::int64_t rows : sizes().decode_rows) {
    for (const Weight& w : layer_weights(shape)) add_decode(shape, w, rows);
    add_decode(shape, head(shape), rows);
  }
}

void add_attention() {
  const DecoderShape shape = sizes().models.front();
  const std::int64_t rows = sizes().attention_rows;
  for (const Packed packed : {Packed{rows, rows}, Packed{rows, rows / 8}}) {
    const std::string what =
        std::to_string(rows / packed.length) + "x" + std::to_string(packed.length);
    add("attention/forward/" + what,
        [=](benchmark::State& state) { attention_forward(state, shape, packed); });
    add("attention/backward/" + what,
        [=](benchmark::State& state) { attention_backward(state, shape, packed); });
  }
  for (const auto& [sequences, positions] : sizes().decode_attention)
    add("attention/decode/" + std::to_string(sequences) + "x" + std::to_string(positions),
        [=](benchmark::State& state) { attention_decode(state, shape, sequences, positions); });
}

}  // namespace tandem::bench
