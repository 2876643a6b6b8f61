// Ranks that die again and again, and the words about them in commands and in logs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "runtime/base/file.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A memory cgroup below our own, which ends with the object. There is none where the test may not
// make one: only root may, and in version 2 only where the groups beside it hold no process.
class MemoryCgroup {
 public:
  static std::optional<MemoryCgroup> make(std::int64_t bytes_max) {
    std::ifstream lines("/proc/self/cgroup");
    for (std::string line; std::getline(lines, line);) {
      const std::size_t name = line.find(':') + 1, group = line.find(':', name) + 1;
      const std::string controller = line.substr(name, group - 1 - name);
      if (controller != "memory" && !controller.empty()) continue;
      const bool version_2 = controller.empty();
      const fs::path own = fs::path("/sys/fs/cgroup") / controller / line.substr(group + 1);
      const fs::path path = own / ("tandem-e2e-" + std::to_string(getpid()));
      std::error_code refused;
      if (!fs::create_directory(path, refused)) continue;
      MemoryCgroup made(path, version_2 ? "memory.max" : "memory.limit_in_bytes");
      if (made.limit(bytes_max)) return made;
    }
    return std::nullopt;
  }
  MemoryCgroup(MemoryCgroup&& other) noexcept
      : path_(std::exchange(other.path_, {})), limit_file_(other.limit_file_) {}
  MemoryCgroup& operator=(MemoryCgroup&&) = delete;
  ~MemoryCgroup() {
    if (path_.empty()) return;
    std::error_code refused;
    eventually([&] { return fs::remove(path_, refused); });  // once its processes are reaped
  }
  std::string members() const { return (path_ / "cgroup.procs").string(); }
  bool limit(std::int64_t bytes_max) const {
    return static_cast<bool>(std::ofstream(path_ / limit_file_) << bytes_max << std::flush);
  }

 private:
  MemoryCgroup(fs::path path, const char* limit_file)
      : path_(std::move(path)), limit_file_(limit_file) {}
  fs::path path_;
  const char* limit_file_;
};

// A program that starts in the cgroup: "tandem WORDS…".
Words started_in(const MemoryCgroup& cgroup, const Words& words) {
  std::string command = "echo $$ > " + cgroup.members() + " && exec " TANDEM_BINARY;
  for (const std::string& word : words) command += " '" + word + "'";
  return {"sh", "-c", command};
}

// The arithmetic model with 40 million parameters: 160 MB, of which a learner holds four copies and
// more, and a rollout two.
std::string large_model(const Home& home) {
  const fs::path from = fs::path(TANDEM_SOURCE_DIR) / "configs/models/arithmetic";
  const fs::path model = home.path() / "model";
  fs::create_directories(model);
  fs::copy(from / "tokenizer.json", model / "tokenizer.json");
  json config = parse_json(read_file(from / "config.json").value());
  config["hidden_size"] = 768;
  config["intermediate_size"] = 3072;
  config["num_hidden_layers"] = 5;
  std::ofstream(model / "config.json") << config;
  return model.string();
}

constexpr std::int64_t kTooLittle = 500'000'000;  // the learner's alone is not enough

TEST(Failures, AJobTooLargeForItsCgroupIsRefusedWithTheTable) {
  const Home home;
  const auto cgroup = MemoryCgroup::make(kTooLittle);
  if (!cgroup) GTEST_SKIP() << "no memory cgroup can be made here";
  const Words job = small_job(5, {"model.path=" + large_model(home), "rollout.replicas=1"});
  const Finished done = home.start_program(started_in(*cgroup, Words{"run"} + job)).wait();
  EXPECT_EQ(done.code, 2) << done.text();
  for (const char* part : {"error[infeasible]", "memory of each rank:", "gradients", "help:"})
    EXPECT_NE(done.err.find(part), std::string::npos) << part << "\n" << done.text();
  EXPECT_FALSE(fs::exists(home.run_dir(kSmallId))) << "nothing was made for it";
  home.expect_nothing_left();
}

// A job that cannot fit is refused when it is submitted. To see a kill all the same, the cgroup's
// limit is lowered later, when the node has already said how much memory it has.
TEST(Failures, ALearnerTooLargeForItsCgroupEndsTheJobWithTheFigures) {  // RB-6
  const Home home;
  const auto cgroup = MemoryCgroup::make(8 * std::int64_t{kTooLittle});
  if (!cgroup) GTEST_SKIP() << "no memory cgroup can be made here";
  Process controller = home.start({"controller", "--port", "0"});
  ASSERT_TRUE(eventually([&] { return fs::exists(home.path() / "controller.json"); }));
  Process node = home.start_program(started_in(*cgroup, {"node"}));
  ASSERT_TRUE(eventually([&] { return !home.json({"get", "nodes"}).empty(); }));
  ASSERT_TRUE(cgroup->limit(kTooLittle));
  const Words job = small_job(kForever, {"model.path=" + large_model(home), "rollout.replicas=1"});
  const Finished done = home.run(Words{"submit", "--wait"} + job);
  EXPECT_EQ(done.code, 1) << done.text();
  EXPECT_NE(done.err.find("killed for want of memory at "), std::string::npos) << done.text();
  EXPECT_NE(done.err.find("on its node, for the second time in a row; lower "), std::string::npos)
      << done.text();
  EXPECT_EQ(done.text().find("third time"), std::string::npos);
  home.down();
  EXPECT_EQ(controller.wait().code, 0);
  EXPECT_EQ(node.wait().code, 0);
  home.expect_nothing_left();
}

