#include "tests/bench/workload.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "runtime/base/rng.h"
#include "tests/bench/must.h"

namespace tandem::bench {

model::Tokenizer tokenizer() {
  const char* const bundle = std::getenv("TANDEM_SOURCE_DIR");  // where scripts/bundle's bench runs
  const std::filesystem::path sources = bundle != nullptr ? bundle : TANDEM_SOURCE_DIR;
  return must(model::Tokenizer::read(sources / "configs/models/arithmetic/tokenizer.json"));
}

std::string digits(std::int64_t tokens, std::uint64_t seed) {
  Rng rng(derive_seed(seed, "digits"));
  std::string text;
  for (std::int64_t i = 0; i < tokens; ++i) text += static_cast<char>('0' + rng.below(10));
  return text;
}

learner::TrainBatch random_batch(StepId step, const BatchShape& shape) {
  Rng rng(derive_seed(1, {static_cast<std::uint64_t>(step.value)}));
  const auto tokens = [&](std::int64_t count) {
    std::vector<std::int32_t> drawn(static_cast<std::size_t>(count));
    for (std::int32_t& token : drawn)
      token = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(shape.vocab)));
    return drawn;
  };
  const std::vector<float> logprobs(static_cast<std::size_t>(shape.completion),
                                    -std::log(static_cast<float>(shape.vocab)));
  learner::TrainBatch batch{step, {}};
  std::int64_t made = 0;
  for (std::int64_t g = 0; g < shape.groups; ++g) {
    learner::BatchGroup group{GroupId{static_cast<std::uint64_t>(g)}, tokens(shape.prompt), {}};
    for (std::int64_t i = 0; i < shape.trajectories; ++i)
      group.trajectories.push_back({.tokens = tokens(shape.completion),
                                    .logprobs = logprobs,
                                    .oldest = PolicyVersion{step.value},
                                    .reward = made++ % 2 == 0 ? 0.0f : 1.0f});
    batch.groups.push_back(std::move(group));
  }
  return batch;
}

}  // namespace tandem::bench
