#include "actors/reward/make_verifier.h"

#include <gtest/gtest.h>

#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"

namespace tandem::actors {
namespace {

using nlohmann::json;

struct Judge {
  using Inbox = std::variant<ScoreItem>;
  std::unique_ptr<Verifier> verifier;
  std::vector<TrajectoryScore>* scores;
  void handle(runtime::Context& cx, ScoreItem item) {
    verifier->score(cx, std::move(item), [this](runtime::Context&, TrajectoryScore score) {
      scores->push_back(std::move(score));
    });
  }
};

// The score of one completion; none for a failure.
std::optional<double> judge(const VerifierConfig& config, json answer, std::string completion) {
  runtime::SimulatedExecutor executor(1);
  runtime::System system(executor, nullptr);
  std::vector<TrajectoryScore> scores;
  const auto ref = system.spawn<Judge>("judge", [&] {
    auto verifier = make_verifier(config, nullptr);
    CHECK(verifier.has_value());
    return std::make_unique<Judge>(Judge{*std::move(verifier), &scores});
  });
  EXPECT_EQ(ref.tell(ScoreItem{.completion = std::move(completion), .answer = std::move(answer)}),
            runtime::Delivery::kAccepted);
  while (executor.step()) {
  }
  EXPECT_EQ(scores.size(), 1u);
  const auto* scored = std::get_if<Scored>(&scores.at(0));
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

}  // namespace
}  // namespace tandem::actors
