// A cluster in the background: looked into, changed and broken while it trains.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "runtime/base/file.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Cluster : public testing::Test {
 protected:
  std::string submit(const Words& job) {
    const Finished done = home.run(Words{"submit"} + job);
    EXPECT_EQ(done.code, 0) << done.text();
    return done.out.substr(0, done.out.find('\n'));
  }
  json job(const std::string& id) { return home.json({"get", "jobs", id}); }
  bool reaches_step(const std::string& id, std::int64_t step) {
    return eventually([&] { return job(id)["step"] >= step; });
  }
  // A command that must do, with something on stdout.
  std::string shown(const Words& words) {
    const Finished done = home.run(words);
    EXPECT_EQ(done.code, 0) << words.front() << ": " << done.text();
    EXPECT_FALSE(done.out.empty()) << words.front();
    return done.out;
  }
  void expect_exit(int code, const Words& words) {
    const Finished done = home.run(words);
    EXPECT_EQ(done.code, code) << words.front() << ": " << done.text();
    EXPECT_NE(done.err.find("error["), std::string::npos) << done.text();
    EXPECT_NE(done.err.find("help:"), std::string::npos) << done.text();
  }
  void expect_every_state_has_a_reason() {
    for (const char* kind : {"jobs", "actors"})
      for (const json& item : home.json({"get", kind})) {
        EXPECT_NE(item["state"], "") << item;
        EXPECT_NE(item["reason"], "") << item;
        EXPECT_NE(item["message"], "") << item;
      }
  }
  // Kills the actor and waits for its next incarnation.
  void kill_and_await_restart(const std::string& name) {
    const json before = actor(home, name);
    kill_rank(before);
    EXPECT_TRUE(eventually([&] {
      const json now = actor(home, name);
      expect_every_state_has_a_reason();
      return now["state"] == "Ready" && now["incarnation"] > before["incarnation"];
    })) << actor(home, name);
    EXPECT_EQ(actor(home, name)["restarts"], 1) << name;
    EXPECT_NE(home.run({"logs", name, "--previous"}).code, 3)
        << "its earlier incarnation has a log";
  }

  Home home;
};

