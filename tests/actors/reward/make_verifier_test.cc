#include "actors/reward/make_verifier.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"

namespace tandem::reward {
namespace {

using nlohmann::json;

struct OneJudge {
  using Inbox = std::variant<ScoreItem>;
  std::unique_ptr<Verifier> verifier;
  std::vector<messages::TrajectoryScore>* scores;
  void handle(actor::Context& cx, ScoreItem item) {
    verifier->score(cx, std::move(item), [this](actor::Context&, messages::TrajectoryScore score) {
      scores->push_back(std::move(score));
    });
  }
};

// The score of one completion; none for a failure.
std::optional<messages::Scored> judged(const VerifierConfig& config, json answer,
                                       std::string completion) {
  actor::SimulatedExecutor executor(1);
  actor::System system(executor, nullptr);
  std::vector<messages::TrajectoryScore> scores;
  const auto ref = system.spawn<OneJudge>("judge", [&] {
    auto verifier = make_verifier(config, nullptr);
    CHECK(verifier.has_value());
    return std::make_unique<OneJudge>(OneJudge{*std::move(verifier), &scores});
  });
  EXPECT_EQ(ref.tell(ScoreItem{.completion = std::move(completion), .answer = std::move(answer)}),
            actor::Delivery::kAccepted);
  while (executor.step()) {
  }
  EXPECT_EQ(scores.size(), 1u);
  const auto* scored = std::get_if<messages::Scored>(&scores.at(0));
  return scored ? std::optional(*scored) : std::nullopt;
}

std::optional<double> judge(const VerifierConfig& config, json answer, std::string completion) {
  const auto scored = judged(config, std::move(answer), std::move(completion));
  return scored ? std::optional(scored->value) : std::nullopt;
}

TEST(Verifier, ExactComparesTrimmedText) {
  const VerifierConfig exact{.type = VerifierType::kExact};
  EXPECT_EQ(judge(exact, "037", "037"), 1.0);
  EXPECT_EQ(judge(exact, " 037\n", "\t037 "), 1.0);
  EXPECT_EQ(judge(exact, "037", "37"), 0.0);
  EXPECT_EQ(judge(exact, 37, "37"), 1.0);
  EXPECT_EQ(judge(exact, 1.5, "1.5"), 1.0);
  EXPECT_EQ(judge(exact, "", ""), 1.0);
}

TEST(Verifier, ARecordWithoutAnAnswerIsAFailureAndNotAZero) {  // RW-2
  for (const auto type : {VerifierType::kExact, VerifierType::kMath}) {
    EXPECT_EQ(judge({.type = type}, nullptr, "1"), std::nullopt);
    EXPECT_EQ(judge({.type = type}, json::array({1}), "1"), std::nullopt);
  }
}

TEST(Verifier, RegexComparesItsGroupOrMatches) {
  const VerifierConfig group{.type = VerifierType::kRegex, .pattern = R"(;(\d{4})$)"};
  EXPECT_EQ(judge(group, "1021", "7+4+0=11;1021"), 1.0);
  EXPECT_EQ(judge(group, "1021", "7+4+0=11;1022"), 0.0);
  EXPECT_EQ(judge(group, "1021", "1021"), 0.0);
  EXPECT_EQ(judge(group, nullptr, "x;1021"), std::nullopt);
  EXPECT_EQ(judge(group, nullptr, "1021"), 0.0) << "no match needs no answer";
  const VerifierConfig plain{.type = VerifierType::kRegex, .pattern = "^ok$"};
  EXPECT_EQ(judge(plain, nullptr, "ok"), 1.0);
  EXPECT_EQ(judge(plain, nullptr, "not ok"), 0.0);
  const VerifierConfig optional_group{.type = VerifierType::kRegex, .pattern = "a(b)?"};
  EXPECT_EQ(judge(optional_group, "b", "a"), 0.0);
  EXPECT_EQ(judge(plain, nullptr, "\xff\xfe"), 0.0) << "not UTF-8";
}

TEST(Verifier, ARunawayPatternIsAFailure) {
  const VerifierConfig runaway{.type = VerifierType::kRegex, .pattern = "^(a+)+$"};
  EXPECT_EQ(judge(runaway, "a", std::string(40, 'a') + "!"), std::nullopt);
}

TEST(Verifier, WhatCannotWorkIsRefused) {
  EXPECT_FALSE(make_verifier({.type = VerifierType::kRegex, .pattern = "("}, nullptr));
  EXPECT_FALSE(make_verifier({.type = VerifierType::kCommand}, nullptr));
}

TEST(Verifier, ACompletionVotesForTheAnswerInIt) {
  const auto vote = [](const VerifierConfig& config, const std::string& completion) {
    return judged(config, "12", completion)->vote;
  };
  const VerifierConfig exact{.type = VerifierType::kExact}, math{.type = VerifierType::kMath};
  const VerifierConfig regex{.type = VerifierType::kRegex, .pattern = "= *(\\d+)"};
  const VerifierConfig match{.type = VerifierType::kRegex, .pattern = "ok"};
  EXPECT_EQ(vote(exact, " 12 "), messages::vote_of("12"));
  EXPECT_EQ(vote(regex, "6+6 =  12"), messages::vote_of("12"));
  EXPECT_EQ(vote(regex, "nothing"), std::nullopt);
  EXPECT_EQ(vote(match, "ok"), std::nullopt) << "without a group nothing is found";
  EXPECT_TRUE(vote(math, "it is \\boxed{1,200}"));
  EXPECT_EQ(vote(math, "it is \\boxed{1,200}"), vote(math, "#### 1200.0"));
  EXPECT_NE(vote(math, "#### 1200"), vote(math, "#### 120"));
  EXPECT_EQ(vote(math, "I do not know"), std::nullopt);
}

TEST(Verifier, EqualAnswersAreOneVoteHoweverTheyAreWritten) {
  const VerifierConfig math{.type = VerifierType::kMath};
  const auto vote = [&](const std::string& answer, const std::string& completion) {
    return judged(math, answer, completion)->vote;
  };
  const std::string wrong = "7";  // than all of these
  const std::vector<std::string> groups[] = {
      {"\\boxed{\\frac{1}{2}}", "\\boxed{0.5}", "#### 2/4", "\\boxed{\\frac{\\sqrt4}{4}}"},
      {"\\boxed{\\sqrt{12}}", "\\boxed{2\\sqrt3}"},
      {"\\boxed{(1,2)}", "\\boxed{( 1, 2 )}"},
      {"\\boxed{(2,1)}"},
      {"\\boxed{\\{1,2\\}}", "\\boxed{2, 1}"},
      {"\\boxed{\\text{even}}", "\\boxed{Even}"},
      {"\\boxed{\\int x}", "\\boxed{\\int  x}"},  // not read
  };
  std::set<std::uint64_t> votes;
  for (const std::vector<std::string>& group : groups) {
    for (const std::string& completion : group) {
      ASSERT_TRUE(vote(wrong, completion)) << completion;
      EXPECT_EQ(vote(wrong, completion), vote(wrong, group[0])) << completion;
    }
    votes.insert(*vote(wrong, group[0]));
  }
  EXPECT_EQ(votes.size(), std::size(groups)) << "MV-2";
  // MV-1: each equals the reference, though 50 and 0.5 do not equal each other.
  EXPECT_EQ(vote("50\\%", "\\boxed{50}"), vote("50\\%", "\\boxed{0.5}"));
  EXPECT_NE(vote("7", "\\boxed{50}"), vote("7", "\\boxed{0.5}"));
  // Without a mark a formula votes whether it is right or wrong, and an essay does not.
  EXPECT_TRUE(vote("x^2+1", "x^2+1"));
  EXPECT_TRUE(vote("x^2+1", "x^2+2"));
  EXPECT_NE(vote("x^2+1", "x^2+1"), vote("x^2+1", "x^2+2"));
  EXPECT_EQ(vote("x^2+1", "I do not know; perhaps a parabola"), std::nullopt);
}

TEST(Verifier, AnAnswerIsNeededWhereItIsComparedWith) {
  EXPECT_TRUE(needs_answer(VerifierType::kExact, ""));
  EXPECT_TRUE(needs_answer(VerifierType::kMath, ""));
  EXPECT_TRUE(needs_answer(VerifierType::kRegex, "= (.*)"));
  EXPECT_FALSE(needs_answer(VerifierType::kRegex, "^<think>"));
  EXPECT_FALSE(needs_answer(VerifierType::kCommand, ""));
}

}  // namespace
}  // namespace tandem::reward
