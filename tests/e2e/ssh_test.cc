// `tandem up --hosts` with a real sshd on a host of its own: agents start there, outlive a lost
// connection, and end with the command, however that ends.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/e2e/cluster_driver.h"
#include "tests/e2e/network.h"
#include "tests/e2e/ssh_host.h"

namespace tandem::e2e {
namespace {

const Words kSpreadByName = sets({"pools.rollout.strategy=spread", "rollout.replicas=2"});

class Ssh : public ::testing::Test {
 protected:
  void SetUp() override {
    network_ = Network::make(home_);
    if (!network_) GTEST_SKIP() << "no network namespaces here";
    home_.start_by(network_->on_first());
  }
  void TearDown() override {
    if (!host_) return;
    EXPECT_TRUE(eventually([&] { return host_->processes().empty(); })) << host_->processes();
    EXPECT_TRUE(eventually([&] { return home_.processes().empty(); })) << "processes are left";
  }
  // Whether there is a host that ssh reaches.
  bool has_host(SshHost::Files files) {
    host_ = SshHost::make(home_, *network_, files);
    return host_ != nullptr;
  }
  Process up(const std::string& hosts, const Words& options = {}) const {
    return home_.start(Words{"up", "--port", "0", "--hosts", hosts, "--ssh", host_->ssh()} +
                       options);
  }
  std::string said_of_host(const std::string& text) const {
    return "host " + host_->name() + ": " + text;
  }
  // What comes behind the text in the command's output, up to the end of the line.
  static std::string behind(const Process& process, const std::string& text) {
    const std::string all = process.err();
    const auto at = all.rfind(text);
    if (at == std::string::npos) return "";
    return all.substr(at + text.size(), all.find('\n', at) - at - text.size());
  }

  Home home_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<SshHost> host_;
};

constexpr const char* kNoHost = "no sshd here, or no right to start one";

TEST_F(Ssh, AJobRunsOnAHostAndOneThatCannotBeReachedIsNamed) {
  if (!has_host(SshHost::Files::kShared)) GTEST_SKIP() << kNoHost;
  Process command = up(host_->name() + "," + host_->name() + ":1");
  ASSERT_TRUE(command.said(said_of_host("its node is ready"))) << command.err();
  EXPECT_TRUE(command.said("host " + host_->name() + "-1: ssh: connect to host " + host_->name() +
                           " port 1: Connection refused; attempt 2 in 1 s"))
      << command.err();
  const Finished done = home_.run(Words{"submit"} + small_job(5) + kSpreadByName + Words{"--wait"});
  EXPECT_EQ(done.code, 0) << done.text();
  EXPECT_NE(
      home_.run({"events", "-j", kSmallId}).out.find("node " + host_->name() + " is starting"),
      std::string::npos);
  const Finished second = up(host_->name()).wait();
  EXPECT_NE(second.text().find("is in use by process"), std::string::npos) << second.text();
  command.signal(SIGINT);
  EXPECT_EQ(command.wait().code, 0);
}

TEST_F(Ssh, AnAgentOutlivesALostConnection_HO3) {
  if (!has_host(SshHost::Files::kShared)) GTEST_SKIP() << kNoHost;
  Process command = up(host_->name());
  ASSERT_TRUE(command.said(said_of_host("its node is ready"))) << command.err();
  const std::string before = behind(command, "its agent runs, pid ");
  home_.start_program({"pkill", "-KILL", "-x", "ssh", "-P", std::to_string(command.pid())}).wait();
  ASSERT_TRUE(command.said(said_of_host("its agent still runs, pid "))) << command.err();
  EXPECT_EQ(behind(command, "its agent still runs, pid "), before);
  command.signal(SIGTERM);
  EXPECT_EQ(command.wait().code, 0);
}

TEST_F(Ssh, WhereTheCommandIsKilledAgentsEndAndTheClusterStays_HO3) {
  if (!has_host(SshHost::Files::kShared)) GTEST_SKIP() << kNoHost;
  {
    Process command = up(host_->name());
    ASSERT_TRUE(command.said(said_of_host("its node is ready"))) << command.err();
    command.signal(SIGKILL);
    EXPECT_EQ(command.wait().code, 128 + SIGKILL);
  }
  EXPECT_TRUE(eventually([&] { return host_->processes().empty(); })) << host_->processes();
  EXPECT_EQ(home_.run({"get", "nodes"}).code, 0) << "the cluster of this host goes on";
  home_.down();
}

TEST_F(Ssh, AHostWithoutTheProgramGetsItUnlessThatIsRefused) {
  if (!has_host(SshHost::Files::kOwn)) GTEST_SKIP() << kNoHost;
  const Finished refused = up(host_->name(), {"--no-copy"}).wait();
  EXPECT_EQ(refused.code, 69) << refused.text();
  EXPECT_NE(refused.err.find(said_of_host("it has no tandem, and this is tandem ")),
            std::string::npos)
      << refused.text();
  Process command = up(host_->name());
  EXPECT_TRUE(command.said(said_of_host("it has no tandem; copying tandem "))) << command.err();
  ASSERT_TRUE(command.said(said_of_host("its node is ready"))) << command.err();
  EXPECT_EQ(home_.run({"down"}).code, 0);
  EXPECT_EQ(command.wait().code, 0) << "it ends with the cluster";
}

}  // namespace
}  // namespace tandem::e2e
