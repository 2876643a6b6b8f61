// Matrix products at decoder shapes, each beside oneDNN in the same process; on one thread unless
// the name says otherwise:
//   gemm/forward/M/K/N     y = x W^T with a packed weight, in f32
//   gemm/backward_input/M/K/N, gemm/backward_weight/M/K/N
//   gemm/bf16/forward/M/K/N, and so on: the same in bf16
//   gemm/2_threads/backward_weight/M/K/N: on two threads
// items_per_second is floating-point operations per second, of CPU time where there is one thread
// and oneDNN has no threads of its own; `ratio` is ours / oneDNN's, measured in alternating slices
// so that a busy neighbour slows both. Where oneDNN is not installed, or has no such product on
// this processor, Tandem is measured alone. The label is our instruction set, which TANDEM_ISA
// chooses (ONEDNN_MAX_CPU_ISA: oneDNN's).
//
// Forward multiplies by a weight that both have laid out beforehand. In backward the second operand
// is another one in every training step and has no layout of its own: oneDNN reads it where it lies
// or reorders it first, whatever is faster for the shape, and `ratio` compares these whole
// products. The gradient of a weight is added to those before it by both. `ratio_reordered` is over
// oneDNN's rate without that reordering, which no training step reaches.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <ctime>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/ops/matmul.h"
#include "runtime/device/memory.h"
#include "runtime/device/parallel.h"
#include "tests/bench/gemm_peer.h"
#include "tests/bench/product_kind.h"

namespace tandem::kernels {
namespace {

using Kind = bench::ProductKind;
using device::DType;

struct Shape {
  std::int64_t m, k, n;
};

// The product that is measured for a shape.
struct Product {
  DType dtype;
  Kind kind;
  int threads = 1;
};

struct Operands {
  Operands(const Shape& s, DType dtype)
      : x(fill(s.m * s.k, dtype)),
        w(fill(s.n * s.k, dtype)),
        y(fill(s.m * s.n, dtype)),
        dw(fill(s.n * s.k, DType::kF32)),
        panels(fill(packed_elements(dtype, s.n, s.k), dtype)) {}

  static device::Buffer fill(std::int64_t elements, DType dtype) {
    const std::size_t bytes = static_cast<std::size_t>(elements) * device::size_bytes(dtype);
    auto buffer = device::Buffer::allocate(bytes, "a benchmark");
    std::uint32_t state = 1;
    const auto value = [&state] {
      state = state * 1664525u + 1013904223u;
      return static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
    };
    if (dtype == DType::kF32) {
      for (float& to : buffer->as<float>()) to = value();
    } else {
      for (std::uint16_t& to : buffer->as<std::uint16_t>())
        to = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value()) >> 16);
    }
    return *std::move(buffer);
  }

  device::Buffer x, w, y, dw, panels;
};

// One call of ours for a shape and kind.
class Ours {
 public:
  Ours(const Shape& s, const Product& product, Operands& o)
      : kind_(product.kind), pool_(product.threads) {
    const DType dtype = product.dtype;
    x_ = device::tensor(o.x.as<std::byte>().data(), dtype, {s.m, s.k});
    w_ = device::tensor(o.w.as<std::byte>().data(), dtype, {s.n, s.k});
    y_ = device::tensor(o.y.as<std::byte>().data(), dtype, {s.m, s.n});
    dw_ = device::tensor(o.dw.as<float>().data(), {s.n, s.k});
    packed_ = packed_weight(o.panels.as<std::byte>().data(), dtype, s.n, s.k);
    pack_weight(stream_, {.weight = w_, .packed = packed_});
  }
  void operator()() const {
    switch (kind_) {
      case Kind::kForward:
        return matmul(stream_, Matmul{.x = x_, .weight = packed_, .y = y_});
      case Kind::kBackwardInput:
        return matmul(stream_, MatmulBackwardInput{.dy = y_, .weight = w_, .dx = x_});
      case Kind::kBackwardWeight:
        return matmul(stream_, MatmulBackwardWeight{.dy = y_, .x = x_, .dweight = dw_});
    }
  }

 private:
  Kind kind_;
  device::ThreadPool pool_;
  Stream stream_{.pool = &pool_};
  TensorView x_, w_, y_, dw_;
  PackedWeight packed_;
};

struct PeerProduct {
  bench::GemmPeer::Shape shape;
  bench::GemmPeer::Operands operands;
};

PeerProduct peer_product(const Shape& s, const Product& product, Operands& o) {
  bench::GemmPeer::Shape shape;
  shape.bf16 = shape.bf16_out = product.dtype == DType::kBF16;
  shape.threads = product.threads;
  void *x = o.x.as<std::byte>().data(), *w = o.w.as<std::byte>().data();
  void *y = o.y.as<std::byte>().data(), *dw = o.dw.as<std::byte>().data();
  switch (product.kind) {
    case Kind::kForward:  // x [M,K] . W^T [K,N]
      shape.rows = s.m, shape.columns = s.n, shape.depth = s.k, shape.b_transposed = true;
      return {shape, {.a = x, .b = w, .c = y}};
    case Kind::kBackwardInput:  // dy [M,N] . W [N,K]
      shape.rows = s.m, shape.columns = s.k, shape.depth = s.n;
      return {shape, {.a = y, .b = w, .c = x}};
    case Kind::kBackwardWeight:  // dy^T [N,M] . x [M,K]
      break;
  }
  shape.rows = s.n, shape.columns = s.k, shape.depth = s.m, shape.a_transposed = true;
  shape.bf16_out = false, shape.adds = true;
  return {shape, {.a = y, .b = x, .c = dw}};
}

