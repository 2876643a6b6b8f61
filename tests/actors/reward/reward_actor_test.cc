// The reward actor in the simulated executor, between an exchange and a store of payloads that the
// test plays: RW-1 to RW-3.
#include "actors/reward/reward_actor.h"

#include <gtest/gtest.h>

#include "actors/reward/make_verifier.h"
#include "actors/rollout/completion.h"
#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/wire/codec.h"

namespace tandem::reward {
namespace {

using namespace std::chrono_literals;
using actor::Delivery;

struct Heard final : actor::Target<messages::RewardEvents> {
  Delivery post(messages::RewardEvents event) override {
    if (std::visit([](const auto& m) { return wire::encode(m).size(); }, event) > room)
      return Delivery::kTooLarge;
    events.push_back(std::move(event));
    return Delivery::kAccepted;
  }
  std::uint64_t bytes_max() const override { return room; }
  Error too_large(const messages::RewardEvents&) const override {
    return {ErrorCode::kInvalid, "TextsScored is too large"};
  }
  std::vector<messages::RewardEvents> events;
  std::uint64_t room = actor::kBytesUnlimited;
};

// Every completion is a trouble, and then scored.
class Troubled final : public Verifier {
 public:
  void score(actor::Context& cx, ScoreItem item, Done done) override {
    told_(cx, {.kind = messages::TroubleKind::kEnded, .what = item.completion});
    done(cx, messages::Scored{1});
  }
  void report_to(Told told) override { told_ = std::move(told); }

