// Operators beside the matrix products, in f32 on one thread, at the sizes of the quickstart's
// model and of SmolLM2-135M: operators/swiglu/TOKENS/CHANNELS and so on. items_per_second counts
// elements that are written. TANDEM_ISA chooses the instruction set, which the label names.
#include <benchmark/benchmark.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"
#include "kernels/ops/swiglu.h"
#include "runtime/device/memory.h"

namespace tandem::kernels {
namespace {

using device::tensor;

constexpr std::int64_t kTokens = 256;

// Floats between 0.5 and 1, so that no repetition makes them denormal or infinite.
class Values {
 public:
  explicit Values(std::int64_t count)
      : memory_(*device::Buffer::allocate(static_cast<std::size_t>(count) * sizeof(float),
                                          "a benchmark")) {
    std::uint32_t state = 1;
    for (float& value : memory_.as<float>()) {
      state = state * 1664525u + 1013904223u;
      value = 0.5f + static_cast<float>(state >> 8) * 0x1p-25f;
    }
  }
  float* data() { return memory_.as<float>().data(); }

 private:
  device::Buffer memory_;
};

void measure(benchmark::State& state, std::int64_t written, const std::function<void()>& call) {
  for (auto _ : state) call();
  state.SetItemsProcessed(state.iterations() * written);
  state.SetLabel(name(*chosen_isa()));
}

void run_swiglu(benchmark::State& state, std::int64_t channels) {
  Values x(kTokens * 2 * channels), y(kTokens * channels);
  measure(state, kTokens * channels, [&] {
    swiglu(Stream{}, {.x = tensor(x.data(), {kTokens, 2 * channels}),
                      .y = tensor(y.data(), {kTokens, channels})});
  });
}

void run_swiglu_backward(benchmark::State& state, std::int64_t channels) {
  Values x(kTokens * 2 * channels), dx(kTokens * 2 * channels), dy(kTokens * channels);
  measure(state, kTokens * 2 * channels, [&] {
    swiglu(Stream{}, SwigluBackward{.dy = tensor(dy.data(), {kTokens, channels}),
                                    .x = tensor(x.data(), {kTokens, 2 * channels}),
                                    .dx = tensor(dx.data(), {kTokens, 2 * channels})});
  });
}

void run_rms_norm(benchmark::State& state, std::int64_t channels) {
  Values x(kTokens * channels), y(kTokens * channels), weight(channels);
  measure(state, kTokens * channels, [&] {
    rms_norm(Stream{}, RmsNorm{.x = tensor(x.data(), {kTokens, channels}),
                               .weight = tensor(weight.data(), {channels}),
                               .y = tensor(y.data(), {kTokens, channels}),
                               .eps = 1e-6f});
  });
}

void run_rms_norm_backward(benchmark::State& state, std::int64_t channels) {
  const std::int64_t scratch = rms_norm_workspace(device::DeviceKind::kCpu, kTokens, channels);
  Values dy(kTokens * channels), x(kTokens * channels), dx(kTokens * channels);
  Values weight(channels), dweight(channels), inv_rms(kTokens), workspace(scratch);
  measure(state, kTokens * channels, [&] {
    rms_norm(Stream{}, RmsNormBackward{.dy = tensor(dy.data(), {kTokens, channels}),
                                       .x = tensor(x.data(), {kTokens, channels}),
                                       .weight = tensor(weight.data(), {channels}),
                                       .inv_rms = tensor(inv_rms.data(), {kTokens}),
                                       .dx = tensor(dx.data(), {kTokens, channels}),
                                       .output = Output::kWrite,
                                       .dweight = tensor(dweight.data(), {channels}),
                                       .workspace = tensor(workspace.data(), {scratch})});
  });
}

// `channels` of all heads together, which have 32 channels each.
void run_rope(benchmark::State& state, std::int64_t channels) {
  constexpr std::int64_t kHalf = 16;
  Values x(kTokens * channels), cos(kTokens * kHalf), sin(kTokens * kHalf);
  std::vector<std::int32_t> positions(kTokens);
  std::iota(positions.begin(), positions.end(), 0);
  fill_rope_table({.cos = tensor(cos.data(), {kTokens, kHalf}),
                   .sin = tensor(sin.data(), {kTokens, kHalf}),
                   .theta = 1e4});
  measure(state, kTokens * channels, [&] {
    rope(Stream{}, {.x = tensor(x.data(), {kTokens, channels / (2 * kHalf), 2 * kHalf}),
                    .positions = tensor(positions.data(), {kTokens}),
                    .cos = tensor(cos.data(), {kTokens, kHalf}),
                    .sin = tensor(sin.data(), {kTokens, kHalf})});
  });
}

void run_embedding(benchmark::State& state, std::int64_t channels) {
  Values table(kTokens * channels), y(kTokens * channels);
  std::vector<std::int32_t> ids(kTokens);
  std::iota(ids.begin(), ids.end(), 0);
  measure(state, kTokens * channels, [&] {
    embedding(Stream{}, {.ids = tensor(ids.data(), {kTokens}),
                         .table = tensor(table.data(), {kTokens, channels}),
                         .y = tensor(y.data(), {kTokens, channels})});
  });
}

void run_add(benchmark::State& state, std::int64_t channels) {
  Values x(kTokens * channels), y(kTokens * channels);
  measure(state, kTokens * channels, [&] {
    add(Stream{},
        {.x = tensor(x.data(), {kTokens * channels}), .y = tensor(y.data(), {kTokens * channels})});
    // Without this y would grow.
    scale(Stream{}, {.y = tensor(y.data(), {kTokens * channels}), .factor = 0.5f});
  });
}

void add_all() {
  using Run = void (*)(benchmark::State&, std::int64_t);
  struct Operator {
    const char* name;
    Run run;
    std::int64_t small, real;  // channels
  };
  for (const Operator& op : {Operator{"swiglu", run_swiglu, 192, 1536},
                             {"swiglu_backward", run_swiglu_backward, 192, 1536},
                             {"rms_norm", run_rms_norm, 64, 576},
                             {"rms_norm_backward", run_rms_norm_backward, 64, 576},
                             {"rope", run_rope, 64, 576},
                             {"embedding", run_embedding, 64, 576},
                             {"add_and_scale", run_add, 64, 576}}) {
    for (const std::int64_t channels : {op.small, op.real}) {
      const std::string title = std::string("operators/") + op.name + "/" +
                                std::to_string(kTokens) + "/" + std::to_string(channels);
      benchmark::RegisterBenchmark(title.c_str(), op.run, channels)->MinTime(0.05);
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
