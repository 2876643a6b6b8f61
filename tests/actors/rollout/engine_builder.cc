#include "tests/actors/rollout/engine_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "actors/model/decoder.h"
#include "actors/model/weights.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::rollout {
namespace {

bool same(const messages::VersionSpan& a, const messages::VersionSpan& b) {
  return a.version == b.version && a.begin == b.begin && a.end == b.end;
}

}  // namespace

TinyModel::TinyModel(int versions, device::DType dtype, std::int64_t positions,
                     model::Family family) {
  for (int v = 0; v < versions; ++v) {
    model::Model model = model::testing::arithmetic_model(static_cast<std::uint64_t>(v) + 1);
    if (family != model::Family::kQwen3) {  // the same shape with other parameters
      model.config.family = family;
      model.weights =
          model::testing::random_weights(model.config, static_cast<std::uint64_t>(v) + 1);
    }
    CHECK(compute_in(dtype, model.config).has_value());
    model.config.max_position_embeddings = positions;
    config_ = model.config;
    weights_.push_back(model::testing::published(config_, model.weights));
    tokenizer_ = std::make_shared<const model::Tokenizer>(std::move(model.tokenizer));
  }
}

Result<std::unique_ptr<NativeEngine>> TinyModel::try_engine(const EngineConfig& config,
                                                            device::Stream stream,
                                                            std::function<Time()> clock) const {
  return NativeEngine::make({this->config(), tokenizer_}, config, stream, std::move(clock));
}

std::unique_ptr<NativeEngine> TinyModel::engine(const EngineConfig& config, device::Stream stream,
                                                std::function<Time()> clock) const {
  Result<std::unique_ptr<NativeEngine>> made = try_engine(config, stream, std::move(clock));
  CHECK(made.has_value());
  update(**made, PolicyVersion{0});
  return *std::move(made);
}

void TinyModel::fill_sink(NativeEngine& engine, PolicyVersion version) const {
  const auto from = weights(version).bytes();
  const std::span<std::byte> sink = engine.weight_sink().value();
  std::memcpy(sink.data(), from.data(), from.size());
}

void TinyModel::update(NativeEngine& engine, PolicyVersion version) const {
  engine.begin_update(version);
  ASSERT_TRUE(engine.may_finish_update());
  if (engine.installs_in_place()) {
    engine.finish_update(weights(version).bytes());
    return;
  }
  fill_sink(engine, version);
  engine.finish_update(engine.weight_sink().value());
}

EngineConfig tiny_engine_config() {
  return {.args = {.max_num_seqs = 32, .max_num_batched_tokens = 256, .async_scheduling = false},
          .max_prompt_length = 48,
          .max_response_length = 40};
}

messages::GroupWork group_work(std::uint64_t group, std::string prompt, std::int32_t n) {
  return {.group = GroupId{group},
          .due = StepId{0},
          .seed = 1000 + group,
          .n = n,
          .prompt = std::move(prompt)};
}

void gather(Engine& engine, Payloads& payloads) {
  for (EngineEvent& event : engine.poll())
    if (auto* payload = std::get_if<messages::GroupPayload>(&event)) {
      const bool fresh = payloads.emplace(payload->group, std::move(*payload)).second;
      EXPECT_TRUE(fresh) << "EN-2";
    }
}

Payloads run_to_end(Engine& engine) {
  Payloads payloads;
  while (engine.can_step()) {
    engine.step();
    gather(engine, payloads);
  }
  gather(engine, payloads);
  return payloads;
}

std::vector<float> learner_logprobs(const device::Stream& stream, const TinyModel& model,
                                    PolicyVersion version, const messages::GroupPayload& payload,
                                    const messages::Trajectory& trajectory, float temperature) {
  std::vector<std::int32_t> tokens = payload.prompt_tokens;
  tokens.insert(tokens.end(), trajectory.tokens.begin(), trajectory.tokens.end());
  const auto T = static_cast<std::int32_t>(tokens.size());
  const auto P = static_cast<std::int32_t>(payload.prompt_tokens.size());
  std::vector<model::LogprobItem> items;
  for (std::int32_t row = P - 1; row < T - 1; ++row)
    items.push_back({row, tokens[static_cast<std::size_t>(row) + 1]});
  const model::TrainLimits limits{
      .rows_max = T, .items_max = std::ssize(items), .positions_max = T};
  auto decoder = model::TrainDecoder::make(model.config(), limits, stream.device);
  auto weights =
      model::Weights::allocate(model.config(), model::WeightsUse::kTraining, stream.device);
  CHECK(decoder && weights);
  weights->install(stream, model.weights(version).bytes());
  const kernels::Segment segment{.begin = 0, .len = T};
  std::vector<float> logprobs(items.size()), entropy(items.size());
  decoder->forward(stream, *weights,
                   {.tokens = tokens,
                    .segments = std::span(&segment, 1),
                    .items = items,
                    .temperature = temperature},
                   logprobs, entropy);
  return logprobs;
}

void expect_same(const messages::GroupPayload& a, const messages::GroupPayload& b,
                 const std::string& what) {
  EXPECT_EQ(a.prompt_tokens, b.prompt_tokens) << what;
  ASSERT_EQ(a.trajectories.size(), b.trajectories.size()) << what;
  for (std::size_t i = 0; i < a.trajectories.size(); ++i) {
    const messages::Trajectory &x = a.trajectories[i], &y = b.trajectories[i];
    EXPECT_EQ(x.tokens, y.tokens) << what << ", trajectory " << i;
    EXPECT_EQ(x.logprobs, y.logprobs) << what << ", trajectory " << i;  // to the bit
    EXPECT_TRUE(std::ranges::equal(x.versions, y.versions, same)) << what << ", trajectory " << i;
    EXPECT_EQ(x.oldest, y.oldest) << what << ", trajectory " << i;
    EXPECT_EQ(x.text, y.text) << what << ", trajectory " << i;
    EXPECT_EQ(x.truncated, y.truncated) << what << ", trajectory " << i;
  }
}

}  // namespace tandem::rollout