TEST_F(Cluster, IsLookedIntoAndScaledWhileItTrains) {
  home.up();
  for (const char* kind : {"jobs", "actors", "groups"})
    EXPECT_EQ(home.json({"get", kind}), json::array()) << kind;
  EXPECT_EQ(home.json({"get", "nodes"}).size(), 1u);
  const std::string id = submit(small_job(kForever));
  EXPECT_EQ(id, kSmallId);
  EXPECT_EQ(home.run({"wait", id, "--for", "Running", "--timeout", "90s"}).code, 0);
  ASSERT_TRUE(reaches_step(id, 5));

  const json running = job(id);
  for (const char* field : {"id", "name", "state", "reason", "step", "total_steps",
                            "policy_version", "actors", "reward_mean", "staleness", "queue_depth",
                            "trainer_idle_fraction", "tokens_per_second", "run_dir"})
    EXPECT_TRUE(running.contains(field)) << field;
  const json rollout = actor(home, id + "/rollout/0");
  for (const char* field :
       {"name", "job", "role", "state", "reason", "message", "since", "node", "pid", "gpus",
        "incarnation", "restarts", "policy_version", "load", "ranks"})
    EXPECT_TRUE(rollout.contains(field)) << field;
  EXPECT_TRUE(home.json({"get", "groups"}).is_array());
  EXPECT_FALSE(home.json({"get", "events"}).empty());
  for (const char* form : {"table", "wide", "yaml", "name"})
    EXPECT_NE(shown({"get", "actors", "-o", form}).find("rollout/0"), std::string::npos) << form;
  EXPECT_NE(shown({"describe", "jobs/" + id}).find("Events:"), std::string::npos);
  EXPECT_NE(shown({"describe", "actors/rollout/0"}).find("Events:"), std::string::npos);
  EXPECT_NE(shown({"why", id}).find("Running"), std::string::npos);
  shown({"why", "learner/0"});
  EXPECT_TRUE(home.json({"why", id}).is_array());
  EXPECT_NE(shown({"logs", "learner/0"}).find("event=learner_up"), std::string::npos);
  EXPECT_NE(shown({"top"}).find(id), std::string::npos) << "one frame";
  EXPECT_NE(shown({"events"}).find("Running"), std::string::npos);
  EXPECT_FALSE(home.json({"samples", id}).empty());
  EXPECT_TRUE(eventually([&] { return !home.json({"samples", id, "--eval"}).empty(); }));
  expect_every_state_has_a_reason();

  Process following = home.start({"logs", "-f", "learner/0"});
  Process watching = home.start({"get", "jobs", "-w", "-o", "json"});
  EXPECT_TRUE(following.said("event=learner_up"));
  EXPECT_TRUE(watching.said("\"Running\""));
  const auto lines = [&] {
    const std::string out = watching.out();
    return std::count(out.begin(), out.end(), '\n');
  };
  EXPECT_TRUE(eventually([&] { return lines() >= 3; })) << "steps are changes";

  for (const int replicas : {2, 1}) {
    const auto before = job(id)["step"].get<std::int64_t>();
    const Finished scaled =
        home.run({"scale", id, "rollout=" + std::to_string(replicas), "--wait"});
    EXPECT_EQ(scaled.code, 0) << scaled.text();
    EXPECT_EQ(job(id)["actors"]["rollout"]["ready"], replicas);
    EXPECT_TRUE(reaches_step(id, before + 3)) << "it trains on";
  }
  EXPECT_TRUE(eventually([&] {
    return home.json({"get", "actors"}).size() == 3;
  })) << "the drained rollout goes";
  EXPECT_EQ(home.run({"scale", id, "learner=2"}).code, 64) << "not in this version";

  expect_exit(3, {"get", "jobs", "nobody"});
  expect_exit(3, {"describe", "actors/rollout/7"});
  expect_exit(3, {"logs", "rollout/7"});
  expect_exit(3, {"cancel", "nobody"});
  expect_exit(5, {"wait", id, "--for", "Succeeded", "--timeout", "1"});

  EXPECT_EQ(home.run({"cancel", id}).code, 0);
  EXPECT_EQ(job(id)["state"], "Cancelled");
  EXPECT_EQ(home.result_of(id)["state"], "Cancelled");
  expect_ledger_balances(home.run_dir(id), home.result_of(id));
  EXPECT_EQ(home.shared_memory(), Words{}) << "cancel leaves nothing of the job";
  home.down();
  following.wait();
  watching.wait();
  home.expect_nothing_left();
}

TEST_F(Cluster, KillsOfEveryRoleCostNothing) {
  constexpr int kSteps = 300;
  home.up();
  // The reward holds the run at step 250 of 300 until all kills are done, so that none comes too
  // late.
  const std::string id =
      submit(small_job(kSteps, {"learner.save_freq=100"}) + held(home, kSteps - 50));
  ASSERT_TRUE(reaches_step(id, 20));
  for (const char* name : {"rollout/0", "reward/0"}) kill_and_await_restart(name);
  ASSERT_TRUE(reaches_step(id, 210));
  kill_and_await_restart("learner/0");  // between two checkpoints: some steps are trained again
  let_go(home);
  const Finished waited = home.run({"wait", id, "--for", "Succeeded", "--timeout", "90s"});
  EXPECT_EQ(waited.code, 0) << waited.text();
  home.down();
  home.expect_nothing_left();
  const json result = home.result_of(id);
  EXPECT_EQ(result["ledger"]["discarded"], json::object()) << "no kill causes a discard";
  EXPECT_EQ(result["ledger"]["trained"], kSteps * kGroupsPerStep);
  expect_ledger_balances(home.run_dir(id), result);
  EXPECT_EQ(
      journal_value(home.run_dir(id),
                    "SELECT count(*) FROM journal a JOIN journal b USING(step) WHERE a.kind = "
                    "'retrained' AND b.kind = 'committed' AND a.detail <> b.detail"),
      0)
      << "versions that were trained again have the same checksums";
  EXPECT_GT(
      journal_value(home.run_dir(id), "SELECT count(*) FROM journal WHERE kind = 'retrained'"), 0);
}