 private:
  Told told_;
};

std::unique_ptr<Verifier> exact() {
  auto verifier = make_verifier({.type = VerifierType::kExact}, nullptr);
  CHECK(verifier.has_value());
  return *std::move(verifier);
}

struct Fixture {
  explicit Fixture(std::unique_ptr<Verifier> with = exact(), std::string answer_key = "answer")
      : verifier(std::move(with)) {
    ref = system.spawn<RewardActor>("j/reward/0", [this, answer_key] {
      return std::make_unique<RewardActor>(
          RewardConfig{
              .self = {"j/reward/0", Incarnation{2}}, .group_size = 2, .answer_key = answer_key},
          std::move(verifier),
          RewardActor::Connections{
              .exchange = actor::Ref<messages::RewardEvents>({"exchange/j", Incarnation{1}}, heard),
              .read = [this](auto refs, auto done) { read(refs, done); }});
    });
    tell(StartReward{});
  }
  void tell(RewardActor::Inbox message) {
    EXPECT_EQ(ref.tell(std::move(message)), Delivery::kAccepted);
  }
  void read(std::vector<wire::PayloadRef> refs, payload::ReadDone done) {
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
  messages::GroupToScore store(std::uint64_t group, const std::vector<std::string>& texts,
                               std::string data) {
    messages::GroupPayload payload{
        .group = GroupId{group}, .attempt = 1, .prompt = "p", .prompt_tokens = {1}};
    for (const std::string& text : texts)
      payload.trajectories.push_back({.tokens = {1}, .logprobs = {-1}, .text = text});
    payloads.push_back(wire::encode(payload));
    return {.group = GroupId{group},
            .attempt = 1,
            .data = std::move(data),
            .payload = {.offset = payloads.size() - 1}};
  }
  std::vector<messages::GroupScore> scored(std::size_t groups) {
    std::vector<messages::GroupScore> all;
    executor.run_until(
        [&] {
          all.clear();
          for (const messages::RewardEvents& event : heard->events)
            if (const auto* some = std::get_if<messages::GroupsScored>(&event))
              all.insert(all.end(), some->groups.begin(), some->groups.end());
          return all.size() >= groups;
        },
        60s);
    return all;
  }

  std::vector<messages::RewardTrouble> troubles() const {
    std::vector<messages::RewardTrouble> all;
    for (const messages::RewardEvents& event : heard->events)
      if (const auto* trouble = std::get_if<messages::RewardTrouble>(&event))
        all.push_back(*trouble);
    return all;
  }

  std::unique_ptr<Verifier> verifier;
  actor::SimulatedExecutor executor{1};
  std::optional<Error> failure;
  actor::System system{executor, [this](auto&, const Error& why) { failure = why; }};
  std::shared_ptr<Heard> heard = std::make_shared<Heard>();
  std::vector<std::string> payloads;
  int failures_left = 0;
  actor::Ref<RewardActor::Inbox> ref;
};

TEST(RewardActor, ScoresEveryTrajectoryInItsPlace) {  // RW-1
  Fixture f;
  f.tell(messages::ScoreGroups{
      {f.store(1, {"037", "038", " 037"}, R"({"prompt": "p", "answer": "037"})"),
       f.store(2, {"5"}, R"({"answer": 5})")}});
  const auto scored = f.scored(2);
  ASSERT_EQ(scored.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<messages::RewardUp>(f.heard->events.front()));
  EXPECT_EQ(f.heard->events.size(), 2u) << "the groups of a turn go together";
  EXPECT_EQ(scored[0].group, GroupId{1});
  EXPECT_EQ(scored[0].attempt, 1u);
  ASSERT_EQ(scored[0].scores.size(), 3u);
  EXPECT_EQ(std::get<messages::Scored>(scored[0].scores[0]).value, 1.0);
  EXPECT_EQ(std::get<messages::Scored>(scored[0].scores[1]).value, 0.0);
  EXPECT_EQ(std::get<messages::Scored>(scored[0].scores[2]).value, 1.0);
}

TEST(RewardActor, AnAnswerMayStandWithinAnObject) {
  Fixture f(exact(), "reward_model.ground_truth");
  f.tell(messages::ScoreGroups{
      {f.store(1, {"4", "5"}, R"({"reward_model": {"style": "rule", "ground_truth": "4"}})"),
       f.store(2, {"4"}, R"({"reward_model": null})")}});
  const auto scored = f.scored(2);
  ASSERT_EQ(scored.size(), 2u);
  EXPECT_EQ(std::get<messages::Scored>(scored[0].scores[0]).value, 1.0);
  EXPECT_EQ(std::get<messages::Scored>(scored[0].scores[1]).value, 0.0);
  EXPECT_TRUE(std::holds_alternative<messages::ScoreFailed>(scored[1].scores[0]));
}

TEST(RewardActor, ExactSeesSpecialTokens) {
  const Result<model::Tokenizer> words = model::Tokenizer::parse(R"({"added_tokens": [
      {"id": 0, "content": "<|pad|>", "special": true, "normalized": false, "single_word": false,
       "lstrip": false, "rstrip": false},
      {"id": 1, "content": "<eos>", "special": true, "normalized": false, "single_word": false,
       "lstrip": false, "rstrip": false}],
    "normalizer": null, "post_processor": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "merges": [],
              "vocab": {"<|pad|>": 0, "<eos>": 1, "0": 2, "3": 3, "7": 4, ";": 5}}})",
                                                                 "test");
  ASSERT_TRUE(words) << words.error().message;
  model::ModelConfig model;
  model.vocab_size = 6;
  model.eos_token_ids = {1};
  const auto rules =
      rollout::make_stop_rules({.sampling = {.stop = {";"}}, .max_response_length = 6}, model);
  ASSERT_TRUE(rules) << rules.error().message;
  struct Case {
    std::vector<std::int32_t> tokens;
    double score;
  };
  const std::vector<Case> cases = {{{2, 3, 4, 1}, 1},     // 037<eos>
                                   {{2, 0, 3, 4, 1}, 0},  // 0<|pad|>37<eos>
                                   {{0, 2, 3, 4, 1}, 0},    {{2, 3, 4, 0, 1}, 0},
                                   {{2, 3, 4, 0, 0, 0}, 0},  // by its length
                                   {{2, 3, 4, 5}, 1},        // 037;
                                   {{2, 3, 4, 0, 5}, 0}};
  messages::GroupPayload payload{
      .group = GroupId{1}, .attempt = 1, .prompt = "p", .prompt_tokens = {2}};
  messages::ScoreTexts texts{.evaluation = messages::EvaluationId{1}};
  for (const Case& c : cases) {
    rollout::Completion completion(*rules, *words);
    bool ended = false;
    for (const std::int32_t token : c.tokens) {
      ASSERT_FALSE(ended);
      ended = completion.push({.token = token, .logprob = -1}).has_value();
    }
    ASSERT_TRUE(ended);
    payload.trajectories.push_back(completion.take());
    const messages::Trajectory& made = payload.trajectories.back();
    EXPECT_EQ(made.text, "037") << "a program sees no special tokens";
    texts.texts.push_back({.index = static_cast<std::int32_t>(texts.texts.size()),
                           .data = R"({"answer": "037"})",
                           .text = made.text,
                           .special_text = made.special_text});
  }
  Fixture f;
  messages::GroupToScore group = f.store(1, {"037"}, R"({"answer": "037"})");
  f.payloads.back() = wire::encode(payload);
  f.tell(messages::ScoreGroups{{group}});
  f.tell(texts);
  const auto scored = f.scored(1);
  ASSERT_EQ(scored.size(), 1u);
  ASSERT_EQ(scored[0].scores.size(), cases.size());
  const messages::TextsScored* evaluated = nullptr;
  for (const messages::RewardEvents& event : f.heard->events)
    if (const auto* found = std::get_if<messages::TextsScored>(&event)) evaluated = found;
  ASSERT_NE(evaluated, nullptr);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(std::get<messages::Scored>(scored[0].scores[i]).value, cases[i].score)
        << "case " << i;
    EXPECT_EQ(std::get<messages::Scored>(evaluated->scores[i].score).value, cases[i].score)
        << "case " << i;
  }
}

