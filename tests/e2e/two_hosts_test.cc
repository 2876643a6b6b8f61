// A cluster of two hosts with a network between them, over which links, payloads and weights go by
// TCP with keys: it learns as on one host, a short cut heals, and a long one is told.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "runtime/base/file.h"
#include "runtime/link/endpoint.h"
#include "tests/e2e/cluster_driver.h"
#include "tests/e2e/network.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::chrono::seconds kShortCut{3};  // that links must outlive

// The learner fits on the first host alone, and then a rollout on the second one alone.
const Words kPlaces{"pools.learner.cpus_per_actor=0.9", "pools.rollout.cpus_per_actor=0.5"};
const Words kLagging{"async.schedule=fixed_lag", "data.val_files=[]"};

class TwoHosts : public testing::Test {
 protected:
  void SetUp() override {
    network_ = Network::make(first_, family_);
    if (!network_) GTEST_SKIP() << "no network namespaces here";
    first_.start_by(network_->on_first());
    second_.start_by(network_->on_second());
    start_controller();
    const json file = parse_json(*read_file(first_.path() / "controller.json"));
    control_ = file["control"];
    ASSERT_EQ(link::parse_endpoint(control_).value().host, network_->first_address());
    near_.emplace(first_.start(Words{"node", "--name", "near", "--cpus", "1"} + ports_));
    // The files of the first host's state that another host needs.
    fs::copy(first_.path() / "keys", second_.path() / "keys");
    far_.emplace(start_far());
    ASSERT_TRUE(node_is("near", "Ready"));
    ASSERT_TRUE(node_is("far", "Ready"));
  }
  void TearDown() override {
    if (!network_) return;
    if (far_) far_->signal(SIGTERM);
    if (near_) near_->signal(SIGTERM);
    if (controller_) {
      controller_->signal(SIGTERM);
      EXPECT_EQ(controller_->wait().code, 0);
    }
    for (const Home* home : {&first_, &second_})
      EXPECT_TRUE(eventually([&] { return home->processes().empty(); })) << "processes are left";
  }

  void start_controller() {
    controller_.emplace(first_.start(
        Words{"controller", "--port", "0", "--bind", network_->first_address(), "--node-grace-s"} +
        Words{std::to_string(node_grace_s_)} + ports_ + rules_));
    ASSERT_TRUE(first_.next_controller(epoch_));
    epoch_ = first_.address()["epoch"];
  }
  Process start_far() const {
    return second_.start(Words{"node", "--name", "far", "--cpus", "0.6", "--controller", control_} +
                         ports_);
  }
  bool node_is(const std::string& name, const std::string& state) const {
    return eventually([&] { return node(name).value("state", "") == state; });
  }
  json node(const std::string& name) const {
    for (const json& node : first_.json({"get", "nodes"}))
      if (node["name"] == name) return node;
    return json::object();
  }
  json job() const { return first_.json({"get", "jobs", kSmallId}); }
  bool job_is_at(int step) const {
    return eventually([&] { return job()["step"] >= step; });
  }
  json rollout() const { return actor(first_, std::string(kSmallId) + "/rollout/0"); }

  const Words tcp_ = kPlaces + Words{"weight_broadcast.type=tcp"};
  Home first_, second_;
  std::unique_ptr<Network> network_;
  std::string control_;
  std::int64_t epoch_ = 0;  // of the controller
  std::optional<Process> controller_, near_, far_;
  int node_grace_s_ = 300;
  Words ports_;  // of all processes
  Words rules_;  // further options of the controller
  Family family_ = Family::kIpv4;
};

TEST_F(TwoHosts, WeightsThatTravelByTcpAreThoseOfSharedMemory) {
  const Home alone;
  const json expected =
      alone.train(kSmallId, small_job(30, kPlaces + kLagging + Words{"weight_broadcast.type=shm"}));
  const Finished done =
      first_.run(Words{"submit"} + small_job(30, tcp_ + kLagging) + Words{"--wait"});
  ASSERT_EQ(done.code, 0) << done.text();
  EXPECT_EQ(rollout()["node"], "far");
  const json result = first_.result_of(kSmallId);
  EXPECT_EQ(result["weights_sha256"], expected["weights_sha256"]);
  EXPECT_EQ(result["logprob_diff"]["max_at_staleness_0"], 0);
  expect_ledger_balances(first_.run_dir(kSmallId), result);
}

// A rank fits on either host, and none has room for both.
TEST_F(TwoHosts, RanksOfOneLearnerMeetAcrossTheNetwork) {
  const Words ranks = kLagging + Words{"learner.ranks=2", "pools.learner.cpus_per_actor=0.55",
                                       "pools.rollout.cpus_per_actor=0.3"};
  const Home alone;
  const json expected = alone.train(kSmallId, small_job(10, ranks));
  const Finished done = first_.run(Words{"submit"} + small_job(10, ranks) + Words{"--wait"});
  ASSERT_EQ(done.code, 0) << done.text();
  for (const Process* node : {&*near_, &*far_})
    EXPECT_TRUE(node->said("event=rank_exited actor=" + std::string(kSmallId) + "/learner/0"));
  EXPECT_EQ(first_.result_of(kSmallId)["weights_sha256"], expected["weights_sha256"]);
}