// The test removes the folder as a program does that cleans folders of temporary files.
TEST_F(Cluster, ARemovedFolderOfSocketsIsMadeAgainOrItsLossIsTheReasonAtOnce) {
  home.up();
  const std::string id = submit(small_job(kForever));
  ASSERT_TRUE(reaches_step(id, 3));
  const std::string socket =
      parse_json(*read_file(home.path() / "controller.json"))["control_socket"];
  const fs::path folder = fs::path(socket.substr(std::string("ipc://").size())).parent_path();
  EXPECT_EQ(folder.parent_path(), home.path()) << "not where temporary files are";
  const auto comes_back = [&](const json& before) {
    const std::string name = before["name"];
    return eventually([&] {
      const json now = actor(home, name);
      return now["state"] == "Ready" && now["incarnation"] > before["incarnation"];
    });
  };
  fs::remove_all(folder);
  for (const char* role : {"/rollout/0", "/reward/0", "/learner/0"}) {
    const json before = actor(home, id + role);
    kill_rank(before);
    EXPECT_TRUE(comes_back(before)) << actor(home, id + role);
  }
  EXPECT_TRUE(reaches_step(id, job(id)["step"].get<std::int64_t>() + 3));
  const auto is_told = [&](const char* loss) {
    return eventually([&] { return shown({"events"}).find(loss) != std::string::npos; });
  };
  EXPECT_TRUE(is_told("another program removed the folder of sockets")) << shown({"events"});

  fs::remove_all(folder);
  std::ofstream(folder) << "in the way";
  const json before = actor(home, id + "/rollout/0");
  kill_rank(before);
  ASSERT_TRUE(eventually([&] {
    const std::string why = shown({"why", id});
    return why.find("the controller's socket is gone: ") != std::string::npos;
  })) << shown({"why", id});
  // The keeper of the folder looks at its own times, and the rank may have seen it first.
  EXPECT_TRUE(is_told("the folder of sockets is gone")) << shown({"events"});
  fs::remove(folder);
  EXPECT_TRUE(comes_back(before)) << actor(home, id + "/rollout/0");
  EXPECT_EQ(home.run({"cancel", id}).code, 0);
  home.down();
}

