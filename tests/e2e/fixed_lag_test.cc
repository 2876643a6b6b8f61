// async.schedule: fixed_lag gives the same weights for any number of rollouts and whichever process
// dies; and a job learns under it.
#include <gtest/gtest.h>

#include <csignal>
#include <set>
#include <sstream>

#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kLagSteps = 60;

Words job(const Words& settings) {
  return small_job(kLagSteps, Words{"async.schedule=fixed_lag", "data.val_files=[]"} + settings);
}

std::string sha_of(const json& result) {
  EXPECT_EQ(result["state"], "Succeeded");
  EXPECT_EQ(result["ledger"]["trained"], kLagSteps * kGroupsPerStep);
  EXPECT_EQ(result["ledger"]["discarded"], json::object());
  return result["weights_sha256"];
}

json trained(const Words& settings) {
  const Home home;
  const json result = home.train(kSmallId, job(settings));
  expect_ledger_balances(home.run_dir(kSmallId), result);
  return result;
}

std::string trained_sha(const Words& settings) { return sha_of(trained(settings)); }

// The address of a `tandem run`'s controller, as options.
Words address_of(const Process& run) {
  EXPECT_TRUE(run.said("TANDEM_ADDRESS="));
  const std::string err = run.err(), mark = "TANDEM_ADDRESS=";
  const auto at = err.find(mark) + mark.size();
  return {"--address", err.substr(at, err.find('\n', at) - at)};
}

const Words kTwoRollouts{"rollout.replicas=2"};

// Both rollouts, with one of which a run may begin, are there, and so many steps are trained.
bool both_are_at(const Home& home, const Words& address, int step) {
  return eventually([&] {
    const json now = home.json(address + Words{"get", "jobs", kSmallId});
    return now["step"] >= step && now["actors"]["rollout"]["ready"] == 2;
  });
}

// Runs with two rollouts and kills `name` once while it trains; its weights.
std::string sha_with_a_kill(const std::string& name) {
  const Home home;
  Process run = home.start(Words{"run"} + job(kTwoRollouts) + held(home, kLagSteps - 20));
  const Words address = address_of(run);
  EXPECT_TRUE(both_are_at(home, address, 5));
  kill_rank(actor(home, std::string(kSmallId) + "/" + name, address));
  let_go(home);
  EXPECT_EQ(run.wait().code, 0) << run.err();
  home.expect_nothing_left();
  const json result = home.result_of(kSmallId);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  const auto retrained = journal_value(home.run_dir(kSmallId),
                                       "SELECT count(*) FROM journal WHERE kind = 'retrained'");
  EXPECT_EQ(retrained > 0, name.starts_with("learner")) << retrained << " steps trained again";
  return sha_of(result);
}

// Runs, damages the newest checkpoint and kills the learner; the weights.
std::string sha_with_a_damaged_checkpoint() {
  const Home home;
  const Words saving{"learner.save_freq=10"};
  Process run = home.start(Words{"run"} + job(saving) + held(home, 34));
  const Words address = address_of(run);
  const std::string learner = std::string(kSmallId) + "/learner/0";
  const fs::path newest = home.run_dir(kSmallId) / "checkpoints" / "step-30";
  EXPECT_TRUE(eventually([&] {
    return fs::exists(newest / "model.safetensors") &&
           home.json(address + Words{"get", "jobs", kSmallId})["step"] >= 32;
  }));
  fs::resize_file(newest / "model.safetensors", 1000);
  const json before = actor(home, learner, address);
  kill_rank(before);
  EXPECT_TRUE(eventually([&] {
    const json now = actor(home, learner, address);
    return now["state"] == "Ready" && now["incarnation"] > before["incarnation"];
  }));
  let_go(home);
  EXPECT_EQ(run.wait().code, 0) << run.err();
  home.expect_nothing_left();
  const json result = home.result_of(kSmallId);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  EXPECT_EQ(result["lineages"], json::array());
  EXPECT_EQ(journal_value(home.run_dir(kSmallId),
                          "SELECT min(step) FROM journal WHERE kind = 'learner_restarted'"),
            20);
  return sha_of(result);
}

class FixedLag : public testing::Test {
 protected:
  static const json& reference_result() {
    static const json result = trained({});
    return result;
  }
  static std::string reference() { return sha_of(reference_result()); }
};

