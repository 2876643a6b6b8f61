#include "actors/exchange/reward_troubles.h"

#include <gtest/gtest.h>

namespace tandem::exchange {
namespace {

using namespace std::chrono_literals;

messages::RewardTrouble trouble_of(messages::TroubleKind kind, std::int32_t attempt) {
  return {.from = {"j/reward/0", Incarnation{1}},
          .kind = kind,
          .what = "the program hung",
          .attempt = attempt,
          .attempts = 3,
          .stderr_tail = {"ValueError"},
          .log = "reward.log"};
}

TEST(RewardTroubles, AnEventSaysWhatIsNewAndAgainAfterAWhile) {
  RewardTroubles troubles;
  const Time start{};
  EXPECT_TRUE(troubles.take(trouble_of(messages::TroubleKind::kHung, 1), start));
  EXPECT_FALSE(troubles.take(trouble_of(messages::TroubleKind::kHung, 1), start + 3s));
  EXPECT_TRUE(troubles.take(trouble_of(messages::TroubleKind::kHung, 2), start + 6s))
      << "attempt 2 of 3";
  EXPECT_TRUE(troubles.take(trouble_of(messages::TroubleKind::kGarbage, 2), start + 9s));
  EXPECT_FALSE(troubles.take(trouble_of(messages::TroubleKind::kGarbage, 2), start + 30s));
  EXPECT_TRUE(
      troubles.take(trouble_of(messages::TroubleKind::kGarbage, 2), start + 9s + kTroubleRepeated));
}

TEST(RewardTroubles, AreShownUntilTheActorScoresAgainAndAWhileHasPassed) {
  RewardTroubles troubles;
  const Time start{};
  EXPECT_TRUE(troubles.shown(start).empty());
  (void)troubles.take(trouble_of(messages::TroubleKind::kHung, 1), start);
  ASSERT_EQ(troubles.shown(start + 1h).size(), 1u) << "nothing was scored since";
  troubles.judged("j/reward/0", messages::Scored{1});
  EXPECT_EQ(troubles.shown(start + kTroubleShown / 2).size(), 1u);
  EXPECT_TRUE(troubles.shown(start + kTroubleShown).empty());
  troubles.forget("j/reward/0");
  EXPECT_EQ(troubles.explained("r"), "r");
}

TEST(RewardTroubles, ARewardThatNeverScoredHasNeverWorkedAndOneThatScoredOnceHas) {
  RewardTroubles troubles, worked;
  worked.judged("j/reward/1", messages::Scored{0});
  for (std::int64_t i = 0; i < kFirstFailuresMax; ++i) {
    EXPECT_FALSE(troubles.never_worked()) << i;
    for (RewardTroubles* const one : {&troubles, &worked})
      one->judged("j/reward/0", messages::ScoreFailed{"score is NaN"});
  }
  EXPECT_TRUE(troubles.never_worked());
  EXPECT_FALSE(worked.never_worked());
  troubles.judged("j/reward/0", messages::Scored{0});
  EXPECT_FALSE(troubles.never_worked());
}

TEST(RewardTroubles, PeopleAreToldWhileEverythingFails) {
  RewardTroubles troubles;
  EXPECT_FALSE(troubles.all_fail());
  (void)troubles.take(trouble_of(messages::TroubleKind::kNotStarted, 0), Time{});
  EXPECT_FALSE(troubles.all_fail()) << "no completion is charged for this trouble";
  (void)troubles.take(trouble_of(messages::TroubleKind::kHung, 1), Time{});
  EXPECT_EQ(troubles.all_fail(),
            "no completion has been scored yet: j/reward/0: the program hung (attempt 1 of 3); its "
            "stderr ends: ValueError; log: reward.log");
  troubles.judged("j/reward/0", messages::Scored{1});
  EXPECT_FALSE(troubles.all_fail());
  for (std::int64_t i = 0; i < kFailuresTold; ++i) {
    EXPECT_FALSE(troubles.all_fail()) << i;
    troubles.judged("j/reward/0", messages::ScoreFailed{"score is NaN"});
  }
  EXPECT_TRUE(troubles.all_fail()->starts_with(
      "no completion is scored, the last 16 failed in a row; the last: score is NaN; j/reward/0: "))
      << *troubles.all_fail();
  troubles.judged("j/reward/0", messages::Scored{1});
  EXPECT_FALSE(troubles.all_fail());
}

TEST(RewardTroubles, TextOfAnActorIsBoundedAndMadeValid) {
  RewardTroubles troubles;
  messages::RewardTrouble trouble = trouble_of(messages::TroubleKind::kEnded, 0);
  trouble.what = std::string(100'000, 'x');
  trouble.stderr_tail.assign(100, "half of \xc3");
  const messages::RewardTrouble* const kept = troubles.take(trouble, Time{});
  ASSERT_NE(kept, nullptr);
  EXPECT_LT(kept->what.size(), 2000u);
  ASSERT_EQ(kept->stderr_tail.size(), 8u);
  EXPECT_EQ(kept->stderr_tail[0], "half of \uFFFD");
}

TEST(RewardTroubles, ExplainAReasonWithStderrAndTheLogsPath) {
  RewardTroubles troubles;
  (void)troubles.take(trouble_of(messages::TroubleKind::kHung, 3), Time{});
  const std::string whole =
      "j/reward/0: the program hung (attempt 3 of 3); its stderr ends: ValueError; log: reward.log";
  EXPECT_EQ(troubles.explained("the program hung; its stderr ends: ValueError"), whole);
  EXPECT_EQ(troubles.explained("other"), "other; " + whole);
}

}  // namespace
}  // namespace tandem::exchange