// There is room for two small jobs: the third waits for its turn, and so does a job that needs more
// room.
TEST_F(Cluster, JobsQueueForRoomAndWhatNeverFitsIsRefused) {
  Process controller = home.start({"controller", "--port", "0"});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(home.path() / "controller.json"); }));
  Process node = home.start({"node", "--cpus", "2.4", "--name", "small"});
  ASSERT_TRUE(eventually([&] { return !home.json({"get", "nodes"}).empty(); }));

  const std::string first = submit(small_job(kForever)), second = submit(small_job(kForever));
  const fs::path data = home.path() / "third.jsonl", away = home.path() / "away.jsonl";
  fs::copy(fs::path(TANDEM_SOURCE_DIR) / "configs/data/train.jsonl", data);
  const Finished third = home.run(
      Words{"submit"} + small_job(5, {"name=third", "data.train_files=[" + data.string() + "]"}));
  EXPECT_EQ(third.code, 2) << third.text();
  EXPECT_NE(third.err.find("note: accepted but not placed"), std::string::npos) << third.text();
  EXPECT_EQ(third.err.find("error"), std::string::npos) << third.text();
  EXPECT_EQ(job("third-1")["state"], "Queued");
  EXPECT_NE(shown({"why", "third-1"}).find("CPU"), std::string::npos);
  expect_exit(5, {"wait", "third-1", "--for", "Running", "--timeout", "1"});
  fs::rename(data, away);  // what was read when the job was submitted is what it trains on

  for (const Words& refusal : {Words{"submit"} + small_job(5, {"rollout.replicas=9"}),
                               Words{"scale", first, "rollout=9"}}) {
    const Finished refused = home.run(refusal);
    EXPECT_EQ(refused.code, 2) << refused.text();
    EXPECT_NE(refused.err.find("it would fit"), std::string::npos) << refused.text();
  }
  EXPECT_EQ(home.json({"get", "jobs"}).size(), 3u) << "a refused job is not kept";

  ASSERT_TRUE(reaches_step(first, 1) && reaches_step(second, 1));
  expect_exit(5, {"scale", first, "rollout=2", "--wait", "--timeout", "1"});
  expect_every_state_has_a_reason();
  EXPECT_EQ(home.run({"scale", first, "rollout=1", "--wait"}).code, 0);
  EXPECT_EQ(home.run({"cancel", second}).code, 0);
  EXPECT_EQ(home.run({"wait", "third-1", "--for", "Succeeded", "--timeout", "90s"}).code, 0);
  fs::rename(away, data);

  // A run whose resume is cancelled in the queue tells that, now and without a controller.
  submit(small_job(kForever));
  const Finished again =
      home.run({"submit", "--resume", "third-1", "--set", "learner.total_training_steps=10"});
  EXPECT_EQ(again.code, 2) << again.text();
  EXPECT_EQ(home.run({"cancel", "third-1"}).code, 0);
  const auto expect_not_resumed = [&](const json& object) {
    EXPECT_EQ(object["state"], "Cancelled") << object;
    EXPECT_EQ(object["reason"], "CancelledByUser") << object;
    EXPECT_EQ(object["step"], 5) << object;
    EXPECT_NE(object["message"].get<std::string>().find(
                  "was not resumed and stands at step 5; tandem run --resume"),
              std::string::npos)
        << object;
  };
  expect_not_resumed(job("third-1"));
  expect_not_resumed(home.json({"get", "run/third-1"}));
  EXPECT_EQ(home.result_of("third-1")["state"], "Succeeded") << "the run's own result stays";
  home.down();
  for (json& run : home.json({"get", "runs"}))
    if (run["id"] == "third-1") expect_not_resumed(run);
  EXPECT_NE(shown({"why", "third-1"}).find("stands at step 5"), std::string::npos);
  EXPECT_EQ(controller.wait().code, 0);
  EXPECT_EQ(node.wait().code, 0);
  home.expect_nothing_left();
}

// A small job takes 250 MiB, of which each rollout has 110.
TEST_F(Cluster, MemoryIsReservedShownAndWaitedFor) {
  Process controller = home.start({"controller", "--port", "0"});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(home.path() / "controller.json"); }));
  Process node = home.start({"node", "--cpus", "8", "--name", "small", "--memory", "320MiB"});
  ASSERT_TRUE(eventually([&] { return !home.json({"get", "nodes"}).empty(); }));

  const std::string first = submit(small_job(kForever));
  const json nodes = home.json({"get", "nodes"});
  EXPECT_EQ(nodes[0]["memory_bytes"], 320ll << 20);
  EXPECT_GT(nodes[0]["leased"]["memory_bytes"], 200ll << 20);
  EXPECT_NE(shown({"get", "nodes", "-o", "wide"}).find("MiB/320 MiB"), std::string::npos);
  EXPECT_NE(shown({"describe", "nodes/small"}).find("Reserved:"), std::string::npos);
  const std::string described = shown({"describe", "jobs/" + first});
  for (const char* row : {"Memory:", "gradients", "moments", "KV pages", "published versions"})
    EXPECT_NE(described.find(row), std::string::npos) << row << "\n" << described;

  const Finished second = home.run(Words{"submit"} + small_job(5, {"name=second"}));
  EXPECT_EQ(second.code, 2) << second.text();
  EXPECT_EQ(job("second-1")["reason"], "WaitingForCapacity");
  EXPECT_NE(job("second-1")["message"].get<std::string>().find("MiB; free: "), std::string::npos);
  for (const Words& refusal : {Words{"submit"} + small_job(5, {"rollout.replicas=9"}),
                               Words{"scale", first, "rollout=2"}}) {
    const Finished refused = home.run(refusal);
    EXPECT_EQ(refused.code, 2) << refused.text();
    EXPECT_NE(refused.err.find("memory of each rank:"), std::string::npos) << refused.text();
    EXPECT_NE(refused.err.find("it would fit"), std::string::npos) << refused.text();
  }
  EXPECT_EQ(home.run({"cancel", first}).code, 0);
  EXPECT_EQ(home.run({"wait", "second-1", "--for", "Succeeded", "--timeout", "90s"}).code, 0);
  home.down();
  EXPECT_EQ(controller.wait().code, 0);
  EXPECT_EQ(node.wait().code, 0);
  home.expect_nothing_left();
}