TEST_F(FixedLag, TwoRolloutsShareTheWorkAndGiveTheSameWeights) {
  const Home home;
  Process run = home.start(Words{"run"} + job(kTwoRollouts) + held(home, 1));
  const Words address = address_of(run);
  EXPECT_TRUE(both_are_at(home, address, 1));
  let_go(home);
  EXPECT_EQ(run.wait().code, 0) << run.err();
  home.expect_nothing_left();
  EXPECT_EQ(sha_of(home.result_of(kSmallId)), reference());
  const auto generated = [&](const std::string& where) {
    return journal_value(home.run_dir(kSmallId),
                         "SELECT count(*) FROM journal WHERE kind = 'generated'" + where);
  };
  const auto all = generated("");
  for (const char* name : {"rollout/0", "rollout/1"})
    EXPECT_GE(5 * generated(" AND holder = '" + std::string(kSmallId) + "/" + name + "'"), all)
        << name << " generates a fifth at least";
}

TEST_F(FixedLag, ARolloutThatIsKilledMidwayChangesNothing) {
  EXPECT_EQ(sha_with_a_kill("rollout/1"), reference());
}

TEST_F(FixedLag, ALearnerThatIsKilledMidwayChangesNothing) {
  EXPECT_EQ(sha_with_a_kill("learner/0"), reference());
}

TEST_F(FixedLag, ALearnerWhoseNewestCheckpointIsDamagedChangesNothing_CP2) {
  EXPECT_EQ(sha_with_a_damaged_checkpoint(), reference());
}

constexpr int kLong = 300;

Words long_job(const Words& schedule) {
  return small_job(
      kLong, Words{"data.val_files=[]", "learner.save_freq=50", "rollout.replicas=2"} + schedule);
}
const Words kFixedLag{"async.schedule=fixed_lag"};

// The weights of long_job(kFixedLag) that nothing disturbs.
std::string calm_sha() {
  static const std::string sha = [] {
    const Home calm;
    return calm.train(kSmallId, long_job(kFixedLag))["weights_sha256"].get<std::string>();
  }();
  return sha;
}

// Another node of the same machine takes all actors over; nobody dies, and no step is repeated.
TEST(DrainedNode, MovesItsActorsAndChangesNothing) {
  const Home home;
  home.up();
  ASSERT_EQ(home.run(Words{"submit"} + long_job(kFixedLag)).code, 0);
  EXPECT_TRUE(both_are_at(home, {}, 60));
  const std::string first = home.json({"get", "nodes"})[0]["name"];
  Process second = home.start({"node", "--name", "second"});
  EXPECT_TRUE(eventually([&] { return home.json({"get", "nodes"}).size() == 2; }));
  const Finished drained = home.run({"drain", first, "--reason", "new driver"});
  EXPECT_EQ(drained.code, 0) << drained.text();
  EXPECT_NE(drained.err.find("is empty"), std::string::npos) << drained.text();
  for (const json& actor : home.json({"get", "actors"}))
    EXPECT_EQ(actor["node"], "second") << actor["name"];
  const json node = home.json({"get", "nodes", first});
  EXPECT_EQ(node["cordoned"], "new driver");
  EXPECT_EQ(node["reason"], "Cordoned");
  const Finished end = home.run({"wait", kSmallId, "--for", "Succeeded", "--timeout", "90s"});
  EXPECT_EQ(end.code, 0) << end.text() << home.run({"why", kSmallId}).text();
  EXPECT_EQ(home.run({"uncordon", first}).code, 0);
  EXPECT_EQ(home.json({"get", "nodes", first})["cordoned"], json());
  second.signal(SIGTERM);
  second.wait();
  home.down();
  const json result = home.result_of(kSmallId);
  EXPECT_EQ(result["ledger"]["retrained"], 0);
  EXPECT_EQ(result["weights_sha256"], calm_sha());
}

// The node takes the learner and the rollouts along, and the published versions go with the last
// of them. Those behind the newest checkpoint, of step 100, must be trained again first.
TEST(LostNode, CostsNothingInAnySchedule_VS1) {
  const Words schedules[] = {kFixedLag, {"async.max_staleness=2"}, {"async.max_staleness=0"}};
  for (const Words& schedule : schedules) {
    SCOPED_TRACE(schedule.front());
    const Home home;
    home.up();
    ASSERT_EQ(home.run(Words{"submit"} + long_job(schedule) + held(home, 125)).code, 0);
    EXPECT_TRUE(both_are_at(home, {}, 120));
    home.lose_node();
    let_go(home);
    EXPECT_TRUE(eventually([&] { return home.json({"get", "nodes"})[0]["state"] == "Lost"; }));
    EXPECT_EQ(home.run({"up"}).code, 0);
    const Finished end = home.run({"wait", kSmallId, "--for", "Succeeded", "--timeout", "90s"});
    EXPECT_EQ(end.code, 0) << end.text() << home.run({"why", kSmallId}).text();
    home.down();
    const json result = home.result_of(kSmallId);
    EXPECT_EQ(result["ledger"]["trained"], kLong * kGroupsPerStep);
    EXPECT_GT(result["ledger"]["retrained"], 0);
    if (schedule == kFixedLag) {
      EXPECT_EQ(result["weights_sha256"], calm_sha());
    }
  }
}

