// Operators that move memory. Bytes are the fewest that an operator can move: each input read once,
// each output written once; bytes that are read again out of a cache (weights of norms, tables of
// angles) do not count.
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "kernels/ops/adamw.h"
#include "kernels/ops/attention_input.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/global_norm.h"
#include "kernels/ops/kv_cache.h"
#include "kernels/ops/log_prob.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"
#include "kernels/ops/sample.h"
#include "kernels/ops/swiglu.h"
#include "runtime/base/rng.h"
#include "tests/bench/cuda_bench.h"

namespace tandem::bench {
namespace {

constexpr DType kBF16 = DType::kBF16, kF32 = DType::kF32;
constexpr double kHalf = 2, kFloat = 4;  // bytes of a bf16 and of an f32
constexpr float kEps = 1e-6f;

double product(std::initializer_list<std::int64_t> extents) {
  double all = 1;
  for (const std::int64_t extent : extents) all *= static_cast<double>(extent);
  return all;
}

const DecoderShape& shape() { return sizes().models.front(); }

// Measures a call that touches so many bytes; `make` makes it with operands of its own.
using Make = std::function<std::function<void()>(Operands&)>;
void add_memory(const std::string& name, double bytes, const Make& make, double aim = 0.75) {
  add("memory/" + name, [=](benchmark::State& state) {
    Operands operands;
    std::vector<std::function<void()>> calls;
    for (std::size_t set = 0; set < sets_of(bytes); ++set) calls.push_back(make(operands));
    measure(state, Memory{bytes, aim}, calls.size(), [&](std::size_t set) { calls[set](); });
  });
}

void add_norms() {
  const std::int64_t T = sizes().rows, H = shape().hidden;
  const double x = kHalf * product({T, H});
  add_memory("rms_norm", 2 * x, [=](Operands& o) {
    const kernels::RmsNorm op{.x = o.random(kBF16, {T, H}),
                              .weight = o.random(kBF16, {H}),
                              .y = o.random(kBF16, {T, H}),
                              .inv_rms = o.random(kF32, {T}),
                              .eps = kEps};
    return [=] { rms_norm(gpu(), op); };
  });
  add_memory("rms_norm_of_sum", 4 * x, [=](Operands& o) {
    const kernels::RmsNorm op{.x = o.random(kBF16, {T, H}),
                              .weight = o.random(kBF16, {H}),
                              .y = o.random(kBF16, {T, H}),
                              .inv_rms = o.random(kF32, {T}),
                              .eps = kEps,
                              .add = o.random(kBF16, {T, H})};
    return [=] { rms_norm(gpu(), op); };
  });
  add_memory("rms_norm_backward", 4 * x, [=](Operands& o) {
    const std::int64_t workspace = kernels::rms_norm_workspace(device::DeviceKind::kCuda, T, H);
    const kernels::RmsNormBackward op{.dy = o.random(kBF16, {T, H}),
                                      .x = o.random(kBF16, {T, H}),
                                      .weight = o.random(kBF16, {H}),
                                      .inv_rms = o.random(kF32, {T}, Operands::Values::kPositive),
                                      .dx = o.random(kBF16, {T, H}),
                                      .dweight = o.random(kF32, {H}),
                                      .workspace = o.random(kF32, {workspace})};
    return [=] { rms_norm(gpu(), op); };
  });
}

// The queries inside of q|k|v, as the model has them.
TensorView queries(Operands& o) {
  const TensorView qkv = o.random(kBF16, {sizes().rows, shape().qkv_width()});
  return device::split_heads(device::columns(qkv, 0, shape().q_width()), shape().heads);
}

void add_heads() {
  const std::int64_t T = sizes().rows, A = shape().heads, D = shape().head_dim;
  const std::int64_t positions = std::min<std::int64_t>(T, 4096);
  const double q = kHalf * product({T, A, D});
  add_memory("rms_norm_of_heads", 2 * q, [=](Operands& o) {
    const TensorView x = queries(o);
    const kernels::RmsNorm op{.x = x,
                              .weight = o.random(kBF16, {D}),
                              .y = x,
                              .inv_rms = o.random(kF32, {T, A}),
                              .eps = kEps};
    return [=] { rms_norm(gpu(), op); };
  });
  add_memory("rope", 2 * q, [=](Operands& o) {
    const kernels::Rope op{.x = queries(o),
                           .positions = o.ids(T, positions),
                           .cos = o.random(kF32, {positions, D / 2}),
                           .sin = o.random(kF32, {positions, D / 2})};
    return [=] { rope(gpu(), op); };
  });
}

void add_activations() {
  const std::int64_t T = sizes().rows, F = shape().intermediate, H = shape().hidden;
  const double y = kHalf * product({T, F});
  add_memory("swiglu", 3 * y, [=](Operands& o) {
    const kernels::Swiglu op{.x = o.random(kBF16, {T, 2 * F}), .y = o.random(kBF16, {T, F})};
    return [=] { swiglu(gpu(), op); };
  });
  add_memory("swiglu_backward", 5 * y, [=](Operands& o) {
    const kernels::SwigluBackward op{.dy = o.random(kBF16, {T, F}),
                                     .x = o.random(kBF16, {T, 2 * F}),
                                     .dx = o.random(kBF16, {T, 2 * F})};
    return [=] { swiglu(gpu(), op); };
  });
  add_memory("add", 3 * kHalf * product({T, H}), [=](Operands& o) {
    const kernels::Add op{.x = o.random(kBF16, {T * H}), .y = o.random(kBF16, {T * H})};
    return [=] { kernels::add(gpu(), op); };
  });
}

void add_embeddings() {
  const std::int64_t T = sizes().rows, H = shape().hidden, V = shape().vocab;
  add_memory("embedding", 2 * kHalf * product({T, H}), [=](Operands& o) {
    const kernels::Embedding op{
        .ids = o.ids(T, V), .table = o.random(kBF16, {V, H}), .y = o.random(kBF16, {T, H})};
    return [=] { embedding(gpu(), op); };
  });
  // Every id once, so that each row of the gradient is read and written once.
  add_memory("embedding_backward", (kHalf + 2 * kFloat) * product({std::min(T, V), H}),
             [=](Operands& o) {
               std::vector<std::int32_t> ids(static_cast<std::size_t>(V));
               std::iota(ids.begin(), ids.end(), 0);
               Rng rng(5);
               shuffle(std::span(ids), rng);
               ids.resize(static_cast<std::size_t>(std::min(T, V)));
               const kernels::EmbeddingBackward op{.ids = o.ints(ids),
                                                   .dy = o.random(kBF16, {std::ssize(ids), H}),
                                                   .dtable = o.random(kF32, {V, H})};
               return [=] { embedding(gpu(), op); };
             });
}

void add_optimizer() {
  const std::int64_t n = sizes().flat;
  // Parameters, both moments: read and written; gradients: read; the bf16 copy: written.
  add_memory("adamw", (7 * kFloat + kHalf) * product({n}), [=](Operands& o) {
    const kernels::AdamW op{.parameters = o.random(kF32, {n}),
                            .gradients = o.random(kF32, {n}),
                            .m = o.random(kF32, {n}),
                            .v = o.random(kF32, {n}, Operands::Values::kPositive),
                            .step = 10,
                            .lr = 1e-6,
                            .rounded = o.random(kBF16, {n})};
    return [=] { adamw(gpu(), op); };
  });
  add_memory("sum_of_squares", kFloat * product({n}), [=](Operands& o) {
    const std::vector<double> zeros(static_cast<std::size_t>(kernels::sum_of_squares_workspace(n)) +
                                    1);
    const std::span<double> doubles = o.plain(std::span<const double>(zeros));
    const kernels::SumOfSquares op{
        .x = o.random(kF32, {n}), .workspace = doubles.subspan(1), .sum = doubles.data()};
    return [=] { sum_of_squares(gpu(), op); };
  });
}

void add_log_probs() {
  const std::int64_t R = sizes().logit_rows, V = shape().vocab;
  const double logits = kFloat * product({R, V});
  add_memory("log_prob", logits, [=](Operands& o) {
    const kernels::LogProb op{.logits = o.random(kF32, {R, V}),
                              .targets = o.ids(R, V),
                              .log_prob = o.random(kF32, {R}),
                              .entropy = o.random(kF32, {R}),
                              .lse = o.random(kF32, {R})};
    return [=] { log_prob(gpu(), op); };
  });
  add_memory("log_prob_backward", 2 * logits, [=](Operands& o) {
    const kernels::LogProbBackward op{.logits = o.random(kF32, {R, V}),
                                      .targets = o.ids(R, V),
                                      .lse = o.random(kF32, {R}),
                                      .entropy = o.random(kF32, {R}),
                                      .dlog_prob = o.random(kF32, {R}),
                                      .dentropy = o.random(kF32, {R}),
                                      .dlogits = o.random(kF32, {R, V})};
    return [=] { log_prob(gpu(), op); };
  });
}

void add_sampling(const std::string& name, const kernels::RowSampling& row, double aim) {
  const std::int64_t R = sizes().sampled_rows, V = shape().vocab;
  add_memory(
      name, kFloat * product({R, V}),
      [=](Operands& o) {
        std::vector<kernels::RowSampling> rows(static_cast<std::size_t>(R), row);
        for (std::size_t i = 0; i < rows.size(); ++i) rows[i].seed = i;
        const kernels::Sample op{.logits = o.random(kF32, {R, V}),
                                 .rows = o.plain(std::span<const kernels::RowSampling>(rows)),
                                 .tokens = o.ids(R, V),
                                 .log_prob = o.random(kF32, {R})};
        return [=] { sample(gpu(), op); };
      },
      aim);
}

// New tokens of sequences whose pages lie anywhere in the pool.
constexpr std::int64_t kPage = 16;

TensorView new_slots(Operands& o) {
  const std::int64_t T = sizes().rows;
  std::vector<std::int64_t> order(static_cast<std::size_t>((T + kPage - 1) / kPage));
  std::iota(order.begin(), order.end(), 0);
  Rng rng(3);
  shuffle(std::span(order), rng);
  std::vector<std::int32_t> slots(static_cast<std::size_t>(T));
  for (std::int64_t t = 0; t < T; ++t)
    slots[static_cast<std::size_t>(t)] =
        static_cast<std::int32_t>(order[static_cast<std::size_t>(t / kPage)] * kPage + t % kPage);
  return o.ints(slots);
}

TensorView page_pool(Operands& o) {
  return o.random(kBF16,
                  {(sizes().rows + kPage - 1) / kPage, shape().kv_heads, kPage, shape().head_dim});
}

void add_kv_cache() {
  const std::int64_t T = sizes().rows, A = shape().heads, G = shape().kv_heads;
  const std::int64_t D = shape().head_dim, positions = std::min<std::int64_t>(T, 4096);
  add_memory("kv_write", 4 * kHalf * product({T, G, D}), [=](Operands& o) {
    const kernels::KvWrite op{.k = o.random(kBF16, {T, G, D}),
                              .v = o.random(kBF16, {T, G, D}),
                              .slots = new_slots(o),
                              .k_pages = page_pool(o),
                              .v_pages = page_pool(o)};
    return [=] { kv_write(gpu(), op); };
  });
  add_memory("attention_input", 2 * kHalf * product({T, A + 2 * G, D}), [=](Operands& o) {
    const TensorView qkv = o.random(kBF16, {T, shape().qkv_width()});
    const auto part = [&](std::int64_t first, std::int64_t heads) {
      return device::split_heads(device::columns(qkv, first * D, heads * D), heads);
    };
    const kernels::AttentionInput op{.q = part(0, A),
                                     .k = part(A, G),
                                     .v = part(A + G, G),
                                     .q_norm = o.random(kBF16, {D}),
                                     .k_norm = o.random(kBF16, {D}),
                                     .eps = kEps,
                                     .positions = o.ids(T, positions),
                                     .cos = o.random(kF32, {positions, D / 2}),
                                     .sin = o.random(kF32, {positions, D / 2}),
                                     .slots = new_slots(o),
                                     .k_pages = page_pool(o),
                                     .v_pages = page_pool(o)};
    return [=] { attention_input(gpu(), op); };
  });
}

}  // namespace

void add_memory_bound() {
  add_norms();
  add_heads();
  add_activations();
  add_embeddings();
  add_optimizer();
  add_log_probs();
  add_sampling("sample", {}, 0.75);
  // Truncations look at the row again, so they have no aim of their own.
  add_sampling("sample_top_k_top_p", {.top_p = 0.95f, .top_k = 50}, 0);
  add_kv_cache();
}

}  // namespace tandem::bench
