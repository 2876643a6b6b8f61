// `tandem node` as the processes of mpirun or torchrun on two hosts, whose environment is what
// these set.
#include <gtest/gtest.h>

#include "tests/e2e/cluster_driver.h"
#include "tests/e2e/network.h"

namespace tandem::e2e {
namespace {

class Ranks : public ::testing::Test {
 protected:
  void SetUp() override {
    network_ = Network::make(home_);
    if (!network_) GTEST_SKIP() << "no network namespaces here";
  }
  // Both hosts share the state folder.
  Process start(const Words& host, const Words& variables, const Words& words) {
    home_.start_by(host + Words{"env"} + variables);
    return home_.start(Words{"node"} + words);
  }

  Home home_;
  std::unique_ptr<Network> network_;
};

TEST_F(Ranks, RankZeroRunsTheJobAndTheOthersJoinIt) {
  const Words job = Words{"--job"} + small_job(3) + Words{"--port", "7430"};
  const std::string master = "MASTER_ADDR=" + network_->first_address();
  // The second host's agent comes first, before there are keys.
  Process far = start(network_->on_second(),
                      {"RANK=2", "WORLD_SIZE=4", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2",
                       "GROUP_WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=none", master},
                      job + Words{"--name", "far"});
  ASSERT_TRUE(far.said("waiting for the keys of rank 0's controller")) << far.err();
  Process further = start(network_->on_second(),
                          {"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4",
                           "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=2", master},
                          job);
  const Finished idle = further.wait();
  EXPECT_EQ(idle.code, 0) << idle.text();
  EXPECT_NE(idle.err.find("rank 3 has nothing to do"), std::string::npos) << idle.text();
  Process near =
      start(network_->on_first(),
            {"PMI_RANK=0", "PMI_SIZE=4", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=2", master},
            job + Words{"--name", "near"});
  const Finished done = near.wait();
  EXPECT_EQ(done.code, 0) << done.text();
  EXPECT_EQ(far.wait().code, 0) << far.err();
  EXPECT_EQ(home_.result_of(kSmallId)["state"], "Succeeded");
  home_.expect_nothing_left();
}

TEST_F(Ranks, WhatTheEnvironmentLacksIsNamed) {
  const auto expect_said = [&](const Words& variables, const Words& words,
                               const std::string& part) {
    const Finished refused = start({}, variables, words).wait();
    EXPECT_EQ(refused.code, 64) << refused.text();
    EXPECT_NE(refused.text().find(part), std::string::npos) << refused.text();
  };
  expect_said({"RANK=1"}, {}, "RANK is set, and WORLD_SIZE is not");
  expect_said({"PMI_RANK=1", "PMI_SIZE=2"}, {}, "MASTER_ADDR is not set");
  expect_said({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1"}, {"--job", "job.yaml"},
              "no other host reaches this one there");
  expect_said({"PMIX_RANK=0", "MASTER_ADDR=10.0.0.1"}, {"--job", "job.yaml"}, "--min-nodes");
  expect_said({"RANK=1", "WORLD_SIZE=2"}, {"--job", "job.yaml", "--controller", "10.0.0.1:7420"},
              "--job makes a controller of rank 0");
  expect_said({"A=b"}, {"--job", "job.yaml"}, "--job is for the processes of mpirun or torchrun");
  expect_said({"A=b"}, {"--set", "a=b"},
              "--set, --min-nodes and --allow-plaintext-gang are for --job");
}

}  // namespace
}  // namespace tandem::e2e