TEST(Failures, TwoKillsInARowDoNotEndTheJobAndTheLogsTellTheLife) {  // RB-6
  const Home home;
  home.up();
  const Finished submitted = home.run(Words{"submit"} + small_job(60) + held(home, 20));
  ASSERT_EQ(submitted.code, 0) << submitted.text();
  std::string seen;  // the job's own messages, over the deaths
  for (const char* name : {"learner/0", "learner/0", "rollout/0"}) {
    ASSERT_TRUE(eventually([&] { return actor(home, name)["state"] == "Ready"; }));
    const json before = actor(home, name);
    kill_rank(before);
    EXPECT_TRUE(eventually([&] {
      const json now = actor(home, name);
      seen += home.json({"get", "jobs", kSmallId})["message"].get<std::string>() + "\n";
      return now["state"] == "Ready" && now["incarnation"] > before["incarnation"];
    })) << actor(home, name);
  }
  EXPECT_NE(seen.find("learner/0 restarted 2 times in "), std::string::npos) << seen;
  EXPECT_NE(seen.find("killed by SIGKILL (9)"), std::string::npos) << seen;
  let_go(home);
  const Finished waited = home.run({"wait", kSmallId, "--for", "Succeeded", "--timeout", "90s"});
  EXPECT_EQ(waited.code, 0) << waited.text();
  home.down();
  home.expect_nothing_left();

  std::string rollouts, learners;
  for (const auto& file : fs::directory_iterator(home.run_dir(kSmallId) / "logs")) {
    const std::string name = file.path().filename();
    const std::string text = read_file(file.path()).value();
    if (name.starts_with("rollout.0.")) rollouts += text;
    if (name.starts_with("learner.0.")) learners += text;
  }
  for (const char* event :
       {"event=rank_started job=arithmetic-grpo-1", "event=rank_ready", "event=installed",
        "event=leases", "event=rank_ending why=\"told to end\"", "event=rollout_ended"})
    EXPECT_NE(rollouts.find(event), std::string::npos) << event << "\n" << rollouts;
  for (const char* event : {"event=rank_started", "model=", "event=learner_up", "event=trained",
                            "event=checkpoint_saved", "event=learner_ended"})
    EXPECT_NE(learners.find(event), std::string::npos) << event << "\n" << learners;
}

bool event_says(const Home& home, const std::string& subject, const std::string& words) {
  for (const json& event : home.json({"events", "-j", kSmallId}))
    if (event["subject"] == subject &&
        event["message"].get<std::string>().find(words) != std::string::npos)
      return true;
  return false;
}

TEST(Failures, ARolloutThatMayBePreemptedHandsItsGroupsBackOnASignalAndALearnerDies) {
  const Home home;
  home.up();
  const Finished submitted = home.run(
      Words{"submit"} + small_job(40, {"rollout.replicas=2", "pools.rollout.preemptible=true"}) +
      held(home, 10));
  ASSERT_EQ(submitted.code, 0) << submitted.text();
  for (const char* name : {"learner/0", "rollout/0", "rollout/1"})
    ASSERT_TRUE(eventually([&] { return actor(home, name)["state"] == "Ready"; })) << name;
  const json before = actor(home, "rollout/1"), learner = actor(home, "learner/0");
  ASSERT_EQ(kill(before["pid"].get<pid_t>(), SIGTERM), 0);
  json pause;
  EXPECT_TRUE(eventually([&] {
    pause = actor(home, "rollout/1");
    return pause["state"] == "Backoff";
  })) << pause;
  EXPECT_EQ(pause["reason"], "Preempted");
  EXPECT_NE(pause["message"].get<std::string>().find("starts again in"), std::string::npos)
      << pause;
  EXPECT_NE(home.run({"describe", "actors/rollout/1"}).out.find("starts again in"),
            std::string::npos);
  EXPECT_TRUE(event_says(home, before["name"], "is preempted"));
  EXPECT_TRUE(eventually([&] {
    const json now = actor(home, "rollout/1");
    return now["state"] == "Ready" && now["incarnation"] > before["incarnation"];
  }));
  EXPECT_EQ(actor(home, "rollout/1")["restarts"], 0);
  EXPECT_EQ(actor(home, "learner/0")["incarnation"], learner["incarnation"]);

  ASSERT_EQ(kill(learner["pid"].get<pid_t>(), SIGTERM), 0);
  EXPECT_TRUE(eventually([&] {
    const json now = actor(home, "learner/0");
    return now["state"] == "Ready" && now["incarnation"] > learner["incarnation"];
  }));
  EXPECT_EQ(actor(home, "learner/0")["restarts"], 1) << "the learner is never preempted";
  let_go(home);
  const Finished waited = home.run({"wait", kSmallId, "--for", "Succeeded", "--timeout", "90s"});
  EXPECT_EQ(waited.code, 0) << waited.text();
  const json result = home.result_of(kSmallId);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  home.down();
  home.expect_nothing_left();
}

}  // namespace
}  // namespace tandem::e2e
