// Matrix products at decoder shapes, one thread, each beside oneDNN in the same process:
//   gemm/forward/M/K/N     y = x W^T with a packed weight     gemm/backward_input, backward_weight
//   gemm/…_onednn          the same by oneDNN's matmul, its weight reordered beforehand
// items_per_second is floating-point operations per second of CPU time; `ratio` is ours / oneDNN's,
// measured in alternating slices so that a busy neighbour slows both.
#include <benchmark/benchmark.h>

#include <ctime>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "runtime/device/memory.h"
#include "tests/bench/gemm_peer.h"
#include "tests/bench/product_kind.h"

namespace tandem::kernels {
namespace {

struct Shape {
  std::int64_t m, k, n;
};

using Kind = bench::ProductKind;

struct Operands {
  explicit Operands(const Shape& s)
      : x(fill(s.m * s.k)),
        w(fill(s.n * s.k)),
        y(fill(s.m * s.n)),
        panels(fill(packed_elements(s.n, s.k))) {}
  static runtime::Buffer fill(std::int64_t elements) {
    auto buffer = runtime::Buffer::allocate(static_cast<std::size_t>(elements) * 4, "a benchmark");
    std::uint32_t state = 1;
    for (float& value : buffer->as<float>()) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
    }
    return *std::move(buffer);
  }
  runtime::Buffer x, w, y, panels;
};

// One call of ours for a shape and kind.
class Ours {
 public:
  Ours(const Shape& s, Kind kind, Operands& operands) : kind_(kind) {
    x_ = runtime::tensor(operands.x.as<float>().data(), {s.m, s.k});
    w_ = runtime::tensor(operands.w.as<float>().data(), {s.n, s.k});
    y_ = runtime::tensor(operands.y.as<float>().data(), {s.m, s.n});
    packed_ = packed_weight(operands.panels.as<float>().data(), s.n, s.k);
    pack_weight(stream_, {.weight = w_, .packed = packed_});
  }
  void operator()() const {
    switch (kind_) {
      case Kind::kForward:
        return matmul(stream_, Matmul{.x = x_, .weight = packed_, .y = y_});
      case Kind::kBackwardInput:
        return matmul(stream_, MatmulBackwardInput{.dy = y_, .weight = w_, .dx = x_});
      case Kind::kBackwardWeight:
        return matmul(stream_, MatmulBackwardWeight{.dy = y_, .x = x_, .dweight = w_});
    }
  }

 private:
  Kind kind_;
  Stream stream_;
  TensorView x_, w_, y_;
  PackedWeight packed_;
};

bench::GemmPeer peer(const Shape& s, Kind kind, Operands& o) {
  float *x = o.x.as<float>().data(), *w = o.w.as<float>().data(), *y = o.y.as<float>().data();
  switch (kind) {
    case Kind::kForward:  // x [M,K] . W^T [K,N]
      return bench::GemmPeer({.rows = s.m, .columns = s.n, .depth = s.k, .b_transposed = true},
                             {.a = x, .b = w, .c = y});
    case Kind::kBackwardInput:  // dy [M,N] . W [N,K]
      return bench::GemmPeer({.rows = s.m, .columns = s.k, .depth = s.n}, {.a = y, .b = w, .c = x});
    case Kind::kBackwardWeight:  // dy^T [N,M] . x [M,K]
      break;
  }
  return bench::GemmPeer({.rows = s.n, .columns = s.k, .depth = s.m, .a_transposed = true},
                         {.a = y, .b = x, .c = w});
}

// CPU time of this thread: both products run on it, and a busy machine takes its turns elsewhere.
double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

template <class Call>
double seconds(const Call& call, int calls) {
  const double begin = now();
  for (int i = 0; i < calls; ++i) call();
  return now() - begin;
}

void run(benchmark::State& state, Shape s, Kind kind) {
  Operands operands(s);
  const Ours ours(s, kind, operands);
  bench::GemmPeer theirs = peer(s, kind, operands);
  const double flops =
      2.0 * static_cast<double>(s.m) * static_cast<double>(s.k) * static_cast<double>(s.n);
  const int calls = static_cast<int>(2e7 / flops) + 1;
  const auto call_theirs = [&theirs] { theirs.multiply(); };
  seconds(ours, 2);
  seconds(call_theirs, 2);
  double mine = 0, peers = 0;
  for (auto _ : state) {
    const double slice = seconds(ours, calls);
    mine += slice;
    peers += seconds(call_theirs, calls);
    state.SetIterationTime(slice);
  }
  const double done = flops * calls * static_cast<double>(state.iterations());
  state.counters["items_per_second"] = done / mine;
  if (bench::GemmPeer::kPresent) {
    state.counters["onednn_items_per_second"] = done / peers;
    state.counters["ratio"] = peers / mine;
  }
}

void add_all() {
  const std::int64_t rows[] = {1, 2, 4, 8, 64, 256, 2048};
  const Shape layers[] = {{0, 64, 32},    {0, 64, 64},    {0, 64, 128},
                          {0, 64, 384},   {0, 192, 64},   {0, 128, 512},
                          {0, 256, 1024}, {0, 512, 2048}, {0, 1024, 4096}};
  for (const Kind kind : {Kind::kForward, Kind::kBackwardInput, Kind::kBackwardWeight}) {
    for (const Shape& layer : layers) {
      for (const std::int64_t m : rows) {
        if (kind != Kind::kForward && m < 256) continue;
        const Shape s{m, layer.k, layer.n};
        const std::string title = std::string("gemm/") + name(kind) + "/" + std::to_string(s.m) +
                                  "/" + std::to_string(s.k) + "/" + std::to_string(s.n);
        benchmark::RegisterBenchmark(title.c_str(), run, s, kind)->UseManualTime()->MinTime(0.05);
      }
    }
  }
}

}  // namespace
}  // namespace tandem::kernels

int main(int argc, char** argv) {
  tandem::kernels::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 64;
  benchmark::RunSpecifiedBenchmarks();
}