// Its node starts another one, which takes up the job that trained, as its user had scaled it, and
// the one that waited. A client that watches goes on, and finds it at the same address.
TEST_F(Cluster, AControllerThatDiesOrHangsIsReplacedAndItsJobsGoOn) {
  home.up();
  const std::string id = submit(small_job(kForever, {"learner.save_freq=2"}));
  ASSERT_TRUE(reaches_step(id, 3));
  ASSERT_EQ(home.run({"scale", id, "rollout=2"}).code, 0);
  const std::string waits = "waits-1";
  ASSERT_EQ(home.run(Words{"submit"} + small_job(3, {"name=waits", "data.val_files=[]"})).code, 2)
      << "there is no room for it";
  ASSERT_EQ(job(waits)["state"], "Queued");
  const json first = home.address();
  const json node = home.json({"get", "nodes"})[0];
  Process watcher = home.start({"wait", waits, "--for", "Succeeded", "--timeout", "90s"});

  for (const int signal : {SIGKILL, SIGSTOP}) {
    const json before = home.address();
    const json now = job(id);
    ASSERT_EQ(kill(before["pid"].get<pid_t>(), signal), 0);
    ASSERT_TRUE(home.next_controller(before["epoch"])) << signal;
    EXPECT_EQ(home.address()["http"], first["http"]);
    EXPECT_TRUE(eventually([&] { return home.json({"get", "nodes"})[0]["state"] == "Ready"; }));
    EXPECT_EQ(home.json({"get", "nodes"})[0]["pid"], node["pid"]) << "its node lives on";
    EXPECT_TRUE(reaches_step(id, now["step"].get<std::int64_t>() + 2)) << job(id);
    EXPECT_TRUE(eventually([&] { return job(id)["actors"]["rollout"]["ready"] == 2; })) << job(id);
    EXPECT_EQ(job(waits)["state"], "Queued");
    EXPECT_NE(shown({"events", "-j", id}).find("taken up by a new controller"), std::string::npos);
  }
  EXPECT_EQ(home.run({"cancel", id}).code, 0);
  EXPECT_EQ(watcher.wait().code, 0) << watcher.err();
  ASSERT_EQ(kill(home.address()["pid"].get<pid_t>(), SIGSTOP), 0);
  const Finished down = home.run({"down"});
  EXPECT_EQ(down.code, 0) << "it ends a controller that hangs: " << down.text();
  home.expect_nothing_left();
}

