#include "actors/rollout/external/served_versions.h"

#include <gtest/gtest.h>

#include <set>

namespace tandem::rollout {
namespace {

constexpr PolicyVersion kFirst{0}, kSecond{1};
const std::vector<float> kScoresOfFirst{-1, -2, -3}, kScoresOfSecond{-1.5f, -2.5f, -2};

TEST(ServedVersions, EachPushHasALabelOfItsOwn_SW1) {
  ServedVersions versions("us", 0.1);
  std::set<std::string> labels;
  for (int push = 0; push < 3; ++push) {
    EXPECT_TRUE(labels.insert(versions.begin(kFirst)).second);
    EXPECT_TRUE(labels.insert(versions.refuted()).second);
    versions.installed(kFirst);
  }
}

TEST(ServedVersions, ALabelIsKnownAsLongAsItsTokensMayCome_SW2) {
  ServedVersions versions("us", 0.1);
  const std::string refuted = versions.begin(kFirst);
  const std::string first = versions.refuted();
  EXPECT_FALSE(versions.labels().contains(refuted));
  EXPECT_EQ(versions.labels().at(first), kFirst);
  versions.installed(kFirst);
  const std::string second = versions.begin(kSecond);
  versions.installed(kFirst);  // a request of version 0 is open
  EXPECT_TRUE(versions.labels().contains(first));
  versions.begin(kSecond);
  versions.installed(kSecond);
  EXPECT_FALSE(versions.labels().contains(first));
  EXPECT_TRUE(versions.labels().contains(second));
}

// A learner that goes back to a checkpoint makes versions of the same numbers anew.
TEST(ServedVersions, WhatIsOfAnotherLineageIsForgotten_SW2) {
  ServedVersions versions("us", 0.1);
  versions.expect(kFirst, kScoresOfFirst);
  versions.expect(kSecond, kScoresOfSecond);
  const std::string second = versions.begin(kSecond);
  versions.installed(kFirst);
  versions.expect(kFirst, kScoresOfSecond);
  versions.begin(kFirst);
  EXPECT_TRUE(versions.prove(kScoresOfSecond));
  versions.installed(kFirst);
  EXPECT_FALSE(versions.labels().contains(second));
  versions.begin(kSecond);
  EXPECT_FALSE(versions.proven());
  for (int version = 2; version < 200; ++version)
    versions.expect(PolicyVersion{version}, kScoresOfFirst);
  versions.expect(kSecond, kScoresOfFirst);
  EXPECT_TRUE(versions.proven()) << "also where many were told before";
}

TEST(ServedVersions, AServerThatNeverWasRightIsAnotherFaultThanOneThatWas) {
  ServedVersions versions("us", 0.1);
  versions.begin(kFirst);
  EXPECT_FALSE(versions.proven());
  EXPECT_TRUE(versions.prove(kScoresOfFirst)) << "nobody knows better";
  versions.expect(kFirst, kScoresOfFirst);
  EXPECT_TRUE(versions.proven());
  ASSERT_FALSE(versions.prove(kScoresOfSecond));
  EXPECT_EQ(versions.prove(kScoresOfSecond).error().code, ErrorCode::kInvalid);
  ASSERT_TRUE(versions.prove(kScoresOfFirst));
  versions.installed(kFirst);
  versions.begin(kSecond);
  versions.expect(kSecond, kScoresOfSecond);
  ASSERT_FALSE(versions.prove(kScoresOfFirst));
  EXPECT_EQ(versions.prove(kScoresOfFirst).error().code, ErrorCode::kFailed);
  EXPECT_TRUE(versions.prove(kScoresOfSecond));
}

}  // namespace
}  // namespace tandem::rollout
