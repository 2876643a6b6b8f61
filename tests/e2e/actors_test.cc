// Actors of a user's own on a cluster: asked, scaled, killed, drained and looked into.
#include <gtest/gtest.h>

#include <fstream>

#include "runtime/base/file.h"
#include "runtime/sandbox/probe.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

using nlohmann::json;

// The job file of two counters that begin with 3.
std::string write_job(const Home& home, const std::string& more = "") {
  const auto path = home.path() / "counter.yaml";
  std::ofstream(path) << "name: demo\nactors:\n  counter:\n    command: [" << TANDEM_COUNTER
                      << "]\n    replicas: 2\n    cpus_per_actor: 0.1\n    args: { start: 3 }\n"
                      << more;
  return path.string();
}

class OwnActors : public testing::Test {
 protected:
  Finished ask(const std::string& actor, const std::string& question, const Words& more = {}) {
    return home.run(Words{"ask", actor, question} + more);
  }
  void expect_error(const Finished& done, const std::string& code, const std::string& text) {
    EXPECT_NE(done.code, 0);
    EXPECT_TRUE(done.out.empty()) << done.out;
    EXPECT_NE(done.err.find("error[" + code + "]"), std::string::npos) << done.err;
    EXPECT_NE(done.err.find(text), std::string::npos) << done.err;
  }
  json job() { return home.json({"get", "jobs", "demo-1"}); }

  Home home;
};

TEST_F(OwnActors, AreAskedScaledKilledRestartedAndDrained) {
  home.up();
  const Finished submitted = home.run({"submit", write_job(home)});
  ASSERT_EQ(submitted.code, 0) << submitted.text();
  EXPECT_EQ(submitted.out, "demo-1\n");
  ASSERT_EQ(home.run({"wait", "demo-1", "--for", "Running", "--timeout", "60s"}).code, 0);
  EXPECT_EQ(job()["actors"], (json{{"counter", {{"desired", 2}, {"ready", 2}}}}));
  EXPECT_EQ(job()["trains"], false);

  const Finished first = ask("demo-1/counter/0", R"({"add": 2})");
  EXPECT_EQ(first.code, 0) << first.text();
  EXPECT_EQ(json::parse(first.out), (json{{"total", 5}}));
  EXPECT_EQ(json::parse(ask("counter/0", R"({"add": 1})").out)["total"], 6) << "it keeps its state";
  expect_error(ask("counter/0", R"({"sub": 1})"), "invalid", "there is no message sub");
  expect_error(ask("counter/0", R"({"hold": {}})", {"--timeout", "1s"}), "timed_out",
               "demo-1/counter/0 did not answer within 1 s");
  expect_error(ask("counter/7", "{}"), "not_found", "counter/7");

  EXPECT_EQ(home.run({"scale", "demo-1", "counter=4", "--wait"}).code, 0);
  EXPECT_EQ(home.json({"get", "actors"}).size(), 4u);
  EXPECT_EQ(json::parse(ask("counter/3", R"({"add": 1})").out)["total"], 4);

  // A question that is under way when its actor dies fails by name.
  Process held = home.start({"ask", "counter/1", R"({"hold": {}})", "--timeout", "60s"});
  EXPECT_TRUE(eventually([&] {
    return home.run({"logs", "counter/1"}).out.find("counter_up") != std::string::npos;
  }));
  const json before = actor(home, "counter/1");
  kill_rank(before);
  expect_error(held.wait(), "unreachable", "demo-1/counter/1");
  EXPECT_TRUE(eventually([&] {
    const json now = actor(home, "counter/1");
    return now["state"] == "Ready" && now["incarnation"] > before["incarnation"];
  })) << actor(home, "counter/1");
  EXPECT_EQ(actor(home, "counter/1")["restarts"], 1);
  EXPECT_EQ(json::parse(ask("counter/1", R"({"add": 1})").out)["total"], 4) << "a fresh state";
  EXPECT_NE(home.run({"logs", "counter/1", "--previous"}).out.find("counter_up"),
            std::string::npos);
  EXPECT_EQ(home.run({"why", "demo-1"}).code, 0);
  EXPECT_NE(home.run({"describe", "actors/counter/1"}).out.find("SIGKILL"), std::string::npos);
  EXPECT_NE(home.run({"top"}).out.find("demo-1"), std::string::npos);

  EXPECT_EQ(home.run({"scale", "demo-1", "counter=1", "--wait"}).code, 0);
  EXPECT_TRUE(eventually([&] { return home.json({"get", "actors"}).size() == 1; }));
  expect_error(home.run({"scale", "demo-1", "rollout=2"}), "invalid", "no such role");
  EXPECT_EQ(home.run({"cancel", "demo-1"}).code, 0);
  EXPECT_EQ(job()["state"], "Cancelled");
  const json result = home.result_of("demo-1");
  EXPECT_EQ(result["state"], "Cancelled");
  EXPECT_EQ(result["actors"]["counter"]["actors"], 1);
  home.down();
  home.expect_nothing_left();
}

