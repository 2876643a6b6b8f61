#include "actors/reward/reward_actor.h"

#include <gtest/gtest.h>

#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/wire/codec.h"

namespace tandem::actors {
namespace {

using namespace std::chrono_literals;
using runtime::Delivery;

struct Heard final : runtime::Target<RewardEvents> {
  Delivery post(RewardEvents event) override {
    events.push_back(std::move(event));
    return Delivery::kAccepted;
  }
  std::vector<RewardEvents> events;
};

struct Fixture {
  Fixture() {
    ref = system.spawn<RewardActor>("j/reward/0", [this] {
      auto verifier = make_verifier({.type = VerifierType::kExact}, nullptr);
      CHECK(verifier.has_value());
      return std::make_unique<RewardActor>(
          RewardConfig{.self = {"j/reward/0", Incarnation{2}}}, *std::move(verifier),
          RewardActor::Joints{
              .exchange = runtime::Ref<RewardEvents>({"exchange/j", Incarnation{1}}, heard),
              .read = [this](auto refs, auto done) { read(refs, done); }});
    });
    tell(StartReward{});
  }
  void tell(RewardActor::Inbox message) {
    EXPECT_EQ(ref.tell(std::move(message)), Delivery::kAccepted);
  }
  void read(std::vector<runtime::PayloadRef> refs, runtime::ReadDone done) {
    executor.at(executor.now() + 2ms, [this, refs, done] {
      if (failures_left > 0) {
        --failures_left;
        return done(Error{ErrorCode::kUnreachable, "no store"});
      }
      std::vector<std::string> bytes;
      for (const auto& payload : refs) bytes.push_back(payloads.at(payload.offset));
      done(std::move(bytes));
    });
  }
  GroupToScore store(std::uint64_t group, const std::vector<std::string>& texts, std::string data) {
    GroupPayload payload{.group = GroupId{group}, .attempt = 1, .prompt = "p"};
    for (const std::string& text : texts) payload.trajectories.push_back({.text = text});
    payloads.push_back(runtime::encode(payload));
    return {.group = GroupId{group},
            .attempt = 1,
            .data = std::move(data),
            .payload = {.offset = payloads.size() - 1}};
  }
  std::vector<GroupScore> scored(std::size_t groups) {
    std::vector<GroupScore> all;
    executor.run_until(
        [&] {
          all.clear();
          for (const RewardEvents& event : heard->events)
            if (const auto* some = std::get_if<GroupsScored>(&event))
              all.insert(all.end(), some->groups.begin(), some->groups.end());
          return all.size() >= groups;
        },
        60s);
    return all;
  }

  runtime::SimulatedExecutor executor{1};
  std::optional<Error> failure;
  runtime::System system{executor, [this](auto&, const Error& why) { failure = why; }};
  std::shared_ptr<Heard> heard = std::make_shared<Heard>();
  std::vector<std::string> payloads;
  int failures_left = 0;
  runtime::Ref<RewardActor::Inbox> ref;
};

TEST(RewardActor, ScoresEveryTrajectoryInItsPlace) {  // RW-1
  Fixture f;
  f.tell(ScoreGroups{{f.store(1, {"037", "038", " 037"}, R"({"prompt": "p", "answer": "037"})"),
                      f.store(2, {"5"}, R"({"answer": 5})")}});
  const auto scored = f.scored(2);
  ASSERT_EQ(scored.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<RewardUp>(f.heard->events.front()));
  EXPECT_EQ(f.heard->events.size(), 2u) << "the groups of a turn go together";
  EXPECT_EQ(scored[0].group, GroupId{1});
  EXPECT_EQ(scored[0].attempt, 1u);
  ASSERT_EQ(scored[0].scores.size(), 3u);
  EXPECT_EQ(std::get<Scored>(scored[0].scores[0]).value, 1.0);
  EXPECT_EQ(std::get<Scored>(scored[0].scores[1]).value, 0.0);
  EXPECT_EQ(std::get<Scored>(scored[0].scores[2]).value, 1.0);
}

TEST(RewardActor, FailuresAreFailuresAndNotZeroes) {  // RW-2
  Fixture f;
  GroupToScore damaged = f.store(3, {"1"}, "{}");
  f.payloads.back() = "\xc1garbage";
  f.tell(ScoreGroups{{f.store(1, {"1", "2"}, R"({"prompt": "no answer"})"),
                      f.store(2, {"1"}, "not JSON"), damaged}});
  const auto scored = f.scored(3);
  ASSERT_EQ(scored.size(), 3u);
  for (const GroupScore& group : scored)
    for (const TrajectoryScore& score : group.scores)
      EXPECT_TRUE(std::holds_alternative<ScoreFailed>(score));
}

TEST(RewardActor, ReadsAreRetriedAndThenFailTheActor) {
  Fixture f;
  f.failures_left = 3;
  f.tell(ScoreGroups{{f.store(1, {"1"}, R"({"answer": "1"})")}});
  EXPECT_EQ(f.scored(1).size(), 1u);
  f.failures_left = 1000;
  f.tell(ScoreGroups{{f.store(2, {"1"}, R"({"answer": "1"})")}});
  EXPECT_TRUE(f.executor.run_until([&] { return f.failure.has_value(); }, 60s));
}

TEST(RewardActor, ScoresTheTextsOfAnEvaluation) {
  Fixture f;
  ScoreTexts work{.evaluation = EvaluationId{4}};
  work.texts = {{.index = 7, .data = R"({"answer": "1"})", .text = "1"},
                {.index = 9, .data = R"({"answer": "1"})", .text = "2"},
                {.index = 8, .data = "", .text = "2"}};
  f.tell(work);
  f.tell(ScoreTexts{.evaluation = EvaluationId{5}});
  f.executor.run_until([&] { return f.heard->events.size() == 3; }, 1s);
  ASSERT_EQ(f.heard->events.size(), 3u);
  const auto& texts = std::get<TextsScored>(f.heard->events[1]);
  EXPECT_EQ(texts.evaluation, EvaluationId{4});
  ASSERT_EQ(texts.scores.size(), 3u);
  EXPECT_EQ(texts.scores[0].index, 7);
  EXPECT_EQ(std::get<Scored>(texts.scores[0].score).value, 1.0);
  EXPECT_EQ(std::get<Scored>(texts.scores[1].score).value, 0.0);
  EXPECT_TRUE(std::holds_alternative<ScoreFailed>(texts.scores[2].score));
  EXPECT_TRUE(std::get<TextsScored>(f.heard->events[2]).scores.empty());
}

}  // namespace
}  // namespace tandem::actors