struct Peer {
  bench::GemmPeer product;
  double seconds = 0;
};

// In the layouts of the second operand that are compared, kReordered first.
std::vector<Peer> peers_of(const Shape& s, const Product& product, Operands& operands) {
  using enum bench::GemmPeer::Layout;
  std::vector<Peer> peers;
  if (!bench::GemmPeer::computes(product.dtype == DType::kBF16)) return peers;
  const PeerProduct peer = peer_product(s, product, operands);
  for (const auto layout : {kReordered, kReordering, kPlain})
    if (layout == kReordered || product.kind != Kind::kForward)
      peers.push_back({.product = {peer.shape, peer.operands, layout}});
  return peers;
}

// CPU time of this thread, if it is the only one: a busy machine takes its turns elsewhere.
double now(int threads) {
  static const bool alone = bench::GemmPeer::uses_the_callers_thread();
  timespec time{};
  clock_gettime(threads == 1 && alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

template <class Call>
double seconds(const Call& call, int calls, int threads) {
  const double begin = now(threads);
  for (int i = 0; i < calls; ++i) call();
  return now(threads) - begin;
}

void run(benchmark::State& state, Shape s, Product product) {
  Operands operands(s, product.dtype);
  const Ours ours(s, product, operands);
  std::vector<Peer> peers = peers_of(s, product, operands);
  const int threads = product.threads;
  const double flops =
      2.0 * static_cast<double>(s.m) * static_cast<double>(s.k) * static_cast<double>(s.n);
  // The peer's threads look for more work for a while after each product, on the cores of ours: on
  // two threads a slice is long beside that.
  const double slice_flops = threads == 1 ? 2e7 : 1e10;
  const int calls = static_cast<int>(slice_flops / flops) + 1;
  seconds(ours, 2, threads);
  for (Peer& peer : peers) seconds([&peer] { peer.product.multiply(); }, 2, threads);
  double mine = 0;
  for (auto _ : state) {
    const double slice = seconds(ours, calls, threads);
    mine += slice;
    for (Peer& peer : peers)
      peer.seconds += seconds([&peer] { peer.product.multiply(); }, calls, threads);
    state.SetIterationTime(slice);
  }
  const double done = flops * calls * static_cast<double>(state.iterations());
  state.counters["items_per_second"] = done / mine;
  state.SetLabel(name(*chosen_isa()));
  if (peers.empty()) return;
  const double reordered = peers[0].seconds;
  const double whole = peers.size() == 1 ? reordered : std::min(peers[1].seconds, peers[2].seconds);
  state.counters["onednn_items_per_second"] = done / whole;
  state.counters["ratio"] = whole / mine;
  if (peers.size() > 1) state.counters["ratio_reordered"] = reordered / mine;
}

void add(const Shape& s, const Product& product) {
  const std::string title =
      std::string("gemm/") + (product.dtype == DType::kF32 ? "" : "bf16/") +
      (product.threads == 1 ? "" : std::to_string(product.threads) + "_threads/") +
      name(product.kind) + "/" + std::to_string(s.m) + "/" + std::to_string(s.k) + "/" +
      std::to_string(s.n);
  benchmark::RegisterBenchmark(title.c_str(), run, s, product)->UseManualTime()->MinTime(0.05);
}

void add_all() {
  const std::int64_t rows[] = {1, 2, 4, 8, 64, 256, 1024};
  const Shape small[] = {{0, 64, 32},  {0, 64, 64},   {0, 64, 128},  {0, 64, 384},
                         {0, 192, 64}, {0, 128, 512}, {0, 256, 1024}};
  // The linear layers of SmolLM2-135M, and of Qwen3-0.6B.
  const Shape real[] = {{0, 576, 960},   {0, 576, 3072},  {0, 1536, 576}, {0, 1024, 4096},
                        {0, 2048, 1024}, {0, 1024, 6144}, {0, 3072, 1024}};
  const auto add_layer = [&](Shape layer, const Product& product) {
    for (const std::int64_t m : rows)
      if (product.kind == Kind::kForward || m >= 256) add({m, layer.k, layer.n}, product);
  };
  for (const Kind kind : {Kind::kForward, Kind::kBackwardInput, Kind::kBackwardWeight}) {
    for (const Shape& layer : small) add_layer(layer, {DType::kF32, kind});
    for (const DType dtype : {DType::kF32, DType::kBF16})
      for (const Shape& layer : real) add_layer(layer, {dtype, kind});
  }
  for (const Shape& layer : real)
    add_layer(layer, {.dtype = DType::kF32, .kind = Kind::kBackwardWeight, .threads = 2});
}

}  // namespace
}  // namespace tandem::kernels

int main(int argc, char** argv) {
  tandem::kernels::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 64;
  benchmark::RunSpecifiedBenchmarks();
}
