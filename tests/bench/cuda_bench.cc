// A GPU's operators, the engine and the learner on it, beside what the GPU can do:
//   cuda/limit/…      copying device memory, large square products
//   cuda/memory/…     operators that move memory: bytes per second, over the copy's
//   cuda/product/…    large products of the layers: operations per second, over the square's
//   cuda/decode/…     products of few rows, which read a weight: bytes per second
//   cuda/attention/…  packed forward and backward, and paged decode
//   cuda/engine/…     tokens per second
//   cuda/learner/…    tokens per second; ratio is the MFU
// Counters: the rate, and `limit`, `ratio` and `aim` where there are such. Without a GPU it says so
// and ends; on the emulator (TANDEM_CUDA_MODULE) shapes are small and rates mean nothing.
#include "tests/bench/cuda_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "kernels/ops/matmul.h"
#include "runtime/base/rng.h"
#include "runtime/device/cuda_module.h"

namespace tandem::bench {

namespace {

constexpr DecoderShape kSmall{"0.6b", 1024, 3072, 28, 16, 8, 128, 151936};
constexpr DecoderShape kLarge{"1.7b", 2048, 6144, 28, 16, 8, 128, 151936};
constexpr DecoderShape kTiny{"tiny", 32, 48, 1, 4, 2, 16, 256};

Sizes full_sizes() {
  return {.model_dtype = DType::kBF16,
          .copy_bytes = std::int64_t{1} << 30,
          .gemm_side = 8192,
          .rotation_bytes = std::int64_t{256} << 20,
          .batches = 15,
          .batch_seconds = 5e-3,
          .models = {kSmall, kLarge},
          .rows = 16384,
          .logit_rows = 1024,
          .flat = std::int64_t{1} << 26,
          .sampled_rows = 256,
          .product_rows = {4096, 8192},
          .decode_rows = {1, 8, 64, 256},
          .attention_rows = 4096,
          .decode_attention = {{256, 1024}, {1, 4096}, {1, 32768}},
          .engine_sequences = 256,
          .engine_length_unit = 1,
          .engine_prompt = 1024,
          .engine_tokens = 512,
          .learner_prompt = 128,
          .learner_completion = 497,  // 128 + 8 * 496 rows are 4096
          .learner_groups_max = 64,
          .slow_seconds = 12};
}

Sizes tiny_sizes() {
  return {.model_dtype = DType::kBF16,
          .copy_bytes = 1 << 16,
          .gemm_side = 32,
          .rotation_bytes = 0,
          .batches = 1,
          .batch_seconds = 0,
          .models = {kTiny},
          .rows = 48,
          .logit_rows = 4,
          .flat = 1000,
          .sampled_rows = 3,
          .product_rows = {32},
          .decode_rows = {1, 8},
          .attention_rows = 32,
          .decode_attention = {{3, 40}, {1, 1100}},
          .engine_sequences = 4,
          .engine_length_unit = 100,
          .engine_prompt = 16,
          .engine_tokens = 4,
          .learner_prompt = 8,
          .learner_completion = 3,
          .learner_groups_max = 2,
          .slow_seconds = 60};
}

// Random bytes that operands are filled from, in the device's memory.
constexpr std::int64_t kPatternElements = std::int64_t{1} << 22;

device::Buffer pattern(DType dtype, Operands::Values values) {
  const std::int64_t count = emulated() ? 1 << 14 : kPatternElements;
  Rng rng(7);
  std::vector<float> drawn(static_cast<std::size_t>(count));
  for (float& value : drawn)
    value =
        static_cast<float>(values == Operands::Values::kSigned ? rng.unit() - 0.5 : 1 - rng.unit());
  std::vector<std::byte> bytes(drawn.size() * device::size_bytes(dtype));
  device::from_f32(drawn, dtype, bytes);
  device::Buffer there =
      must(device::Buffer::allocate(bytes.size(), "random numbers", device::MemoryKind::kDevice));
  device::copy(gpu(), there.data(), bytes.data(), bytes.size());
  device::synchronize(gpu());
  return there;
}

const device::Buffer& pattern_of(DType dtype, Operands::Values values) {
  static const device::Buffer f32 = pattern(DType::kF32, Operands::Values::kSigned);
  static const device::Buffer bf16 = pattern(DType::kBF16, Operands::Values::kSigned);
  static const device::Buffer positive = pattern(DType::kF32, Operands::Values::kPositive);
  CHECK(dtype == DType::kF32 || (dtype == DType::kBF16 && values == Operands::Values::kSigned));
  if (dtype == DType::kBF16) return bf16;
  return values == Operands::Values::kSigned ? f32 : positive;
}

double copy_rate() {
  Operands operands;
  const auto bytes = static_cast<std::size_t>(sizes().copy_bytes);
  const TensorView from = operands.random(DType::kF32, {sizes().copy_bytes / 4});
  const TensorView to = operands.random(DType::kF32, {sizes().copy_bytes / 4});
  const auto call = [&](std::size_t) { device::copy(gpu(), to.data, from.data, bytes); };
  return 2 * static_cast<double>(bytes) / seconds_per_call(call, 1);
}

double gemm_rate() {
  Operands operands;
  const std::int64_t n = sizes().gemm_side;
  const TensorView x = operands.random(DType::kBF16, {n, n});
  const TensorView weight = operands.random(DType::kBF16, {n, n});
  const TensorView y = operands.random(DType::kBF16, {n, n});
  const auto call = [&](std::size_t) {
    matmul(gpu(),
           kernels::MatmulPlain{.x = x, .weight = weight, .y = y, .rows = kernels::Rows::kFastest});
  };
  return 2 * static_cast<double>(n * n * n) / seconds_per_call(call, 1);
}

}  // namespace

bool emulated() {
  static const bool is =
      std::strcmp(device::cuda_module().value()->devices().name, "emulated") == 0;
  return is;
}

const Sizes& sizes() {
  static const Sizes chosen = emulated() ? tiny_sizes() : full_sizes();
  return chosen;
}

const Stream& gpu() {
  static const device::Queue queue(device::DeviceKind::kCuda);
  return queue.stream();
}

std::byte* Operands::allocate(std::size_t bytes) {
  blocks_.push_back(must(device::Buffer::allocate(bytes, "operands", device::MemoryKind::kDevice)));
  return blocks_.back().data();
}

std::byte* Operands::put(std::span<const std::byte> bytes) {
  std::byte* const there = allocate(bytes.size());
  device::copy(gpu(), there, bytes.data(), bytes.size());
  device::synchronize(gpu());
  return there;
}

TensorView Operands::random(DType dtype, std::initializer_list<std::int64_t> shape, Values values) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  const std::size_t bytes = static_cast<std::size_t>(count) * device::size_bytes(dtype);
  const device::Buffer& source = pattern_of(dtype, values);
  std::byte* const there = allocate(bytes);
  for (std::size_t done = 0; done < bytes; done += source.size())
    device::copy(gpu(), there + done, source.data(), std::min(source.size(), bytes - done));
  return device::tensor(there, dtype, shape);
}

