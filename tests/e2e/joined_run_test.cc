// A `tandem run` whose cluster a node of another host joins by its address, as pods do that share
// no state folder.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "runtime/node/resources.h"
#include "tests/e2e/cluster_driver.h"
#include "tests/e2e/network.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class JoinedRun : public testing::Test {
 protected:
  void SetUp() override {
    network_ = Network::make(first_);
    if (!network_) GTEST_SKIP() << "no network namespaces here";
    first_.start_by(network_->on_first());
    second_.start_by(network_->on_second());
    // Both hosts have the keys before anything starts, as pods have a Secret.
    Process makes_keys =
        first_.start({"controller", "--port", "0", "--bind", network_->first_address()});
    ASSERT_TRUE(eventually([&] { return fs::exists(first_.path() / "controller.json"); }))
        << makes_keys.err();
    fs::copy(first_.path() / "keys", second_.path() / "keys");
    makes_keys.signal(SIGTERM);
    EXPECT_EQ(makes_keys.wait().code, 0);
  }
  void TearDown() override {
    for (const Home* home : {&first_, &second_})
      EXPECT_TRUE(eventually([&] { return home->processes().empty(); })) << "processes are left";
  }
  Process start_run(const Words& words, const std::string& name = "cluster") const {
    return first_.start(Words{"run"} + words +
                        Words{"--cluster", (first_.path() / name).string(), "--bind",
                              network_->first_address(), "--port", "7420", "--health-port", "7430",
                              "--node-name", "near", "--link", (first_.path() / "link").string(),
                              "--resume-linked"});
  }
  Process start_far() const {
    return second_.start({"node", "--name", "far", "--cpus", std::to_string(cpus_), "--controller",
                          network_->first_address() + ":7420", "--join"});
  }
  json asked(const Words& words) const { return first_.json(words + Words{"--address", kHttp}); }
  bool actor_is(const std::string& name, const std::string& state, const json& node) const {
    return eventually([&] {
      for (const json& actor : asked({"get", "actors"}))
        if (actor["name"] == std::string(kSmallId) + "/" + name)
          return actor["state"] == state && actor["node"] == node;
      return false;
    });
  }
  // The status by which the first host answers the second one.
  std::string probed(const std::string& target) const {
    const Words probe{"python3", "-c", kProbe,
                      "http://" + network_->first_address() + ":7430" + target};
    const Finished answer = second_.start_program(network_->on_second() + probe).wait();
    return answer.out + answer.err;
  }

  static constexpr const char* kHttp = "127.0.0.1:7422";
  static constexpr const char* kProbe = R"py(import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=10).status, end="")
except urllib.error.HTTPError as error:
    print(error.code, end="")
)py";
  Home first_, second_;
  std::unique_ptr<Network> network_;
  const double cpus_ = node::read_machine_resources()->cpus;
};

TEST_F(JoinedRun, ANodeThatCameFirstWaitsForTheControllerAndEndsWithTheRun) {
  Process far = start_far();
  Process run = start_run(small_job(3) + Words{"--min-nodes", "2"});
  const Finished done = run.wait();
  EXPECT_EQ(done.code, 0) << done.text();
  EXPECT_EQ(far.wait().code, 0);
}

TEST_F(JoinedRun, ANodeThatComesLaterIsUsedAndOneThatIsToEndIsEmptiedFirst_AG4) {
  const auto part = [&](double share) { return std::to_string(share * cpus_); };
  Process run = start_run(small_job(1'000'000, {"rollout.replicas=2", "learner.save_freq=0",
                                                "pools.rollout.cpus_per_actor=" + part(0.6),
                                                "pools.learner.cpus_per_actor=" + part(0.2)}) +
                          Words{"--nodes", "2"});
  const fs::path metrics = first_.run_dir(kSmallId) / "metrics.jsonl";
  ASSERT_TRUE(eventually([&] { return lines_of(metrics).size() >= 5; })) << run.err();
  EXPECT_TRUE(actor_is("rollout/1", "Queued", nullptr));
  EXPECT_EQ(probed("/healthz"), "200");
  EXPECT_EQ(probed("/readyz"), "200");
  EXPECT_EQ(probed("/api/v1/status"), "404");
  {
    Process far = start_far();
    ASSERT_TRUE(actor_is("rollout/1", "Ready", "far")) << run.err();
    far.signal(SIGTERM);
    EXPECT_EQ(far.wait().code, 143) << "before the run ends";
  }
  EXPECT_FALSE(run.ended());
  Process far = start_far();
  ASSERT_TRUE(actor_is("rollout/1", "Ready", "far")) << "it may be used again";
  const std::size_t steps = lines_of(metrics).size();
  EXPECT_TRUE(eventually([&] { return lines_of(metrics).size() > steps; }));
  run.signal(SIGTERM);
  run.signal(SIGTERM);  // an engine repeats it
  const Finished done = run.wait();
  EXPECT_EQ(done.code, 130) << done.text();
  EXPECT_EQ(far.wait().code, 0);
  EXPECT_EQ(first_.result_of(kSmallId)["state"], "Cancelled");

  // It is started again, as a pod is.
  Process again = start_run(small_job(1'000'000), "cluster-2");
  EXPECT_TRUE(again.said("going on with " + first_.run_dir(kSmallId).string()));
  again.signal(SIGINT);
  EXPECT_EQ(again.wait().code, 130);
}

// An engine gives another host for one that has ended so, and none for one that has ended with 0.
TEST_F(JoinedRun, ANodeThatIsToldToEndBeforeItHasALinkSaysThatItsRunIsNotOver) {
  Process far = start_far();
  far.signal(SIGTERM);
  EXPECT_EQ(far.wait().code, 143);
  const Home stranger;  // without keys, for which no wait is of use
  const Finished refused = stranger.run({"node", "--controller", "127.0.0.1:1", "--join"});
  EXPECT_EQ(refused.code, 4) << refused.text();
}

TEST_F(JoinedRun, WhatDoesNotBelongTogetherIsRefused) {
  const auto expect_said = [&](const Words& words, const std::string& part) {
    const Finished refused = first_.run(words);
    EXPECT_EQ(refused.code, 64);
    EXPECT_NE(refused.text().find(part), std::string::npos) << refused.text();
  };
  expect_said({"node", "--join"}, "--join is for --controller");
  expect_said({"node", "--join", "--cluster", "x"}, "--cluster says where the controller is");
  expect_said(Words{"run"} + small_job(1) + Words{"--resume-linked"}, "--resume-linked is for");
  expect_said(Words{"run"} + small_job(1) + Words{"--port", "7420"}, "are for --cluster");
  std::error_code failure;
  fs::create_symlink("/no/run", first_.path() / "link", failure);
  const Finished none = start_run(small_job(1)).wait();
  EXPECT_NE(none.text().find("leads to no run that can be resumed"), std::string::npos)
      << none.text();
}

}  // namespace
}  // namespace tandem::e2e
