#include "actors/replay/step_dump.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/actors/runs/recorded_batches.h"

namespace tandem::replay {
namespace {

using nlohmann::json;

learner::WatchedCompletion seen(std::size_t trajectory, std::int64_t update, float logprob) {
  return {.trajectory = trajectory,
          .update = update,
          .logprobs = {logprob, -2},
          .entropies = {0.5f, 0.25f},
          .proximal = {-1, -2},
          .advantages = {1, 1},
          .weights = {0.125f, 0.125f},
          .losses = {-0.125f, NAN}};
}

json dumped(const std::vector<learner::WatchedCompletion>& tokens) {
  const auto batch = runs::recorded_batch(4, 2);
  const messages::StepReport report{
      .loss = 2.5, .grad_norm = INFINITY, .lr = 0.5, .advantages = {1, -1, 0.5f, 0}};
  const auto dump = step_json({batch, report, tokens, 9});
  EXPECT_TRUE(dump) << dump.error().message;
  return *dump;
}

TEST(StepDump, HasEachCompletionWithItsFigures) {
  const json dump = dumped({seen(3, 0, -3)});
  EXPECT_EQ(dump["step"], 5);
  EXPECT_EQ(dump["version_before"], 4);
  EXPECT_EQ(dump["loss"], 2.5);
  EXPECT_TRUE(dump["grad_norm"].is_null()) << "JSON has no number for infinity";
  EXPECT_EQ(dump["weights_checksum64"], 9);
  ASSERT_EQ(dump["groups"].size(), 2u);
  const json& group = dump["groups"][1];
  EXPECT_EQ(group["group"], 401);
  EXPECT_EQ(group["prompt"], "1+1=");
  EXPECT_EQ(group["prompt_tokens"], json({1, 2, 1, 3}));
  const json& one = group["completions"][1];
  EXPECT_EQ(one["tokens"], json({1, 4}));
  EXPECT_EQ(one["rollout_logprobs"], json({-0.5, -1.25}));
  EXPECT_EQ(one["versions"], json::parse(R"([{"version": 3, "begin": 0, "end": 2}])"));
  EXPECT_EQ(one["staleness"], 1);
  EXPECT_EQ(one["reward"], 1.0);
  EXPECT_EQ(one["advantage"], 0.0);
  EXPECT_EQ(one["truncated"], true);
  ASSERT_EQ(one["updates"].size(), 1u);
  EXPECT_EQ(one["updates"][0]["logprobs"], json({-3, -2}));
  EXPECT_EQ(one["updates"][0]["losses"], json::parse("[-0.125, null]"));
  EXPECT_FALSE(one["updates"][0].contains("importance"));
  EXPECT_TRUE(dump["groups"][0]["completions"][0]["updates"].empty());
}

// Ranks and mini-batches come in any order.
TEST(StepDump, UpdatesOfACompletionAreInTheirOrder) {
  const json dump = dumped({seen(0, 2, -5), seen(1, 0, -6), seen(0, 0, -7)});
  const json& updates = dump["groups"][0]["completions"][0]["updates"];
  ASSERT_EQ(updates.size(), 2u);
  EXPECT_EQ(updates[0]["logprobs"][0], -7.0);
  EXPECT_EQ(updates[1]["update"], 2);
  EXPECT_EQ(dump["groups"][0]["completions"][1]["updates"][0]["logprobs"][0], -6.0);
}

TEST(StepDump, APayloadThatCannotBeReadIsAnError) {
  auto batch = runs::recorded_batch(4, 2);
  batch.payloads[1] = "nothing";
  EXPECT_FALSE(step_json({batch, {}, {}, 0}));
}

}  // namespace
}  // namespace tandem::replay