TEST_F(TwoHosts, ACutHealsAndALongOneIsTold) {
  ASSERT_EQ(first_.run(Words{"submit"} + small_job(1'000'000, tcp_)).code, 0);
  ASSERT_TRUE(job_is_at(10));
  const json before = rollout();
  ASSERT_EQ(before["node"], "far");
  ASSERT_TRUE(network_->cut_for(kShortCut));
  const int healed_at = job()["step"];
  EXPECT_TRUE(job_is_at(healed_at + 20));
  EXPECT_EQ(rollout()["incarnation"], before["incarnation"]);
  ASSERT_TRUE(node_is("far", "Ready"));

  ASSERT_TRUE(network_->cut());
  ASSERT_TRUE(node_is("far", "Lost"));
  const Finished why = first_.run({"why", kSmallId});
  EXPECT_NE(why.out.find(std::string(kSmallId) + "/rollout/0"), std::string::npos) << why.text();
  EXPECT_NE(why.out.find("node far cannot be reached; its processes may work on, and are waited "
                         "for at most 3"),
            std::string::npos)
      << why.text();
  EXPECT_EQ(job()["state"], "Running");
  ASSERT_TRUE(network_->heal());
  ASSERT_TRUE(node_is("far", "Ready"));
  const int lost_at = job()["step"];
  EXPECT_TRUE(job_is_at(lost_at + 20));
  EXPECT_EQ(rollout()["incarnation"], before["incarnation"]) << "it goes on where it was";
  EXPECT_EQ(rollout()["pid"], before["pid"]);
  EXPECT_EQ(first_.run({"cancel", kSmallId}).code, 0);
}

// The agent of a host without a controller is watched by its own parent.
TEST_F(TwoHosts, AnAgentOfAnotherHostThatHangsIsReplacedAndItsRanksWorkOn) {
  ASSERT_EQ(first_.run(Words{"submit"} + small_job(1'000'000, tcp_)).code, 0);
  ASSERT_TRUE(job_is_at(10));
  const json before = rollout();
  ASSERT_EQ(before["node"], "far");
  const pid_t hung = node("far")["pid"].get<pid_t>();
  ASSERT_EQ(kill(hung, SIGSTOP), 0);
  ASSERT_TRUE(far_->said("event=node_hung pid=" + std::to_string(hung)));
  EXPECT_TRUE(eventually([&] {
    const json now = node("far");
    return now["state"] == "Ready" && now["pid"] != hung;
  }));
  EXPECT_EQ(rollout()["pid"], before["pid"]);
  EXPECT_TRUE(job_is_at(job()["step"].get<int>() + 20));
  EXPECT_EQ(first_.run({"cancel", kSmallId}).code, 0);
}

// Links, payloads, weights and the ranks of the learner go by addresses of IPv6.
class HostsOfIpv6 : public TwoHosts {
 protected:
  HostsOfIpv6() { family_ = Family::kIpv6; }
};

TEST_F(HostsOfIpv6, LearnAsOneHost) {
  const Words job = kLagging + Words{"learner.ranks=2", "pools.learner.cpus_per_actor=0.55",
                                     "pools.rollout.cpus_per_actor=0.3"};
  const Home alone;
  const json expected = alone.train(kSmallId, small_job(10, job));
  const Words by_tcp = job + Words{"weight_broadcast.type=tcp"};
  const Finished done = first_.run(Words{"submit"} + small_job(10, by_tcp) + Words{"--wait"});
  ASSERT_EQ(done.code, 0) << done.text();
  for (const Process* node : {&*near_, &*far_})
    EXPECT_TRUE(node->said("event=rank_exited actor=" + std::string(kSmallId) + "/learner/0"));
  EXPECT_EQ(first_.result_of(kSmallId)["weights_sha256"], expected["weights_sha256"]);
}

// Nothing is encrypted between ranks where the network is trusted, and the learner says so.
class HostsThatTrustTheirNetwork : public TwoHosts {
 protected:
  HostsThatTrustTheirNetwork() { rules_ = {"--allow-plaintext-gang"}; }
};

TEST_F(HostsThatTrustTheirNetwork, RanksMeetUnencryptedAndAnEventSaysSo) {
  const Words ranks = kLagging + Words{"learner.ranks=2", "pools.learner.cpus_per_actor=0.55",
                                       "pools.rollout.cpus_per_actor=0.3"};
  const Finished done = first_.run(Words{"submit"} + small_job(5, ranks) + Words{"--wait"});
  ASSERT_EQ(done.code, 0) << done.text();
  const Finished events = first_.run({"events"});
  EXPECT_NE(events.out.find("its ranks on far, near exchange gradients unencrypted"),
            std::string::npos)
      << events.text();
}

