#include "scheduler/fleet/suspects.h"

#include <gtest/gtest.h>

namespace tandem::scheduler {
namespace {

constexpr GroupId kDeadly{7}, kOther{8};

EngineCrash in_company(const std::string& actor = "job/rollout/0") {
  return {.actor = actor, .held = {kDeadly, kOther}, .alone = false, .worked = true};
}

EngineCrash alone(GroupId group, bool worked, const std::string& actor = "job/rollout/0") {
  return {.actor = actor, .held = {group}, .alone = true, .worked = worked};
}

TEST(Suspects, AnEngineThatHoldsOneGroupConvictsItByTheSecondCrash_PQ1_PQ2) {
  Suspects suspects;
  suspects.crashed(alone(kDeadly, true));
  EXPECT_TRUE(suspects.is_isolated(kDeadly));
  EXPECT_FALSE(suspects.is_guilty(kDeadly)) << "once is an accident";
  suspects.crashed(alone(kDeadly, false));
  EXPECT_TRUE(suspects.is_guilty(kDeadly));
}

TEST(Suspects, GroupsThatDieTogetherAreTriedAloneAfterTwoCrashes_PQ1) {
  Suspects suspects;
  suspects.crashed(in_company());
  EXPECT_FALSE(suspects.is_isolated(kDeadly)) << "one crash costs nothing but its work";
  suspects.crashed(in_company());
  EXPECT_TRUE(suspects.is_isolated(kDeadly));
  EXPECT_TRUE(suspects.is_isolated(kOther));
  EXPECT_FALSE(suspects.is_guilty(kDeadly)) << "the other may be it";
  suspects.generated(kOther, "job/rollout/0");
  suspects.crashed(alone(kDeadly, false));
  EXPECT_TRUE(suspects.is_guilty(kDeadly));
  EXPECT_FALSE(suspects.is_guilty(kOther));
}

TEST(Suspects, AGroupThatIsGeneratedIsSuspectedNoMore_PQ3) {
  Suspects suspects;
  suspects.crashed(alone(kDeadly, true));
  suspects.generated(kDeadly, "job/rollout/1");
  EXPECT_TRUE(suspects.all().empty());
  suspects.crashed(alone(kDeadly, true));
  EXPECT_FALSE(suspects.is_guilty(kDeadly)) << "a new suspicion begins with its first crash";
}

TEST(Suspects, AnActorWhoseEnginesAllCrashConvictsNobody_PQ2) {
  Suspects suspects;
  suspects.crashed(in_company());
  suspects.crashed(in_company());
  for (int again = 0; again < 3; ++again) {
    suspects.crashed(alone(kOther, false));
    suspects.crashed(alone(kDeadly, false));
  }
  suspects.generated(GroupId{9}, "job/rollout/1");  // of another machine
  EXPECT_FALSE(suspects.is_guilty(kDeadly));
  EXPECT_FALSE(suspects.is_guilty(kOther));
}

TEST(Suspects, CompanyInTheLastCrashIsNoProof_PQ2) {
  Suspects suspects;
  suspects.crashed(alone(kDeadly, true));
  suspects.crashed(in_company());
  suspects.crashed(in_company());
  EXPECT_FALSE(suspects.is_guilty(kDeadly));
}

TEST(Suspects, TheLeastSuspectedAreTriedFirst) {
  Suspects suspects;
  suspects.crashed(in_company());
  suspects.crashed(in_company());
  suspects.crashed(alone(kDeadly, false));
  EXPECT_EQ(suspects.isolated(), (std::vector{kOther, kDeadly}));
  suspects.forget(kOther);
  EXPECT_EQ(suspects.isolated(), std::vector{kDeadly});
}

}  // namespace
}  // namespace tandem::scheduler