TEST(RewardActor, ADamagedPayloadHasAFailureForEachTrajectory_RW1) {
  Fixture f;
  const messages::GroupToScore damaged = f.store(1, {"1", "2"}, R"({"answer": "1"})");
  f.payloads.back() = "\xc1garbage";
  messages::GroupToScore foreign = f.store(2, {"1", "2"}, R"({"answer": "1"})");
  foreign.group = GroupId{3};
  f.tell(messages::ScoreGroups{{damaged, foreign}});
  const auto scored = f.scored(2);
  ASSERT_EQ(scored.size(), 2u);
  for (const messages::GroupScore& group : scored) EXPECT_EQ(group.scores.size(), 2u);
}

TEST(RewardActor, FailuresAreFailuresAndNotZeroes) {  // RW-2
  Fixture f;
  messages::GroupToScore damaged = f.store(3, {"1"}, "{}");
  f.payloads.back() = "\xc1garbage";
  messages::GroupToScore foreign = f.store(4, {"1"}, R"({"answer": "1"})");
  foreign.group = GroupId{5};
  f.tell(messages::ScoreGroups{{f.store(1, {"1", "2"}, R"({"prompt": "no answer"})"),
                                f.store(2, {"1"}, "not JSON"), damaged, foreign}});
  const auto scored = f.scored(4);
  ASSERT_EQ(scored.size(), 4u);
  for (const messages::GroupScore& group : scored)
    for (const messages::TrajectoryScore& score : group.scores)
      EXPECT_TRUE(std::holds_alternative<messages::ScoreFailed>(score));
}

TEST(RewardActor, ReadsAreRetriedAndThenFailTheActor) {
  Fixture f;
  f.failures_left = 3;
  f.tell(messages::ScoreGroups{{f.store(1, {"1"}, R"({"answer": "1"})")}});
  EXPECT_EQ(f.scored(1).size(), 1u);
  // No answer may be a network that is cut, for a while.
  f.failures_left = std::numeric_limits<int>::max();
  f.tell(messages::ScoreGroups{{f.store(2, {"1"}, R"({"answer": "1"})")}});
  const auto failed = [&] { return f.failure.has_value(); };
  EXPECT_FALSE(f.executor.run_until(failed, payload::kUnansweredMax - 1min));
  EXPECT_TRUE(f.executor.run_until(failed, 2min));
}

TEST(RewardActor, AnExchangeThatFollowsHearsWhatIsHeldAndWhatWasNotKept) {
  Fixture f;
  const std::string data = R"({"answer": "1"})";
  f.tell(messages::ScoreGroups{{f.store(1, {"1"}, data), f.store(2, {"2"}, data)}});
  ASSERT_EQ(f.scored(2).size(), 2u);
  f.tell(messages::ScoresKept{{GroupId{1}}});
  f.tell(messages::ScoreGroups{{f.store(3, {"1"}, data)}});
  f.heard->events.clear();
  f.tell(MeetAgain{});
  const auto scored = f.scored(2);
  ASSERT_EQ(scored.size(), 2u);
  EXPECT_EQ(scored[0].group, GroupId{2});
  EXPECT_EQ(scored[1].group, GroupId{3});
  const auto& back = std::get<messages::RewardBack>(f.heard->events.front());
  ASSERT_EQ(back.held.size(), 2u);
  EXPECT_EQ(back.held[0].group, GroupId{2});
  EXPECT_EQ(back.held[1].group, GroupId{3});
}