TensorView Operands::ids(std::int64_t count, std::int64_t bound) {
  Rng rng(static_cast<std::uint64_t>(count + bound) + blocks_.size());
  std::vector<std::int32_t> drawn(static_cast<std::size_t>(count));
  for (std::int32_t& id : drawn)
    id = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(bound)));
  return ints(drawn);
}

TensorView Operands::ints(std::span<const std::int32_t> values) {
  return device::tensor(put(std::as_bytes(values)), DType::kI32, {std::ssize(values)});
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::size_t sets_of(double bytes) {
  constexpr double kSetsMax = 128;
  const double wanted = static_cast<double>(sizes().rotation_bytes) / bytes;
  return static_cast<std::size_t>(std::clamp(wanted, 0.0, kSetsMax)) + 1;
}

double seconds_per_call(const std::function<void(std::size_t set)>& call, std::size_t sets) {
  std::size_t next = 0;
  const auto batch = [&](int calls) {
    device::synchronize(gpu());
    const double began = now();
    for (int i = 0; i < calls; ++i) call(next++ % sets);
    device::synchronize(gpu());
    return (now() - began) / calls;
  };
  constexpr double kCallsMax = 1000;
  const int round = static_cast<int>(sets);
  batch(round);
  const double about = emulated() ? 1 : batch(round);
  const int calls = static_cast<int>(std::clamp(sizes().batch_seconds / about, 1.0, kCallsMax));
  std::vector<double> seconds(static_cast<std::size_t>(sizes().batches));
  for (double& each : seconds) each = batch(calls);
  return median(std::move(seconds));
}

const Limits& limits() {
  static const Limits measured{copy_rate(), gemm_rate()};
  return measured;
}

namespace {
bool any_failed = false;
}  // namespace

void fail(benchmark::State& state, const char* message) {
  any_failed = true;
  state.SkipWithError(message);
}

void report(benchmark::State& state, const Figure& figure) {
  state.counters[figure.counter] = figure.rate;
  if (figure.limit > 0) {
    state.counters["limit"] = figure.limit;
    state.counters["ratio"] = figure.rate / figure.limit;
  }
  if (figure.aim > 0) state.counters["aim"] = figure.aim;
}

namespace {

double measured(benchmark::State& state, std::size_t sets, const Call& call) {
  double seconds = 0;
  for (auto _ : state) {
    seconds = seconds_per_call(call, sets);
    state.SetIterationTime(seconds);
  }
  return seconds;
}

}  // namespace

void measure(benchmark::State& state, const Memory& work, std::size_t sets, const Call& call) {
  const double limit = limits().copy_bytes_per_second;
  report(state, {"bytes_per_second", work.bytes / measured(state, sets, call), limit, work.aim});
}

void measure(benchmark::State& state, const Arithmetic& work, std::size_t sets, const Call& call) {
  const double limit = limits().gemm_items_per_second;
  report(state,
         {"items_per_second", work.operations / measured(state, sets, call), limit, work.aim});
}

void add(const std::string& name, std::function<void(benchmark::State&)> body) {
  benchmark::RegisterBenchmark(("cuda/" + name).c_str(), std::move(body))
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

void add_limits() {
  const auto show = [](const char* counter, double Limits::*rate) {
    return [=](benchmark::State& state) {
      for (auto _ : state) state.SetIterationTime(1);
      report(state, {.counter = counter, .rate = limits().*rate});
    };
  };
  add("limit/copy", show("bytes_per_second", &Limits::copy_bytes_per_second));
  add("limit/gemm", show("items_per_second", &Limits::gemm_items_per_second));
}

}  // namespace tandem::bench

int main(int argc, char** argv) {
  if (const auto& module = tandem::device::cuda_module(); !module) {
    std::printf("no GPU to test on: %s\n", module.error().message.c_str());
    return 0;
  }
  tandem::bench::add_limits();
  tandem::bench::add_memory_bound();
  tandem::bench::add_products();
  tandem::bench::add_attention();
  tandem::bench::add_engine();
  tandem::bench::add_learner();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 64;
  benchmark::RunSpecifiedBenchmarks();
  return tandem::bench::any_failed ? 1 : 0;
}
