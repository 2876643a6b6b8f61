#include "actors/rollout/external/probe_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tandem::rollout {
namespace {

TEST(ProbeCheck, TellsTheVersionBeforeFromTheOneThatCounts) {
  using Scores = std::vector<float>;
  // The server's arithmetic is off by 0.05, as it was before.
  const Scores expected_before{-2, -3, -4}, expected{-2.02f, -3.02f, -3.98f};
  const Scores served_before{-2.05f, -2.95f, -4.05f}, right{-2.07f, -2.97f, -4.03f};
  const auto fault = [&](const Scores& served, double tolerance = 0.1) {
    return probe_fault({.now = {served, expected},
                        .before = {served_before, expected_before},
                        .tolerance = tolerance})
        .value_or("");
  };
  EXPECT_EQ(fault(right), "");
  EXPECT_EQ(fault({-2.069f, -2.971f, -4.031f}), "");
  EXPECT_NE(fault(served_before).find("the version before"), std::string::npos);
  EXPECT_NE(fault({-2.051f, -2.949f, -4.051f}).find("the version before"), std::string::npos);
  EXPECT_EQ(fault({-2.06f, -2.96f, -4.04f}), "") << "rounding may take half of a step";
  EXPECT_EQ(fault(served_before, 0.6), "") << "0.02 tells nothing where 0.6 is tolerated";
  EXPECT_NE(fault({-3, -4, -5}).find("off the learner's"), std::string::npos);
  EXPECT_NE(fault({NAN, -3.02f, -3.98f}).find("off the learner's"), std::string::npos);
  EXPECT_NE(fault({-2, -3}).find("scored 2 tokens of 3"), std::string::npos);
  EXPECT_EQ(probe_fault({.now = {served_before, expected}, .tolerance = 0.1}), std::nullopt)
      << "a server that has just started had no version before";
}

}  // namespace
}  // namespace tandem::rollout