// With a range of ports, a firewall may close all others between the hosts.
class HostsBehindFirewalls : public TwoHosts {
 protected:
  static constexpr int kFirst = 7420, kLast = 7449;
  HostsBehindFirewalls() { ports_ = {"--ports", "7420-7449"}; }

  struct Ports {
    std::set<int> open;  // at which other hosts reach a process
    // Of connections between hosts: the port of this end, and that of the other one.
    std::vector<std::pair<int, int>> connected;
  };
  Ports ports_of(const Home& home, const Words& on_host) const {
    const Finished table = home.start_program(on_host + Words{"cat", "/proc/net/tcp"}).wait();
    EXPECT_EQ(table.code, 0) << table.text();
    std::istringstream lines(table.out);
    Ports ports;
    std::string line, number, local, remote, state;
    const auto port = [](const std::string& end) {
      return std::stoi(end.substr(end.find(':') + 1), nullptr, 16);
    };
    for (std::getline(lines, line); std::getline(lines, line);) {
      std::istringstream(line) >> number >> local >> remote >> state;
      if (local.starts_with("0100007F:")) continue;                    // of loopback
      if (state == "0A") ports.open.insert(port(local));               // TCP_LISTEN
      if (state == "01" && local.substr(0, 8) != remote.substr(0, 8))  // TCP_ESTABLISHED
        ports.connected.emplace_back(port(local), port(remote));
    }
    return ports;
  }
  static bool in_range(int port) { return port >= kFirst && port <= kLast; }
};

TEST_F(HostsBehindFirewalls, PN_1_PayloadsWeightsAndRanksOfALearnerUseThePortsOfTheRangeAlone) {
  const Words job =
      kLagging + Words{"learner.ranks=2", "pools.learner.cpus_per_actor=0.55",
                       "pools.rollout.cpus_per_actor=0.3", "weight_broadcast.type=tcp"};
  ASSERT_EQ(first_.run(Words{"submit"} + small_job(kForever, job)).code, 0);
  ASSERT_TRUE(job_is_at(5));
  const Ports near = ports_of(first_, network_->on_first());
  const Ports far = ports_of(second_, network_->on_second());
  EXPECT_GE(near.open.size() + far.open.size(), 3u) << "links, payloads and weights";
  // The port at which the learner's ranks met has been closed; the connection that they made is
  // there, beside those of links and weights.
  EXPECT_GE(near.connected.size(), 4u);
  for (const Ports& ports : {near, far}) {
    for (const int port : ports.open) EXPECT_TRUE(in_range(port)) << port;
    for (const auto& [local, remote] : ports.connected)
      EXPECT_TRUE(in_range(local) || in_range(remote)) << local << " and " << remote;
  }
  EXPECT_EQ(first_.run({"cancel", kSmallId}).code, 0);
}

// The grace is over on the host that is cut off before it is over on the controller's.
class ImpatientHosts : public TwoHosts {
 protected:
  ImpatientHosts() { node_grace_s_ = 10; }
};

TEST_F(ImpatientHosts, AHostThatIsCutOffForItsGraceEndsItsRanksAndComesBackWithoutThem) {
  ASSERT_EQ(first_.run(Words{"submit"} + small_job(1'000'000, tcp_)).code, 0);
  ASSERT_TRUE(job_is_at(10));
  const json before = rollout();
  ASSERT_EQ(before["node"], "far");
  ASSERT_TRUE(network_->cut());
  const pid_t rank = before["pid"].get<pid_t>();
  EXPECT_TRUE(eventually([&] { return !std::ranges::count(second_.processes(), rank); }))
      << "it ends its ranks by itself";
  EXPECT_NE(job()["state"], "Failed");
  ASSERT_TRUE(network_->heal());
  ASSERT_TRUE(node_is("far", "Ready"));
  const int lost_at = job()["step"];
  EXPECT_TRUE(job_is_at(lost_at + 20));
  EXPECT_GT(rollout()["incarnation"], before["incarnation"]);
  EXPECT_EQ(first_.run({"cancel", kSmallId}).code, 0);
}

// Both nodes find the next controller, which waits for them, and the job goes on where it was.
TEST_F(TwoHosts, NodesComeBackToTheNextController) {
  ASSERT_EQ(
      first_.run(Words{"submit"} + small_job(1'000'000, tcp_ + Words{"learner.save_freq=5"})).code,
      0);
  ASSERT_TRUE(job_is_at(10));
  ASSERT_EQ(rollout()["node"], "far");
  controller_->signal(SIGKILL);
  controller_->wait();
  start_controller();
  ASSERT_TRUE(eventually([&] { return rollout()["state"] == "Ready"; }));
  EXPECT_TRUE(job_is_at(15));
  EXPECT_EQ(rollout()["node"], "far");
  EXPECT_EQ(first_.run({"cancel", kSmallId}).code, 0);
}

}  // namespace
}  // namespace tandem::e2e
