// The native engine on the quickstart's model, 256 sequences at a time, one thread:
//   engine/scratchpad   8-token prompts, 38-token completions
//   engine/answers      6-token prompts, 4-token completions: a third of the rows are prompts
// tokens_per_second counts sampled tokens; tokenizing and making payloads are in it, storing and
// sending them are not.
//   engine/install      the pause that decoding makes for a version that has arrived: four layers
//   of
//                       Qwen3-0.6B's size; `ratio` is one memcpy of the arena over it
#include <benchmark/benchmark.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "actors/model/checkpoint.h"
#include "actors/rollout/native_engine.h"
#include "tests/bench/must.h"

namespace tandem::bench {
namespace {

using bench::must;

constexpr std::uint64_t kGroups = 256;
constexpr std::int32_t kGroupSize = 8;

void generate(benchmark::State& state, const std::string& prompt, std::int32_t tokens) {
  model::Model model = must(model::load_model(
      std::filesystem::path(TANDEM_SOURCE_DIR) / "configs" / "models" / "arithmetic",
      {.init = model::InitMode::kRandom, .seed = 1}));
  // Every completion has the same length.
  const rollout::EngineConfig config{.sampling = {.min_tokens = tokens},
                                     .args = {.max_num_seqs = 256, .async_scheduling = false},
                                     .max_prompt_length = 16,
                                     .max_response_length = tokens};
  auto engine = must(rollout::NativeEngine::make(
      {model.config, std::make_shared<const model::Tokenizer>(std::move(model.tokenizer))}, config,
      {}));
  engine->begin_update(PolicyVersion{0});
  engine->finish_update(model.weights.bytes());
  std::uint64_t group = 0;
  for (auto _ : state) {
    for (std::uint64_t i = 0; i < kGroups; ++i, ++group)
      engine->submit({.group = GroupId{group}, .seed = group, .n = kGroupSize, .prompt = prompt});
    while (engine->can_step()) {
      engine->step();
      benchmark::DoNotOptimize(engine->poll());
    }
  }
  state.counters["tokens_per_second"] = benchmark::Counter(
      static_cast<double>(engine->stats().generation_tokens), benchmark::Counter::kIsRate);
}

void install(benchmark::State& state) {
  model::Model small = must(model::load_model(
      std::filesystem::path(TANDEM_SOURCE_DIR) / "configs" / "models" / "arithmetic",
      {.init = model::InitMode::kRandom, .seed = 1}));
  model::ModelConfig model = small.config;
  model.hidden_size = 1024;
  model.intermediate_size = 3072;
  model.layers = 4;
  model.heads = 16;
  model.kv_heads = 8;
  model.head_dim = 128;
  auto engine = must(rollout::NativeEngine::make(
      {model, std::make_shared<const model::Tokenizer>(std::move(small.tokenizer))}, {}, {}));
  const std::span<std::byte> sink = must(engine->weight_sink());
  std::vector<std::byte> copy(sink.size());
  engine->begin_update(PolicyVersion{0});
  engine->finish_update(sink);  // touches the memory that the others find warm
  std::memcpy(copy.data(), sink.data(), sink.size());
  double paused = 0, copied = 0;
  PolicyVersion version{1};
  for (auto _ : state) {
    const Time begin = steady_now();
    engine->begin_update(version);
    engine->finish_update(sink);
    const Time installed = steady_now();
    std::memcpy(copy.data(), sink.data(), sink.size());
    benchmark::DoNotOptimize(copy.data());
    paused += seconds(installed - begin);
    copied += seconds(steady_now() - installed);
    state.SetIterationTime(seconds(installed - begin));
    ++version.value;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(sink.size()));
  state.counters["ratio"] = copied / paused;
}

void scratchpad(benchmark::State& state) { generate(state, "123+456=", 38); }
void answers(benchmark::State& state) { generate(state, "36+01=", 4); }

BENCHMARK(scratchpad)->Name("engine/scratchpad")->Unit(benchmark::kMillisecond);
BENCHMARK(install)->Name("engine/install")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(answers)->Name("engine/answers")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem::bench

BENCHMARK_MAIN();
