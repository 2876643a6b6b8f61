// The learner on the quickstart's model, one rank, one thread:
//   learner/answers      steps on the quickstart's batches: 64 groups of 8, prompts of 6 tokens
//                        and answers of 4
//   learner/scratchpad   steps on longer answers: 64 groups of 8, 8 tokens and 38
//   learner/warm_start   the quickstart's warm start, whole, from random weights
// tokens_per_second counts completion tokens; every group is live. Publishing, payloads and
// messages are not in it.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>

#include "actors/learner/native_trainer.h"
#include "runtime/base/json.h"
#include "tests/bench/must.h"
#include "tests/bench/workload.h"

namespace tandem::bench {
namespace {

using bench::BatchShape;
using bench::must;

const std::filesystem::path kConfigs = std::filesystem::path(TANDEM_SOURCE_DIR) / "configs";

std::unique_ptr<learner::NativeTrainer> make_trainer(
    std::optional<learner::WarmStartConfig> warm_start, std::uint64_t seed) {
  model::Model model =
      must(model::load_model(kConfigs / "models/arithmetic", {model::InitMode::kRandom, seed}));
  std::vector<learner::WarmStartRecord> records;
  std::ifstream lines(kConfigs / "data/warm.jsonl");
  for (std::string line; warm_start && std::getline(lines, line);) {
    const nlohmann::json record = parse_json(line);
    learner::WarmStartRecord tokens{
        must(model.tokenizer.encode(record["prompt"].get<std::string>())),
        must(model.tokenizer.encode(record["completion"].get<std::string>()))};
    tokens.completion.push_back(model.config.eos_token_ids.front());
    records.push_back(std::move(tokens));
  }
  learner::TrainerConfig config;
  config.seed = seed;
  config.steps_total = 1500;
  config.warm_start = warm_start;
  config.checkpoints.resume = learner::ResumeMode::kDisable;
  return must(learner::NativeTrainer::make({.config = config,
                                            .model = std::move(model),
                                            .records = std::move(records),
                                            .gang = nullptr,
                                            .threads = nullptr,
                                            .beat = nullptr}));
}

void train(benchmark::State& state, const BatchShape& shape) {
  const auto trainer = make_trainer({}, 1);
  std::uint64_t tokens = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const learner::TrainBatch batch = bench::random_batch(trainer->step(), shape);
    state.ResumeTiming();
    tokens += must(trainer->train(batch)).report.tokens_trained;
  }
  state.counters["tokens_per_second"] =
      benchmark::Counter(static_cast<double>(tokens), benchmark::Counter::kIsRate);
}

void warm_start(benchmark::State& state) {
  const std::uint64_t seed = static_cast<std::uint64_t>(state.range(0));
  learner::WarmStartSlice slice;
  for (auto _ : state) {
    const auto trainer = make_trainer(
        learner::WarmStartConfig{
            .max_steps = 1000,
            .until = learner::WarmStartUntil{learner::WarmStartMetric::kSampleAccuracy, 0.33}},
        seed);
    slice = {};
    while (!slice.done) slice = must(trainer->warm_start());
  }
  state.counters["steps"] = slice.step;
  state.counters["sample_accuracy"] = slice.metric.value_or(0);
}

constexpr BatchShape kAnswers{
    .groups = 64, .trajectories = 8, .prompt = 6, .completion = 4, .vocab = 16};
constexpr BatchShape kScratchpad{
    .groups = 64, .trajectories = 8, .prompt = 8, .completion = 38, .vocab = 16};

BENCHMARK_CAPTURE(train, answers, kAnswers)->Name("learner/answers");
BENCHMARK_CAPTURE(train, scratchpad, kScratchpad)->Name("learner/scratchpad");
BENCHMARK(warm_start)
    ->Name("learner/warm_start")
    ->ArgName("seed")
    ->DenseRange(1, 5)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace tandem::bench

BENCHMARK_MAIN();