// Twice everything is killed, the controller and each rank at once. The slots of the first steps
// after a checkpoint want the versions before it, which only the checkpoint has then.
TEST_F(FixedLag, AWholeRunThatIsKilledTwiceAndResumedChangesNothing) {
  ASSERT_GT(reference_result()["staleness"]["max"], 0) << "older versions are wanted";
  const Home home;
  const Words kept = job({"learner.save_freq=5", "learner.max_ckpt_to_keep=20"});
  const Words resume{"--resume", home.run_dir(kSmallId).string()};
  run_and_kill(home, kept);
  run_and_kill(home, kept + resume, 30);
  const json result = home.train(kSmallId, kept + resume);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  EXPECT_EQ(sha_of(result), reference());
  for (const char* figure : {"staleness", "logprob_diff", "reward_mean"})
    EXPECT_EQ(result[figure], reference_result()[figure]) << figure;
  EXPECT_EQ(result["tokens"]["trained"], reference_result()["tokens"]["trained"]);
  EXPECT_EQ(journal_value(home.run_dir(kSmallId),
                          "SELECT count(*) FROM journal WHERE kind = 'resumed' AND step >= 10"),
            2);
}

std::vector<json> pids(const Home& home) {
  std::vector<json> all;
  for (const json& actor : home.json({"get", "actors"})) all.push_back(actor["pid"]);
  return all;
}

// The pid of the only node that is Ready; 0 while there is none, or it is `other`.
pid_t agent_other_than(const Home& home, pid_t other) {
  const json node = home.json({"get", "nodes"})[0];
  return node["state"] == "Ready" && node["pid"] != other ? node["pid"].get<pid_t>() : 0;
}

// The lines of `text` that begin with `prefix`, without it.
std::string lines_behind(const std::string& text, const std::string& prefix) {
  std::istringstream in(text);
  std::string chosen;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(prefix)) chosen += line.substr(prefix.size()) + "\n";
  return chosen;
}

// EX-8, AG-3. The controller and the node's agent die in turns. The next ones find the job where it
// was: nobody is started again, and nothing is done twice.
TEST_F(FixedLag, AControllerAndAnAgentThatAreKilledManyTimesChangeNothing) {
  constexpr int kDeaths = 4;
  const Home home;
  home.up();
  const Words kept = job({"rollout.replicas=2"});
  ASSERT_EQ(home.run(Words{"submit"} + kept + held(home, 50)).code, 0);
  const auto step = [&] { return home.json({"get", "jobs", kSmallId})["step"].get<int>(); };
  ASSERT_TRUE(eventually([&] { return step() >= 4; }));
  Process logs = home.start({"logs", "-f", kSmallId}),
          log = home.start({"logs", "-f", "learner/0", "--tail", "1000000"});
  const std::vector<json> actors = pids(home);
  for (int i = 0; i < kDeaths; ++i) {
    const json before = home.address();
    ASSERT_EQ(kill(before["pid"].get<pid_t>(), SIGKILL), 0);
    ASSERT_TRUE(home.next_controller(before["epoch"]));
    int now = step();
    ASSERT_TRUE(eventually([&] { return step() >= std::min(now + 4, 50); })) << i;
    ASSERT_TRUE(eventually([&] { return agent_other_than(home, 0) != 0; }));
    const pid_t dead = agent_other_than(home, 0);
    ASSERT_EQ(kill(dead, SIGKILL), 0);
    ASSERT_TRUE(eventually([&] { return agent_other_than(home, dead) != 0; }));
    now = step();
    ASSERT_TRUE(eventually([&] { return step() >= std::min(now + 4, 50); })) << i;
  }
  EXPECT_EQ(pids(home), actors);
  let_go(home);
  EXPECT_EQ(home.run({"wait", kSmallId, "--for", "Succeeded", "--timeout", "90s"}).code, 0);
  // Whoever follows logs has each line once.
  const std::string one = log.wait().out, all = logs.wait().out;
  const std::string learner = home.run({"logs", "learner/0"}).out;
  EXPECT_NE(learner.find("event=learner_ended"), std::string::npos);
  EXPECT_EQ(one, learner);
  EXPECT_EQ(lines_behind(all, "learner/0 | "), learner);
  home.down();
  const json result = home.result_of(kSmallId);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  EXPECT_EQ(sha_of(result), reference());
  const auto rows = [&](const std::string& where) {
    return journal_value(home.run_dir(kSmallId), "SELECT count(*) FROM journal WHERE " + where);
  };
  EXPECT_EQ(rows("kind = 'followed'"), kDeaths);
  EXPECT_EQ(rows("kind IN ('resumed', 'retrained', 'learner_restarted')"), 0);
  EXPECT_EQ(rows("kind = 'generated'"), rows("kind = 'admitted'")) << "no group twice";
}