TEST(RewardActor, TheFirstTroubleIsToldAtOnceThenTheNewestInAWhile) {  // RW-3
  Fixture f(std::make_unique<Troubled>());
  for (std::uint64_t group = 1; group <= 3; ++group)
    f.tell(messages::ScoreGroups{
        {f.store(group, {"a", "b " + std::to_string(group)}, R"({"answer": 1})")}});
  ASSERT_EQ(f.scored(3).size(), 3u);
  ASSERT_EQ(f.troubles().size(), 1u);
  EXPECT_EQ(f.troubles()[0].what, "a");
  EXPECT_EQ(f.troubles()[0].from.name, "j/reward/0");
  f.executor.run_until([] { return false; }, 20s);
  ASSERT_EQ(f.troubles().size(), 2u) << "there is nothing new after that";
  EXPECT_EQ(f.troubles()[1].what, "b 3");
  EXPECT_EQ(f.troubles()[1].count, 6);
}

TEST(RewardActor, WhatNoMessageHoldsGoesInSeveral) {
  Fixture f;
  f.heard->room = 200;
  messages::ScoreTexts work{.evaluation = messages::EvaluationId{4}};
  for (int i = 0; i < 20; ++i) work.texts.push_back({.index = i, .data = "not JSON", .text = "1"});
  f.tell(work);
  std::vector<std::int32_t> indices;
  f.executor.run_until([] { return false; }, 1s);
  for (const messages::RewardEvents& event : f.heard->events)
    if (const auto* part = std::get_if<messages::TextsScored>(&event))
      for (const messages::TextScore& text : part->scores) indices.push_back(text.index);
  EXPECT_GT(f.heard->events.size(), 3u);
  ASSERT_EQ(indices.size(), 20u) << "RW-1";
  for (std::int32_t i = 0; i < 20; ++i) EXPECT_EQ(indices[static_cast<std::size_t>(i)], i);
  EXPECT_FALSE(f.failure);
}

TEST(RewardActor, WhatNoMessageHoldsAndCannotBeDividedFailsTheActor) {
  Fixture f;
  f.heard->room = 40;
  f.tell(messages::ScoreTexts{.evaluation = messages::EvaluationId{4},
                              .texts = {{.data = "not JSON", .text = "1"}}});
  EXPECT_TRUE(f.executor.run_until([&] { return f.failure.has_value(); }, 1s));
  ASSERT_TRUE(f.failure);
  EXPECT_EQ(f.failure->code, ErrorCode::kInvalid) << "a restart would meet it again";
  EXPECT_EQ(f.failure->message, "TextsScored is too large, and it is for exchange/j");
}

TEST(RewardActor, ScoresTheTextsOfAnEvaluation) {
  Fixture f;
  messages::ScoreTexts work{.evaluation = messages::EvaluationId{4}};
  work.texts = {{.index = 7, .data = R"({"answer": "1"})", .text = "1"},
                {.index = 9, .data = R"({"answer": "1"})", .text = "2"},
                {.index = 8, .data = "", .text = "2"}};
  f.tell(work);
  f.tell(messages::ScoreTexts{.evaluation = messages::EvaluationId{5}});
  f.executor.run_until([&] { return f.heard->events.size() == 3; }, 1s);
  ASSERT_EQ(f.heard->events.size(), 3u);
  const auto& texts = std::get<messages::TextsScored>(f.heard->events[1]);
  EXPECT_EQ(texts.evaluation, messages::EvaluationId{4});
  ASSERT_EQ(texts.scores.size(), 3u);
  EXPECT_EQ(texts.scores[0].index, 7);
  EXPECT_EQ(std::get<messages::Scored>(texts.scores[0].score).value, 1.0);
  EXPECT_EQ(std::get<messages::Scored>(texts.scores[1].score).value, 0.0);
  EXPECT_TRUE(std::holds_alternative<messages::ScoreFailed>(texts.scores[2].score));
  EXPECT_TRUE(std::get<messages::TextsScored>(f.heard->events[2]).scores.empty());
}

}  // namespace
}  // namespace tandem::reward
