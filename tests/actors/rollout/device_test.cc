// The engine on a GPU: the class is the same, its memory and its operators are the device's.
#include <gtest/gtest.h>

#include <vector>

#include "tests/actors/rollout/engine_builder.h"
#include "tests/runtime/device/cuda_case.h"

namespace tandem::actors {
namespace {

constexpr int kVersions = 5;

EngineConfig small_config() {
  return {.max_prompt_length = 12,
          .max_response_length = 6,
          .max_num_seqs = 8,
          .max_num_batched_tokens = 32,
          .kv_memory_bytes = std::size_t{4} << 20};
}

void submit_three_groups(NativeEngine& engine) {
  engine.submit(group_work(1, "12+34=", 3));
  engine.submit(group_work(2, "7+8=", 2));
  engine.submit(group_work(3, "90+1=", 3));
}

class EngineOnAGpu : public runtime::CudaCase {
 protected:
  std::unique_ptr<NativeEngine> engine(const EngineConfig& config) {
    return model_.engine(config, gpu());
  }
  Payloads generate(const EngineConfig& config) {
    const auto engine = this->engine(config);
    submit_three_groups(*engine);
    Payloads payloads = run_to_end(*engine);
    EXPECT_EQ(engine->pages_free(), engine->pages_total());
    return payloads;
  }

  TinyModel model_{kVersions};
};

// On the emulator products and attention have the CPU's bits (kernels/cuda/matmul.cu,
// kernels/ops/attention.h AT-1) and the rest is a rounding away, too little to draw another token
// from these seeds; a GPU's library is further away.
TEST_F(EngineOnAGpu, GeneratesTheCpusTokens) {
  if (!runtime::emulated()) GTEST_SKIP() << "another library's products";
  const auto on_cpu = model_.engine(small_config());
  submit_three_groups(*on_cpu);
  const Payloads expected = run_to_end(*on_cpu), actual = generate(small_config());
  ASSERT_EQ(actual.size(), 3u);
  for (const auto& [group, payload] : expected) {
    const GroupPayload& there = actual.at(group);
    ASSERT_EQ(there.trajectories.size(), payload.trajectories.size());
    for (std::size_t i = 0; i < payload.trajectories.size(); ++i) {
      const Trajectory &a = there.trajectories[i], &b = payload.trajectories[i];
      EXPECT_EQ(a.tokens, b.tokens);
      EXPECT_EQ(a.text, b.text);
      ASSERT_EQ(a.logprobs.size(), b.logprobs.size());
      for (std::size_t t = 0; t < a.logprobs.size(); ++t)
        EXPECT_NEAR(a.logprobs[t], b.logprobs[t], 1e-5f) << "some ten roundings of 3";
    }
  }
}

TEST_F(EngineOnAGpu, Ne1IsIndependentOfTheBatch) {  // NE-1, NE-4
  EngineConfig narrow = small_config();
  narrow.max_num_seqs = 3;
  narrow.max_num_batched_tokens = 5;  // prompts in chunks
  const Payloads wide = generate(small_config()), chunked = generate(narrow);
  for (const auto& [group, payload] : wide) expect_same(chunked.at(group), payload, "NE-1");
}

TEST_F(EngineOnAGpu, Ne2LogprobsEqualTheLearnersBitForBit) {  // NE-2, DE-2
  for (const auto& [group, payload] : generate(small_config()))
    for (const Trajectory& trajectory : payload.trajectories)
      EXPECT_EQ(trajectory.logprobs,
                learner_logprobs(gpu(), model_, PolicyVersion{0}, payload, trajectory, 1.0f));
}

TEST_F(EngineOnAGpu, AnUpdatedOneIsAFreshOne) {
  const auto swapped = engine(small_config());
  for (int version = 1; version < kVersions; ++version)
    model_.update(*swapped, PolicyVersion{version});
  const auto fresh = model_.try_engine(small_config(), gpu()).value();
  model_.update(*fresh, PolicyVersion{kVersions - 1});
  for (NativeEngine* each : {swapped.get(), fresh.get()}) submit_three_groups(*each);
  const Payloads expected = run_to_end(*fresh), actual = run_to_end(*swapped);
  ASSERT_EQ(actual.size(), 3u);
  for (const auto& [group, payload] : expected) expect_same(actual.at(group), payload, "swapped");
}

}  // namespace
}  // namespace tandem::actors