// Each actor has one process in all, whatever it does at the moment when a controller dies.
TEST_F(FixedLag, ControllersThatDieWhileTheirJobStartsChangeNothing) {
  for (const int ranks : {1, 2}) {
    const Words gang{"learner.ranks=" + std::to_string(ranks)};
    const Home home;
    home.up();
    ASSERT_EQ(home.run(Words{"submit"} + job(gang) + held(home, 40)).code, 0);
    for (int i = 0; i < 4; ++i) {
      const json before = home.address();
      ASSERT_EQ(kill(before["pid"].get<pid_t>(), SIGKILL), 0);
      ASSERT_TRUE(home.next_controller(before["epoch"]));
      if (i < 2) continue;
      // The last one dies while the job trains.
      const auto step = [&] { return home.json({"get", "jobs", kSmallId})["step"].get<int>(); };
      ASSERT_TRUE(eventually([&] { return step() >= 5; }));
    }
    let_go(home);
    EXPECT_EQ(home.run({"wait", kSmallId, "--for", "Succeeded", "--timeout", "90s"}).code, 0);
    home.down();
    EXPECT_EQ(sha_of(home.result_of(kSmallId)), ranks == 1 ? reference() : trained_sha(gang));
    std::set<std::string> logs;
    for (const auto& log : fs::directory_iterator(home.run_dir(kSmallId) / "logs")) {
      const std::string name = log.path().stem();  // "rollout.0.3"
      EXPECT_TRUE(logs.insert(name.substr(0, name.rfind('.'))).second) << name;
    }
    EXPECT_EQ(std::ssize(logs), 2 + ranks);
    EXPECT_GE(journal_value(home.run_dir(kSmallId),
                            "SELECT count(*) FROM journal WHERE kind = 'followed'"),
              1);
    home.expect_nothing_left();
  }
}

TEST_F(FixedLag, InBf16TwoRolloutsGiveTheWeightsThatOneDoes) {
  const Words bf16{"model.dtype=bfloat16"};
  const json alone = trained(bf16);
  EXPECT_EQ(alone["logprob_diff"]["max_at_staleness_0"], 0.0);
  EXPECT_GT(alone["logprob_diff"]["tokens_at_staleness_0"], 0);
  EXPECT_NE(sha_of(alone), reference());
  EXPECT_EQ(trained_sha(bf16 + kTwoRollouts), sha_of(alone));
}

TEST_F(FixedLag, AnotherSeedGivesOtherWeights) { EXPECT_NE(trained_sha({"seed=18"}), reference()); }

TEST_F(FixedLag, TwoLearnerRanksRepeatThemselves) {
  const Words ranks{"learner.ranks=2", "pools.learner.cpus_per_actor=0.2"};
  EXPECT_EQ(trained_sha(ranks), trained_sha(ranks));
}

// The quickstart's job with fewer steps, on samples that are two versions old. The accuracies are
// of greedy answers to held-out prompts. The run repeats to the bit on one kind of CPU; the limits
// leave room for kinds that round otherwise.
TEST_F(FixedLag, AJobLearnsTheTask) {
  const Home home;
  const json result = home.train(
      kSmallId,
      Words{"configs/arithmetic.yaml"} +
          sets({"async.schedule=fixed_lag", "async.max_staleness=2", "data.train_batch_size=32",
                "learner.total_training_steps=400", "learner.save_freq=0", "learner.test_freq=0"}));
  EXPECT_GE(result["staleness"]["mean"], 1.9) << "the samples are stale";
  EXPECT_LE(result["eval"]["after_warm_start"], 0.75);
  EXPECT_GE(result["eval"]["final"], 0.85);
}

}  // namespace
}  // namespace tandem::e2e
