// `tandem run`: the deaths of its controller and its node, which the job outlives, and its own,
// which nothing outlives.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <optional>
#include <regex>

#include "runtime/base/file.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kSteps = 60;
constexpr int kHoldsAtStep = 50;

Words job() {
  return small_job(kSteps, {"async.schedule=fixed_lag", "data.val_files=[]", "rollout.replicas=2",
                            "learner.save_freq=10"});
}

// The state folders of the clusters of this home's `tandem run`s.
std::vector<fs::path> clusters(const Home& home) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(home.path() / "clusters", none))
    found.push_back(entry.path());
  return found;
}

// The only cluster's controller.json; null where there is none, or one is about to be.
json controller(const Home& home) {
  const auto folders = clusters(home);
  const auto text = folders.size() == 1 ? read_file(folders[0] / "controller.json")
                                        : Result<std::string>(Error{.message = "no cluster"});
  const json file = text ? parse_json(*text) : json();
  return file.is_object() && file.contains("pid") ? file : json();
}

// The pid of the only cluster's node, by the lock that it holds; 0: there is none.
pid_t node(const Home& home) {
  const auto folders = clusters(home);
  return folders.size() == 1 ? FileLock::owner(folders[0] / "node.lock").value_or(0) : 0;
}

// A run that trains, whose reward is held at kHoldsAtStep steps.
class RunThatTrains {
 public:
  explicit RunThatTrains(const Home& home)
      : run(home.start(Words{"run"} + job() + held(home, kHoldsAtStep))), home_(home) {
    const std::string mark = "TANDEM_ADDRESS=";
    EXPECT_TRUE(run.said(mark));
    const std::string err = run.err();
    const auto at = err.find(mark) + mark.size();
    address_ = {"--address", err.substr(at, err.find('\n', at) - at)};
    EXPECT_TRUE(comes_to(4));
  }
  // Whether so many steps are trained before patience ends, and both rollouts are there.
  bool comes_to(int step) const {
    return eventually([&] {
      const json now = look();
      return now.is_object() && now["step"] >= step && now["actors"]["rollout"]["ready"] == 2;
    });
  }
  bool goes_on() const {
    json now;
    return eventually([&] { return (now = look()).is_object(); }) &&
           comes_to(std::min(now["step"].get<int>() + 4, kHoldsAtStep));
  }
  // The pids of the actors.
  std::vector<json> actors() const {
    std::vector<json> pids;
    for (const json& actor : home_.json(address_ + Words{"get", "actors"}))
      pids.push_back(actor["pid"]);
    return pids;
  }

  Process run;

 private:
  // The job as the API shows it; null while no controller answers.
  json look() const {
    const Finished seen = home_.run(address_ + Words{"get", "jobs", kSmallId, "-o", "json"});
    return seen.code == 0 ? parse_json(seen.out) : json();
  }
  const Home& home_;
  Words address_;
};

// EX-8, AG-3. Nobody is started again, nothing is done twice, and the command shows it all.
TEST(RunDeaths, OfControllerAndNodeChangeNothing) {
  constexpr int kDeaths = 3;
  const Home calm;
  const std::string weights = calm.train(kSmallId, job())["weights_sha256"];
  const Home home;
  RunThatTrains it(home);
  const std::vector<json> actors = it.actors();
  EXPECT_EQ(actors.size(), 4U);
  for (int death = 0; death < kDeaths; ++death) {
    const json before = controller(home);
    ASSERT_TRUE(before.is_object());
    ASSERT_EQ(kill(before["pid"].get<pid_t>(), SIGKILL), 0);
    ASSERT_TRUE(eventually([&] {
      const json now = controller(home);
      return now.is_object() && now["epoch"] > before["epoch"];
    }));
    EXPECT_EQ(controller(home)["http"], before["http"]) << "the address that was told";
    ASSERT_TRUE(it.goes_on()) << it.run.err();
    const pid_t dead = node(home);
    ASSERT_GT(dead, 0);
    ASSERT_EQ(kill(dead, SIGKILL), 0);
    ASSERT_TRUE(eventually([&] { return node(home) != 0 && node(home) != dead; }));
    ASSERT_TRUE(it.goes_on()) << it.run.err();
  }
  EXPECT_EQ(it.actors(), actors);
  EXPECT_TRUE(eventually([&] {
    return std::regex_search(it.run.err(), std::regex(" step=5[0-9]/60 "));
  })) << "the lines go on: "
      << it.run.err();
  let_go(home);
  const Finished done = it.run.wait();
  EXPECT_EQ(done.code, 0) << done.text();
  home.expect_nothing_left();
  EXPECT_EQ(clusters(home), std::vector<fs::path>{});
  const json result = home.result_of(kSmallId);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  EXPECT_EQ(result["weights_sha256"], weights);
  EXPECT_NE(done.out.find(weights), std::string::npos) << done.out;
  const auto rows = [&](const std::string& where) {
    return journal_value(home.run_dir(kSmallId), "SELECT count(*) FROM journal WHERE " + where);
  };
  EXPECT_EQ(rows("kind = 'followed'"), kDeaths);
  EXPECT_EQ(rows("kind IN ('resumed', 'retrained', 'learner_restarted')"), 0);
}