// The node was silent, and not its controller: the node comes back to it. One that is silent for
// longer hangs: it is killed, and its ranks work on under the next.
TEST_F(Cluster, ANodeThatStoppedForAWhileComesBackAndOneThatHangsIsReplaced) {
  home.up();
  const std::string id = submit(small_job(kForever));
  ASSERT_TRUE(reaches_step(id, 3));
  const json ranks = home.json({"get", "actors"});
  const json before = home.address();
  const json node = home.json({"get", "nodes"})[0];
  ASSERT_EQ(kill(node["pid"].get<pid_t>(), SIGSTOP), 0);
  EXPECT_TRUE(eventually([&] { return home.json({"get", "nodes"})[0]["state"] == "Lost"; }));
  ASSERT_EQ(kill(node["pid"].get<pid_t>(), SIGCONT), 0);
  EXPECT_TRUE(eventually([&] { return home.json({"get", "nodes"})[0]["state"] == "Ready"; }));
  EXPECT_EQ(home.json({"get", "nodes"})[0]["pid"], node["pid"]);
  EXPECT_EQ(home.address()["epoch"], before["epoch"]);

  ASSERT_EQ(kill(node["pid"].get<pid_t>(), SIGSTOP), 0);
  EXPECT_TRUE(eventually([&] {
    const json now = home.json({"get", "nodes"})[0];
    return now["state"] == "Ready" && now["pid"] != node["pid"];
  }));
  for (const json& rank : ranks) EXPECT_EQ(actor(home, rank["name"])["pid"], rank["pid"]) << rank;
  EXPECT_TRUE(reaches_step(id, job(id)["step"].get<std::int64_t>() + 2));

  const json third = home.json({"get", "nodes"})[0]["pid"];
  ASSERT_EQ(kill(third.get<pid_t>(), SIGSTOP), 0);
  const Finished down = home.run({"down"});
  EXPECT_EQ(down.code, 0) << down.text();
  EXPECT_NE(down.err.find("a node hung, and was killed"), std::string::npos) << down.text();
  home.expect_nothing_left();
}

// Without a node that keeps it nobody starts a controller again. The ranks work on, and the next
// `tandem up` finds them where they are. What `down` cancelled is not taken up.
TEST_F(Cluster, UpTakesUpTheJobsOfAClusterThatWasKilled) {
  home.up();
  const std::string id = submit(small_job(kForever, {"learner.save_freq=2"}));
  ASSERT_TRUE(reaches_step(id, 3));
  const std::string cancelled = "cancelled-1";
  EXPECT_EQ(home.run(Words{"submit"} + small_job(3, {"name=cancelled"})).code, 2);
  ASSERT_EQ(home.run({"cancel", cancelled}).code, 0);
  const json ranks = home.json({"get", "actors"});
  const std::int64_t step = job(id)["step"];
  for (const json& pid : {home.json({"get", "nodes"})[0]["pid"], home.address()["pid"]})
    ASSERT_EQ(kill(pid.get<pid_t>(), SIGKILL), 0);
  EXPECT_EQ(home.run({"get", "jobs"}).code, 69);
  home.up();
  EXPECT_TRUE(reaches_step(id, step + 2)) << job(id);
  for (const json& before : ranks)
    EXPECT_TRUE(before["pid"].is_null() || actor(home, before["name"])["pid"] == before["pid"])
        << before;
  EXPECT_EQ(home.run({"get", "jobs", cancelled}).code, 3);
  for (const json& pid : {home.json({"get", "nodes"})[0]["pid"], home.address()["pid"]})
    ASSERT_EQ(kill(pid.get<pid_t>(), SIGKILL), 0);
  EXPECT_NE(home.run({"down"}).err.find("whose agent had died"), std::string::npos);
  home.expect_nothing_left();
  home.up();
  EXPECT_TRUE(reaches_step(id, step + 3)) << "from its checkpoint: " << job(id);
  ASSERT_EQ(kill(home.address()["pid"].get<pid_t>(), SIGKILL), 0);
  EXPECT_EQ(home.run({"down"}).code, 0) << "whether or not there is a controller again";
  home.expect_nothing_left();
  home.up();
  home.down();
  home.up();
  EXPECT_EQ(home.json({"get", "jobs"}), json::array()) << "`down` cancelled what there was";
  home.down();
  EXPECT_EQ(home.shared_memory(), Words{});
}

