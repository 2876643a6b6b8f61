// The native engine on the quickstart's model, 256 sequences at a time, one thread:
//   engine/scratchpad   8-token prompts, 38-token completions
//   engine/answers      6-token prompts, 4-token completions: a third of the rows are prompts
// tokens_per_second counts sampled tokens; tokenizing and making payloads are in it, storing and
// sending them are not.
#include <benchmark/benchmark.h>

#include <cstring>
#include <filesystem>

#include "actors/model/checkpoint.h"
#include "actors/rollout/native_engine.h"
#include "tests/bench/must.h"

namespace tandem::actors {
namespace {

using bench::must;

constexpr std::uint64_t kGroups = 256;
constexpr std::int32_t kGroupSize = 8;

void generate(benchmark::State& state, const std::string& prompt, std::int32_t tokens) {
  Model model = must(
      load_model(std::filesystem::path(TANDEM_SOURCE_DIR) / "configs" / "models" / "arithmetic",
                 {.init = InitMode::kRandom, .seed = 1}));
  const EngineConfig config{.min_tokens = tokens,  // every completion has the same length
                            .max_prompt_length = 16,
                            .max_response_length = tokens,
                            .max_num_seqs = 256};
  auto engine = must(NativeEngine::make(
      {model.config, std::make_shared<const Tokenizer>(std::move(model.tokenizer))}, config, {}));
  engine->begin_update(PolicyVersion{0});
  std::memcpy(engine->weight_sink().data(), model.weights.bytes().data(),
              engine->weight_sink().size());
  engine->finish_update();
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

void scratchpad(benchmark::State& state) { generate(state, "123+456=", 38); }
void answers(benchmark::State& state) { generate(state, "36+01=", 4); }

BENCHMARK(scratchpad)->Name("engine/scratchpad")->Unit(benchmark::kMillisecond);
BENCHMARK(answers)->Name("engine/answers")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem::actors

BENCHMARK_MAIN();
