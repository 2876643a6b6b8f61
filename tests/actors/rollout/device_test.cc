// The engine on a GPU: the class is the same, its memory and its operators are the device's.
//
// Tests actors/rollout/native_engine.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/actors/rollout/engine_builder.h"
#include "tests/runtime/device/cuda_case.h"

namespace tandem::rollout {
namespace {

constexpr int kVersions = 5;

EngineConfig small_config() {
  return {.args = {.max_num_seqs = 8, .max_num_batched_tokens = 32, .cudagraph_capture_sizes = {}},
          .max_prompt_length = 12,
          .max_response_length = 6,
          .kv_memory_bytes = std::size_t{4} << 20};
}

void submit_three_groups(NativeEngine& engine) {
  engine.submit(group_work(1, "12+34=", 3));
  engine.submit(group_work(2, "7+8=", 2));
  engine.submit(group_work(3, "90+1=", 3));
}

class EngineOnAGpu : public device::CudaCase, public ::testing::WithParamInterface<device::DType> {
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

  TinyModel model_{kVersions, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Of, EngineOnAGpu,
                         ::testing::Values(device::DType::kF32, device::DType::kBF16),
                         [](const auto& test) { return device::name(test.param); });

// On the emulator short products that are written, and attention, have the CPU's bits
// (kernels/cuda/matmul.cu, kernels/ops/attention.h AT-1) and the rest is a rounding away, too
// little to draw another token from these seeds; a GPU's library is further away.
TEST_P(EngineOnAGpu, GeneratesTheCpusTokens) {
  if (!device::emulated()) GTEST_SKIP() << "another library's products";
  if (GetParam() != device::DType::kF32)
    GTEST_SKIP() << "in bf16 its attention is not the CPU's (AT-1)";
  const auto on_cpu = model_.engine(small_config());
  submit_three_groups(*on_cpu);
  const Payloads expected = run_to_end(*on_cpu), actual = generate(small_config());
  ASSERT_EQ(actual.size(), 3u);
  for (const auto& [group, payload] : expected) {
    const messages::GroupPayload& there = actual.at(group);
    ASSERT_EQ(there.trajectories.size(), payload.trajectories.size());
    for (std::size_t i = 0; i < payload.trajectories.size(); ++i) {
      const messages::Trajectory &a = there.trajectories[i], &b = payload.trajectories[i];
      EXPECT_EQ(a.tokens, b.tokens);
      EXPECT_EQ(a.text, b.text);
      ASSERT_EQ(a.logprobs.size(), b.logprobs.size());
      for (std::size_t t = 0; t < a.logprobs.size(); ++t)
        EXPECT_NEAR(a.logprobs[t], b.logprobs[t], 1e-5f) << "some ten roundings of 3";
    }
  }
}

TEST_P(EngineOnAGpu, Ne1IsIndependentOfTheBatch) {  // NE-1, NE-4
  EngineConfig narrow = small_config();
  narrow.args.max_num_seqs = 3;
  narrow.args.max_num_batched_tokens = 5;  // prompts in chunks
  const Payloads wide = generate(small_config()), chunked = generate(narrow);
  for (const auto& [group, payload] : wide) expect_same(chunked.at(group), payload, "NE-1");
}

TEST_P(EngineOnAGpu, Ne2LogprobsEqualTheLearnersBitForBit) {  // NE-2, DE-2
  for (const auto& [group, payload] : generate(small_config()))
    for (const messages::Trajectory& trajectory : payload.trajectories)
      EXPECT_EQ(trajectory.logprobs,
                learner_logprobs(gpu(), model_, PolicyVersion{0}, payload, trajectory, 1.0f));
}

TEST_P(EngineOnAGpu, EveryFamilyHasTheLearnersBits) {  // NE-2, DE-2
  EngineConfig config = small_config();
  config.args.cudagraph_capture_sizes = {2, 8};
  for (const model::Family family : {model::Family::kQwen2, model::Family::kLlama}) {
    const TinyModel model(1, GetParam(), 128, family);
    const auto engine = model.engine(config, gpu());
    submit_three_groups(*engine);
    const Payloads payloads = run_to_end(*engine);
    EXPECT_EQ(payloads.size(), 3u);
    for (const auto& [group, payload] : payloads)
      for (const messages::Trajectory& trajectory : payload.trajectories)
        EXPECT_EQ(trajectory.logprobs,
                  learner_logprobs(gpu(), model, PolicyVersion{0}, payload, trajectory, 1.0f))
            << architecture(family);
  }
}

// Products that may depend on their rows: near the others, and not the same.
TEST_P(EngineOnAGpu, FastestProductsDifferByRoundings) {
  EngineConfig config = small_config();
  config.products = kernels::Rows::kFastest;
  config.args.cudagraph_capture_sizes = {8};
  const float allowed = GetParam() == device::DType::kF32 ? 1e-4f : 0.2f;
  float furthest = 0;
  for (const auto& [group, payload] : generate(config))
    for (const messages::Trajectory& trajectory : payload.trajectories) {
      const auto learners =
          learner_logprobs(gpu(), model_, PolicyVersion{0}, payload, trajectory, 1.0f);
      ASSERT_EQ(trajectory.logprobs.size(), learners.size());
      for (std::size_t i = 0; i < learners.size(); ++i)
        furthest = std::max(furthest, std::abs(trajectory.logprobs[i] - learners[i]));
    }
  EXPECT_LT(furthest, allowed);
  if (!device::emulated()) return;  // a real library may find the same algorithms fastest
  EXPECT_GT(furthest, 0.0f) << "the configuration does not reach the products";
}

// A prompt longer than a split, whose keys the decode steps of a group read once for all of it (in
// bf16), and a second group beside it; with graphs and without.
TEST_P(EngineOnAGpu, SharedPrefixesChangeNoBit) {
  if (GetParam() == device::DType::kF32) GTEST_SKIP() << "attention in f32 is not told of them";
  const TinyModel model(1, GetParam(), 512);
  EngineConfig config = small_config();
  config.max_prompt_length = 300;
  config.args.max_num_batched_tokens = 320;
  config.max_response_length = 3;
  std::string prompt = "12";
  while (prompt.size() < 270) prompt += "+" + std::to_string(prompt.size() % 10);
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{}, {8}}) {
    config.args.cudagraph_capture_sizes = sizes;
    const auto engine = model.engine(config, gpu());
    engine->submit(group_work(1, prompt, 3));
    engine->submit(group_work(2, "7+8=", 2));
    for (const auto& [group, payload] : run_to_end(*engine))
      for (const messages::Trajectory& trajectory : payload.trajectories)
        EXPECT_EQ(trajectory.logprobs,
                  learner_logprobs(gpu(), model, PolicyVersion{0}, payload, trajectory, 1.0f));
  }
}

// Compares steps that are padded, recorded and replayed with steps of which each waits for the one
// before. The batch grows when more groups come, and shrinks as sequences end.
TEST_P(EngineOnAGpu, GraphsAndStepsUnderWayChangeNoBit) {
  EngineConfig recording = small_config(), one_by_one = small_config();
  recording.args.cudagraph_capture_sizes = {1, 2, 5, 8};
  one_by_one.args.async_scheduling = false;
  const Payloads expected = generate(one_by_one);
  const auto replaying = engine(recording);
  replaying->submit(group_work(2, "7+8=", 2));
  for (int step = 0; step < 3; ++step) replaying->step();  // its prompt, and a token or two
  replaying->submit(group_work(1, "12+34=", 3));
  replaying->submit(group_work(3, "90+1=", 3));
  const Payloads actual = run_to_end(*replaying);
  EXPECT_GT(replaying->graphs_recorded(), 1);
  ASSERT_EQ(actual.size(), 3u);
  for (const auto& [group, payload] : expected) expect_same(actual.at(group), payload, "graphs");
}

// Events while a step is under way: new weights, whose keys are computed anew, too few pages, a
// cancelled group, a prompt of many steps, and the end. The results are those of a CPU, where no
// step is ever under way.
TEST_P(EngineOnAGpu, StepsUnderWayAreInNobodysWay) {
  if (!device::emulated()) GTEST_SKIP() << "another library's products";
  if (GetParam() != device::DType::kF32)
    GTEST_SKIP() << "in bf16 its attention is not the CPU's (AT-1)";
  EngineConfig config = small_config();
  config.args.max_num_batched_tokens = 3;
  config.kv_on_update = KvOnUpdate::kRecompute;
  config.args.cudagraph_capture_sizes = {1, 2, 3};
  const auto run = [&](NativeEngine& engine) {
    submit_three_groups(engine);
    const auto step = [&](int times) {
      while (times-- > 0) engine.step();
    };
    step(6);
    model_.update(engine, PolicyVersion{1});
    step(4);
    engine.cancel(std::vector{GroupId{2}});
    Payloads payloads = run_to_end(engine);
    EXPECT_EQ(engine.pages_free(), engine.pages_total()) << "NE-3";
    submit_three_groups(engine);
    step(5);
    return payloads;
  };
  const auto on_cpu = model_.engine(config);
  const Payloads expected = run(*on_cpu), actual = run(*engine(config));
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [group, payload] : expected)
    for (std::size_t i = 0; i < payload.trajectories.size(); ++i)
      EXPECT_EQ(actual.at(group).trajectories[i].tokens, payload.trajectories[i].tokens);
}