// Killed and stopped; a stopped one is killed by the node that keeps it.
TEST_F(OwnActors, OutliveTheirControllerWithTheirState) {
  home.up();
  ASSERT_EQ(home.run({"submit", write_job(home)}).code, 0);
  ASSERT_EQ(home.run({"wait", "demo-1", "--for", "Running", "--timeout", "60s"}).code, 0);
  const json before = home.json({"get", "actors"});
  const json node = home.json({"get", "nodes"})[0];
  EXPECT_TRUE(ask("counter/0", R"({"end": 0})").code != 0);
  Process watcher = home.start({"wait", "demo-1", "--for", "Succeeded", "--timeout", "90s"});
  int total = 3;
  for (const int signal : {SIGKILL, SIGKILL, SIGSTOP}) {
    const json controller = home.address();
    EXPECT_EQ(json::parse(ask("counter/1", R"({"add": 1})").out)["total"], ++total);
    ASSERT_EQ(kill(controller["pid"].get<pid_t>(), signal), 0);
    const Finished meanwhile = home.run({"get", "actors"});
    EXPECT_EQ(meanwhile.code, 0) << "it waits for the next one: " << meanwhile.err;
    ASSERT_TRUE(home.next_controller(controller["epoch"])) << signal;
    ASSERT_EQ(home.run({"wait", "demo-1", "--for", "Running", "--timeout", "60s"}).code, 0);
    EXPECT_EQ(home.address()["control_socket"], controller["control_socket"]);
    // Its actors' links may be up before its agent's is.
    EXPECT_TRUE(eventually([&] { return home.json({"get", "nodes"})[0]["pid"] == node["pid"]; }));
    const json now = actor(home, "counter/1");
    EXPECT_EQ(now["pid"], before[1]["pid"]) << now;
    EXPECT_EQ(now["restarts"], 0) << now;
    EXPECT_EQ(actor(home, "counter/0")["reason"], "Finished") << "it is not started again";
  }
  EXPECT_NE(home.run({"events"}).out.find("outlived its controller"), std::string::npos);
  EXPECT_NE(ask("counter/1", R"({"end": 0})").code, 0);
  EXPECT_EQ(watcher.wait().code, 0) << watcher.err();
  EXPECT_EQ(home.result_of("demo-1")["actors"]["counter"]["finished"], 2);
  home.down();
  home.expect_nothing_left();
}

// The link works, nothing else does; what was reached is shown; and the end is that of any actor.
TEST_F(OwnActors, InASandboxReachTheirControllerAlone_CG1) {
  const auto layers = sandbox::probe_layers();
  if (layers.namespaces == sandbox::Namespaces::kNone) GTEST_SKIP() << sandbox::text(layers);
  home.up();
  ASSERT_EQ(home.run({"submit", write_job(home, "    sandbox: auto\n  open:\n    command: [" +
                                                    std::string(TANDEM_COUNTER) +
                                                    "]\n    args: { start: 0 }\n")})
                .code,
            0);
  ASSERT_EQ(home.run({"wait", "demo-1", "--for", "Running", "--timeout", "60s"}).code, 0);
  EXPECT_EQ(json::parse(ask("counter/0", R"({"add": 2})").out)["total"], 5);
  const std::string look = json{{"look", home.path().string()}}.dump();
  EXPECT_EQ(json::parse(ask("counter/0", look).out)["total"], 0);
  EXPECT_EQ(json::parse(ask("counter/0", R"({"call": {}})").out)["total"], 0);
  EXPECT_EQ(actor(home, "counter/0")["sandbox"], "auto: " + sandbox::text(layers));
  EXPECT_NE(home.run({"describe", "actors/counter/0"}).out.find("sandbox: "), std::string::npos);

  const json before = actor(home, "counter/0");
  const json controller = home.address();
  ASSERT_EQ(kill(controller["pid"].get<pid_t>(), SIGKILL), 0);
  ASSERT_TRUE(home.next_controller(controller["epoch"]));
  ASSERT_EQ(home.run({"wait", "demo-1", "--for", "Running", "--timeout", "60s"}).code, 0);
  EXPECT_EQ(json::parse(ask("counter/0", R"({"add": 1})").out)["total"], 6) << "it keeps its state";
  EXPECT_EQ(actor(home, "counter/0")["pid"], before["pid"]);
  kill_rank(before);
  EXPECT_TRUE(eventually([&] {
    const json now = actor(home, "counter/0");
    return now["state"] == "Ready" && now["incarnation"] > before["incarnation"];
  })) << actor(home, "counter/0");
  EXPECT_EQ(json::parse(ask("counter/0", R"({"add": 1})").out)["total"], 4) << "a fresh state";
  EXPECT_EQ(home.run({"scale", "demo-1", "counter=1", "--wait"}).code, 0);
  expect_error(ask("counter/0", R"({"end": 0})"), "unreachable", "ended with code 0");
  EXPECT_TRUE(eventually([&] { return actor(home, "counter/0")["reason"] == "Finished"; }));

  EXPECT_EQ(actor(home, "open/0")["sandbox"], json());
  EXPECT_GT(json::parse(ask("open/0", look).out)["total"], 0) << "without a sandbox it sees all";
  EXPECT_EQ(json::parse(ask("open/0", R"({"call": {}})").out)["total"], 1);
  EXPECT_EQ(home.run({"cancel", "demo-1"}).code, 0);
  home.down();
  home.expect_nothing_left();
}

