#include "scheduler/fleet/node_deaths.h"

#include <gtest/gtest.h>

namespace tandem::scheduler {
namespace {

using namespace std::chrono_literals;

class TwoNodes : public testing::Test {
 protected:
  void die(const std::string& node, const std::string& actor, Duration at,
           const std::vector<std::string>& gpus = {}) {
    deaths.died({.place = {node, gpus},
                 .actor = "job-1/" + actor,
                 .kind = "job-1/" + actor.substr(0, actor.find('/')),
                 .cause = "killed by SIGSEGV (11)",
                 .at = Time{} + at});
  }
  std::optional<std::string> fault(const std::string& node,
                                   const std::vector<std::string>& gpus = {}) const {
    return deaths.fault_of({node, gpus}, [this](const std::string& kind) {
      return kind == "job-1/rollout" && rollouts_work_elsewhere;
    });
  }
  NodeDeaths deaths;
  bool rollouts_work_elsewhere = true;
};

TEST_F(TwoNodes, ThreeDeathsOfTwoActorsThatWorkElsewhereAreTheNodesFault_ND1) {
  die("b", "rollout/1", 1s);
  die("b", "rollout/1", 2s);
  EXPECT_FALSE(fault("b")) << "two";
  die("b", "rollout/1", 3s);
  EXPECT_FALSE(fault("b")) << "one actor alone may be the cause";
  die("b", "rollout/2", 4s);
  ASSERT_TRUE(fault("b"));
  EXPECT_EQ(*fault("b"),
            "2 actors died here 4 times within 10 minutes while others like them work elsewhere; "
            "the last: job-1/rollout/2, killed by SIGSEGV (11)");
  EXPECT_FALSE(fault("a"));
  deaths.forget({"b"});
  EXPECT_FALSE(fault("b"));
}

TEST_F(TwoNodes, ThreeDeathsOfOneActorAreItsGpusFault_ND1) {
  const std::vector<std::string> third{"GPU-3"}, fourth{"GPU-4"};
  for (const auto at : {1s, 2s}) die("b", "rollout/1", at, third);
  EXPECT_FALSE(fault("b", third)) << "two";
  die("b", "rollout/1", 3s, third);
  ASSERT_TRUE(fault("b", third));
  EXPECT_EQ(*fault("b", third),
            "1 actor died here 3 times within 10 minutes while others like it work elsewhere; the "
            "last: job-1/rollout/1, killed by SIGSEGV (11)");
  EXPECT_FALSE(fault("b", fourth));
  EXPECT_FALSE(fault("b")) << "of the node as a whole nothing is known";
  die("b", "rollout/1", 4s, fourth);
  EXPECT_FALSE(fault("b", third)) << "it dies wherever it is";
  die("b", "rollout/2", 5s, fourth);
  EXPECT_TRUE(fault("b")) << "two actors, on two of its GPUs, and nowhere else";
  deaths.found_at_fault({"b", third});
  EXPECT_FALSE(fault("b")) << "those of a GPU that is cordoned no longer count";
}

TEST_F(TwoNodes, AGpuIsClearedByAnActorThatDiesElsewhere_ND3) {
  const DeathPlace third{"b", {"GPU-3"}}, fourth{"b", {"GPU-4"}};
  for (const auto at : {1s, 2s, 3s}) die("b", "rollout/1", at, third.gpus);
  deaths.found_at_fault(third);
  EXPECT_TRUE(deaths.cleared_by("job-1/rollout/1", third).empty()) << "it is the same place";
  EXPECT_TRUE(deaths.cleared_by("job-1/rollout/2", fourth).empty()) << "it has not died there";
  EXPECT_EQ(deaths.cleared_by("job-1/rollout/1", fourth), std::vector{third});
  die("b", "rollout/2", 4s, third.gpus);
  EXPECT_TRUE(deaths.cleared_by("job-1/rollout/1", fourth).empty()) << "another one died there too";
  deaths.forget({"b"});
  EXPECT_TRUE(deaths.cleared_by("job-1/rollout/1", fourth).empty());
}

// What is known of others' deaths there lasts as long as the GPU is cordoned.
TEST_F(TwoNodes, AGpuOnWhichAnotherActorDiedStaysAtFault_ND3) {
  const DeathPlace third{"b", {"GPU-3"}}, fourth{"b", {"GPU-4"}};
  die("b", "rollout/2", 0s, third.gpus);
  for (const auto at : {599s, 600s}) die("b", "rollout/1", at, third.gpus);
  deaths.found_at_fault(third);
  die("b", "rollout/1", 700s, fourth.gpus);
  EXPECT_TRUE(deaths.cleared_by("job-1/rollout/1", fourth).empty());
}

// A process that did not start never came to its GPUs.
TEST_F(TwoNodes, WhatDidNotStartSaysNothingOfGpus_ND2) {
  for (const auto at : {1s, 2s, 3s}) die("b", "rollout/1", at, {"GPU-3"});
  die("b", "rollout/2", 4s);
  EXPECT_TRUE(fault("b", {"GPU-3"}));
  die("a", "rollout/2", 5s, {"GPU-3"});
  EXPECT_FALSE(fault("b", {"GPU-3"}));
}

// A rank with two GPUs does not die elsewhere than where it dies.
TEST_F(TwoNodes, TheGpusOfOneRankAreOnePlace_ND2) {
  const std::vector<std::string> both{"GPU-0", "GPU-1"};
  for (const auto at : {1s, 2s, 3s}) die("b", "rollout/1", at, both);
  EXPECT_FALSE(fault("b", both)) << "one actor is not enough for several GPUs";
  die("b", "rollout/2", 4s, both);
  EXPECT_TRUE(fault("b", both));
}

TEST_F(TwoNodes, DeathsThatAreFarApartDoNotCount_ND1) {
  die("b", "rollout/1", 0s);
  die("b", "rollout/2", 6min);
  die("b", "rollout/1", 12min);
  EXPECT_FALSE(fault("b"));
}

TEST_F(TwoNodes, AJobThatDiesEverywhereIsItsOwnFault_ND2) {
  for (const auto at : {1s, 2s, 3s}) {
    die("b", "rollout/1", at);
    die("b", "rollout/2", at);
  }
  EXPECT_TRUE(fault("b"));
  die("a", "rollout/0", 4s);
  EXPECT_FALSE(fault("b"));
  EXPECT_FALSE(fault("a"));
}

TEST_F(TwoNodes, WithoutAPeerElsewhereNothingIsKnown_ND2) {
  rollouts_work_elsewhere = false;
  for (const auto at : {1s, 2s, 3s}) {
    die("b", "rollout/1", at);
    die("b", "rollout/2", at);
    die("b", "reward/0", at);
  }
  EXPECT_FALSE(fault("b"));
}

}  // namespace
}  // namespace tandem::scheduler