// EX-8: it goes on where it stands.
TEST(RunDeaths, OfAControllerInTheWarmStartChangeNothing) {
  const Words job =
      small_job(5, {"async.schedule=fixed_lag", "data.val_files=[]", "warm_start.max_steps=600"});
  const Home calm;
  const std::string weights = calm.train(kSmallId, job)["weights_sha256"];
  const Home home;
  Process run = home.start(Words{"run"} + job);
  ASSERT_TRUE(run.said("state=WarmStart"));
  const json before = controller(home);
  const Words cluster{"--address", before["http"].get<std::string>()};
  json actors;
  ASSERT_TRUE(eventually([&] {
    actors = home.json(cluster + Words{"get", "actors"});
    return actors.size() == 3 && std::ranges::all_of(actors, [](const json& actor) {
             return actor["state"] == "Ready" || actor["state"] == "Busy";
           });
  }));
  ASSERT_EQ(kill(before["pid"].get<pid_t>(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] {
    const Finished seen = home.run(cluster + Words{"get", "actors", "-o", "json"});
    const json now = seen.code == 0 ? parse_json(seen.out) : json();
    return now.size() == actors.size() &&
           std::ranges::equal(now, actors, [](auto& a, auto& b) { return a["pid"] == b["pid"]; });
  })) << actors;
  const Finished done = run.wait();
  EXPECT_EQ(done.code, 0) << done.text();
  const json result = home.result_of(kSmallId);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  EXPECT_EQ(result["weights_sha256"], weights);
  const auto rows = [&](const std::string& where) {
    return journal_value(home.run_dir(kSmallId), "SELECT count(*) FROM journal WHERE " + where);
  };
  EXPECT_EQ(rows("kind = 'followed'"), 1);
  EXPECT_EQ(rows("kind = 'published'"), 1) << "the warm start";
  EXPECT_EQ(rows("kind IN ('resumed', 'retrained', 'learner_restarted')"), 0);
  home.expect_nothing_left();
}

// Whether somebody is connected to this port of 127.0.0.1.
bool connected_to(const std::string& address) {
  const int port = std::stoi(address.substr(address.rfind(':') + 1));
  std::array<char, 32> peer{};  // the remote address and the state of the connection, established
  std::snprintf(peer.data(), peer.size(), " 0100007F:%04X 01 ", port);
  const auto table = read_file("/proc/net/tcp");
  return table && table->find(peer.data()) != std::string::npos;
}

// A `tandem run` whose submission has no answer, since `controller` is stopped. Nothing where the
// run was quicker.
std::optional<Process> run_that_submits(const Home& home, json& stopped) {
  Process run = home.start(Words{"run"} + job());
  while (node(home) == 0 && !run.ended()) ::poll(nullptr, 0, 1);
  run.signal(SIGSTOP);
  stopped = controller(home);
  const Words cluster{"--address", stopped["http"].get<std::string>()};
  EXPECT_TRUE(eventually([&] {
    const json nodes = home.json(cluster + Words{"get", "nodes"});
    return nodes.size() == 1 && nodes[0]["state"] == "Ready";
  }));
  if (!home.json(cluster + Words{"get", "jobs"}).empty()) {
    run.signal(SIGKILL);
    run.signal(SIGCONT);
    (void)run.wait();
    EXPECT_TRUE(eventually([&] { return home.processes().empty(); }));
    return {};
  }
  EXPECT_EQ(kill(stopped["pid"].get<pid_t>(), SIGSTOP), 0);
  run.signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return connected_to(stopped["http"]); }));
  return run;
}