TEST_F(OwnActors, AJobSucceedsWhenAllHaveEndedWithZero) {
  Process run = home.start({"run", write_job(home)});
  ASSERT_TRUE(run.said("TANDEM_ADDRESS="));
  const std::string said = run.err();
  const std::size_t begin = said.find("TANDEM_ADDRESS=") + 15;
  const std::string address = said.substr(begin, said.find('\n', begin) - begin);
  const Words there{"--address", address};
  ASSERT_TRUE(eventually([&] {
    return home.run(Words{"wait", "demo-1", "--for", "Running"} + there).code == 0;
  }));
  for (const char* counter : {"counter/0", "counter/1"})
    expect_error(ask(counter, R"({"end": 0})", there), "unreachable", "ended with code 0");
  const Finished done = run.wait();
  EXPECT_EQ(done.code, 0) << done.text();
  EXPECT_NE(done.out.find("demo-1 Succeeded in"), std::string::npos) << done.out;
  EXPECT_EQ(home.result_of("demo-1")["actors"]["counter"]["finished"], 2);
  home.expect_nothing_left();
}

TEST_F(OwnActors, AJobThatWasCancelledIsResumed) {
  home.up();
  ASSERT_EQ(home.run({"submit", write_job(home)}).code, 0);
  ASSERT_EQ(home.run({"wait", "demo-1", "--for", "Running", "--timeout", "60s"}).code, 0);
  EXPECT_NE(home.run({"submit", "--resume", "demo-1"}).code, 0) << "it is running";
  const Finished cancelled = home.run({"cancel", "demo-1"});
  EXPECT_NE(cancelled.err.find("tandem submit --resume"), std::string::npos) << cancelled.text();
  EXPECT_EQ(home.result_of("demo-1")["state"], "Cancelled");

  const Finished resumed = home.run({"submit", "--resume", "demo-1"});
  ASSERT_EQ(resumed.code, 0) << resumed.text();
  EXPECT_EQ(resumed.out, "demo-1\n");
  ASSERT_EQ(home.run({"wait", "demo-1", "--for", "Running", "--timeout", "60s"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(home.run_dir("demo-1") / "result.json"));
  EXPECT_TRUE(std::filesystem::exists(home.run_dir("demo-1") / "result.json.1"));
  for (const char* counter : {"counter/0", "counter/1"})
    expect_error(ask(counter, R"({"end": 0})"), "unreachable", "ended with code 0");
  ASSERT_EQ(home.run({"wait", "demo-1", "--for", "Succeeded", "--timeout", "60s"}).code, 0);
  EXPECT_EQ(home.result_of("demo-1")["actors"]["counter"]["finished"], 2);

  // A `tandem run` resumes it too, and a run of actors has nothing to replay.
  EXPECT_NE(home.run({"replay", "demo-1"}).err.find("has trained"), std::string::npos);
  home.down();
  Process again = home.start({"run", "--resume", "demo-1", "--set", "actors.counter.replicas=1"});
  ASSERT_TRUE(again.said("TANDEM_ADDRESS="));
  again.signal(SIGINT);
  const Finished stopped = again.wait();
  EXPECT_NE(stopped.err.find("tandem run --resume"), std::string::npos) << stopped.text();
  home.expect_nothing_left();
}

TEST_F(OwnActors, AMissingProgramIsRefusedWithItsPlace) {
  const Finished done = home.run({"run", write_job(home, "  other: { command: [./missing] }\n")});
  EXPECT_NE(done.code, 0);
  EXPECT_NE(done.err.find("named by `actors.other.command`"), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("counter.yaml:8:12"), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("chmod +x"), std::string::npos) << done.err;
  const Finished dry = home.run({"run", write_job(home), "--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.text();
  EXPECT_NE(dry.out.find("counter: 2 actor(s) of 1 rank(s)"), std::string::npos) << dry.out;
}

}  // namespace
}  // namespace tandem::e2e