// Graphs that were recorded with one version compute with the next: 50 swaps, some with work after
// them, and then the answers of an engine that has seen the last version alone.
TEST_P(EngineOnAGpu, AnUpdatedOneIsAFreshOne) {
  EngineConfig config = small_config();
  config.args.cudagraph_capture_sizes = {2, 8};
  constexpr int kSwaps = 50;
  const auto install = [&](NativeEngine& engine, int swap) {
    engine.begin_update(PolicyVersion{swap});
    model_.fill_sink(engine, PolicyVersion{swap % kVersions});
    ASSERT_TRUE(engine.may_finish_update());
    engine.finish_update(engine.weight_sink().value());
  };
  const auto swapped = engine(config);
  for (int swap = 1; swap <= kSwaps; ++swap) {
    install(*swapped, swap);
    if (swap % 10 != 1) continue;
    swapped->submit(group_work(100 + static_cast<std::uint64_t>(swap), "5+6=", 2));
    EXPECT_EQ(run_to_end(*swapped).size(), 1u);
  }
  EXPECT_GT(swapped->graphs_recorded(), 0);
  const auto fresh = model_.try_engine(small_config(), gpu()).value();
  install(*fresh, kSwaps);
  for (NativeEngine* each : {swapped.get(), fresh.get()}) submit_three_groups(*each);
  const Payloads expected = run_to_end(*fresh), actual = run_to_end(*swapped);
  ASSERT_EQ(actual.size(), 3u);
  for (const auto& [group, payload] : expected) expect_same(actual.at(group), payload, "swapped");
}

}  // namespace
}  // namespace tandem::rollout