TEST(RunDeaths, OfAControllerThatHasNotAcceptedTheJobYetChangeNothing) {
  for (const bool interrupted : {false, true}) {
    bool submitted = false;
    for (int attempt = 0; attempt < 10 && !submitted; ++attempt) {
      const Home home;
      json first;
      auto run = run_that_submits(home, first);
      if (!run) continue;
      submitted = true;
      if (interrupted) {
        run->signal(SIGINT);
        EXPECT_TRUE(run->said("cancelling as soon as the job is accepted; once more"));
      }
      ASSERT_EQ(kill(first["pid"].get<pid_t>(), SIGKILL), 0);
      const Finished done = run->wait();
      EXPECT_EQ(done.code, interrupted ? 130 : 0) << done.text();
      // The first controller may have died with a folder for the job, and nothing more.
      std::vector<std::string> results;
      for (const auto& run_dir : fs::directory_iterator(home.path() / "runs"))
        if (fs::exists(run_dir.path() / "result.json"))
          results.push_back(run_dir.path().filename().string());
      ASSERT_EQ(results.size(), 1U);
      EXPECT_NE(done.err.find("job " + results[0] + ";"), std::string::npos) << done.text();
      EXPECT_EQ(home.result_of(results[0])["state"], interrupted ? "Cancelled" : "Succeeded");
      home.expect_nothing_left();
    }
    EXPECT_TRUE(submitted);
  }
}

// Also of a controller and a node that are not the first ones. A terminal that is closed sends
// SIGHUP.
TEST(RunDeaths, NothingIsLeftOfARunThatIsKilled_RN1) {
  for (const int signal : {SIGKILL, SIGHUP}) {
    SCOPED_TRACE(signal);
    const Home home;
    RunThatTrains it(home);
    const json first = controller(home);
    ASSERT_TRUE(first.is_object());
    kill(first["pid"].get<pid_t>(), SIGKILL);
    ASSERT_TRUE(eventually([&] {
      const json now = controller(home);
      return now.is_object() && now["epoch"] > first["epoch"];
    }));
    const pid_t node_before = node(home);
    kill(node_before, SIGKILL);
    ASSERT_TRUE(eventually([&] { return node(home) != 0 && node(home) != node_before; }));
    ASSERT_TRUE(it.goes_on());
    EXPECT_FALSE(home.steps_in_timeline(kSmallId).empty()) << "of a run that goes on";
    it.run.signal(signal);
    EXPECT_EQ(it.run.wait().code, 128 + signal);
    home.expect_nothing_left();
    EXPECT_TRUE(eventually([&] { return clusters(home).empty(); }));
    EXPECT_FALSE(home.steps_in_timeline(kSmallId).empty()) << "of a run that was killed";
    EXPECT_FALSE(fs::exists(home.run_dir(kSmallId) / "result.json"));
  }
}

// Nobody is there to end the ranks but they themselves; the next run tidies up.
TEST(RunDeaths, RanksEndWithARunWhoseWholeClusterIsKilled_RN1) {
  const Home home;
  RunThatTrains it(home);
  ASSERT_TRUE(
      eventually([&] { return fs::exists(home.run_dir(kSmallId) / "checkpoints/step-10"); }));
  const json cluster = controller(home);
  ASSERT_TRUE(cluster.is_object());
  const pid_t keeper = node(home);
  ASSERT_GT(keeper, 0);
  for (const pid_t pid : {keeper, cluster["pid"].get<pid_t>(), it.run.pid()})
    EXPECT_EQ(kill(pid, SIGKILL), 0);
  EXPECT_EQ(it.run.wait().code, 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return home.processes().empty(); }));
  EXPECT_EQ(clusters(home).size(), 1U);
  let_go(home);
  EXPECT_EQ(home.run({"run", "--resume", kSmallId}).code, 0);
  home.expect_nothing_left();
  EXPECT_EQ(clusters(home), std::vector<fs::path>{});
}

}  // namespace
}  // namespace tandem::e2e