TEST_F(Cluster, ASecondNodeIsRefusedAndALostOneIsSeenAndReplaced) {
  home.up();
  const std::string id = submit(small_job(kForever));
  ASSERT_TRUE(reaches_step(id, 3));
  const json first = home.json({"get", "nodes"})[0];
  const Finished second = home.run({"node"});
  EXPECT_EQ(second.code, 1) << second.text();
  EXPECT_NE(second.err.find("pid " + first["pid"].dump()), std::string::npos) << second.text();
  EXPECT_EQ(home.json({"get", "nodes"})[0]["pid"], first["pid"]);
  EXPECT_TRUE(reaches_step(id, job(id)["step"].get<std::int64_t>() + 2)) << "it trains on";

  // An agent that dies alone is started again, and finds its ranks.
  const json ranks = home.json({"get", "actors"});
  ASSERT_EQ(kill(first["pid"].get<pid_t>(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] {
    const json node = home.json({"get", "nodes"})[0];
    return node["state"] == "Ready" && node["pid"] != first["pid"];
  }));
  EXPECT_TRUE(reaches_step(id, job(id)["step"].get<std::int64_t>() + 2)) << "it trains on";
  for (const json& before : ranks) {
    const json now = actor(home, before["name"]);
    EXPECT_EQ(now["pid"], before["pid"]) << now;
    EXPECT_EQ(now["restarts"], 0) << now;
  }

  // The whole node dies, and nobody starts it again.
  home.lose_node();
  EXPECT_TRUE(eventually([&] { return home.json({"get", "nodes"})[0]["state"] == "Lost"; }));
  EXPECT_TRUE(eventually([&] { return job(id)["reason"] == "NodeLost"; })) << job(id);
  EXPECT_TRUE(eventually([&] { return actor(home, id + "/learner/0")["reason"] == "NodeLost"; }))
      << actor(home, id + "/learner/0");
  EXPECT_NE(shown({"get", "nodes"}).find("Lost"), std::string::npos);

  const Finished up = home.run({"up"});
  EXPECT_EQ(up.code, 0) << up.text();
  EXPECT_NE(up.err.find("has no node: starting one"), std::string::npos) << up.text();
  const json replaced = home.json({"get", "nodes"});
  ASSERT_EQ(replaced.size(), 1u);
  EXPECT_EQ(replaced[0]["state"], "Ready");
  EXPECT_NE(replaced[0]["pid"], first["pid"]);
  EXPECT_TRUE(eventually([&] { return job(id)["reason"] == "Working"; })) << job(id);
  EXPECT_EQ(home.run({"cancel", id}).code, 0);
  home.down();
  home.expect_nothing_left();
}

// A job that has ended reaches no other state: a wait for one fails.
TEST_F(Cluster, WaitFailsWhereTheJobEndsOtherwise) {
  home.up();
  const std::string id = submit(small_job(2, {"data.val_files=[]"}));
  EXPECT_EQ(home.run({"wait", id, "--for", "Succeeded", "--timeout", "90s"}).code, 0);
  for (const char* state : {"Failed", "Cancelled", "Running"})
    expect_exit(1, {"wait", id, "--for", state});
  home.down();
}

TEST_F(Cluster, SubmitCanWaitAndDownEndsWhatRuns) {
  home.up();
  const Finished done = home.run(Words{"submit"} + small_job(5) + Words{"--wait"});
  EXPECT_EQ(done.code, 0) << done.text();
  EXPECT_EQ(home.run({"up", "--port", "0"}).code, 0) << "it is up already";
  submit(small_job(kForever));
  ASSERT_TRUE(reaches_step("arithmetic-grpo-2", 2));
  const Finished down = home.run({"down"});
  EXPECT_EQ(down.code, 0) << down.text();
  EXPECT_NE(down.err.find("tandem submit --resume " + home.run_dir("arithmetic-grpo-2").string()),
            std::string::npos)
      << down.text();
  EXPECT_EQ(down.err.find("arithmetic-grpo-1"), std::string::npos) << "it has succeeded";
  home.expect_nothing_left();
  EXPECT_EQ(home.result_of("arithmetic-grpo-2")["state"], "Cancelled");
  EXPECT_EQ(home.run({"down"}).code, 0) << "again is nothing";
}

}  // namespace
}  // namespace tandem::e2e
