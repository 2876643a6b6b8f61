// The client's verbs against a controller that this test plays.
#include "actors/cli/verbs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "actors/job/print_job.h"
#include "tests/actors/cli/command_outcome.h"
#include "tests/actors/cli/fake_controller.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::cli {
namespace {

class ClientVerbs : public ::testing::Test {
 protected:
  Outcome run(std::vector<const char*> arguments, bool terminal = false) {
    arguments.push_back("--address");
    arguments.push_back(address_.c_str());
    return cli::run(arguments, {.terminal = terminal});
  }

  FakeController controller_;
  std::string address_ = controller_.address();
};

TEST_F(ClientVerbs, GetListsAndNamesOne) {
  for (const auto& words : {std::vector<const char*>{"get", "jobs"}, {"jobs"}, {"get", "job"}}) {
    std::vector<const char*> names = words;
    names.insert(names.end(), {"-o", "name"});
    EXPECT_EQ(run(names).out, "jobs/a-1\njobs/a-2\n");
  }
  EXPECT_EQ(parse_json(run({"get", "actors", "-o", "json"}).out).size(), 3u);
  EXPECT_EQ(run({"get", "nodes", "-o", "json"}).out, "[]\n");
  EXPECT_EQ(parse_json(run({"get", "actors/a-2/rollout/0", "-o", "json"}).out)["state"], "Ready");
  EXPECT_EQ(run({"get", "actors", "-j", "a-1", "-o", "name"}).out, "actors/a-1/rollout/0\n");
  EXPECT_EQ(parse_json(run({"events", "-j", "a-2", "-o", "json"}).out).size(), 1u);
}

TEST_F(ClientVerbs, ShortNamesMustBeUnique) {
  EXPECT_EQ(parse_json(run({"get", "actors", "learner/0", "-o", "json"}).out)["name"],
            "a-2/learner/0");
  const Outcome two = run({"get", "actors", "rollout/0"});
  EXPECT_EQ(two.code, ErrorCode::kInvalid);
  EXPECT_NE(two.help.find("-j JOB"), std::string::npos);
  EXPECT_EQ(run({"get", "actors", "rollout/0", "-j", "a-1", "-o", "name"}).out,
            "actors/a-1/rollout/0\n");
  EXPECT_EQ(run({"get", "actors", "a/rollout/0", "-o", "name"}).out, "actors/a-2/rollout/0\n")
      << "a job's name means its run that has not ended";
  // One of two jobs of that name runs, and is the one that is meant.
  EXPECT_EQ(run({"get", "jobs", "a", "-o", "name"}).out, "jobs/a-2\n");
  controller_.set_jobs(json::array({job_json("a-1", "Running"), job_json("a-2", "Running")}));
  EXPECT_EQ(run({"get", "jobs", "a"}).code, ErrorCode::kInvalid);
}

TEST_F(ClientVerbs, NotFoundIsSaidWithTheNearestName) {
  const Outcome none = run({"describe", "jobs/a-3"});
  EXPECT_EQ(exit_code(none.code), 3);
  EXPECT_EQ(none.help, "did you mean `a-1`?");
  EXPECT_EQ(run({"logs", "a-9/rollout/7"}).code, ErrorCode::kNotFound);
  EXPECT_EQ(run({"why", "nobody"}).code, ErrorCode::kNotFound);
  EXPECT_EQ(run({"get", "nodes/vm"}).message, "no vm");
}

TEST_F(ClientVerbs, WhyTakesAJobOrAnActor) {
  EXPECT_NE(run({"why", "a-2"}).out.find("a-2 is Running"), std::string::npos);
  EXPECT_NE(run({"why", "learner/0"}).out.find("a lease"), std::string::npos);
  EXPECT_EQ(parse_json(run({"why", "learner/0", "-o", "json"}).out).size(), 1u);
  EXPECT_EQ(run({"why", "a-2", "-o", "json"}).out, "[]\n");
}

TEST_F(ClientVerbs, DescribeShowsOnlyItsOwnEvents) {
  const std::string text = run({"describe", "jobs", "a-2"}).out;
  EXPECT_NE(text.find("a-2/rollout/0"), std::string::npos) << text;
  EXPECT_EQ(text.find("a-20"), std::string::npos) << text;
}

TEST_F(ClientVerbs, ScalePostsTheRolesAndWaitsUntilTheyAreReady) {
  EXPECT_TRUE(run({"scale", "a-2", "rollout=2"}).ok);
  EXPECT_EQ(controller_.posts().back(), "/api/v1/jobs/a-2/scale {\"rollout\":2}");
  const Outcome waited = run({"scale", "a", "rollout=3", "reward=2", "--wait"});
  EXPECT_TRUE(waited.ok) << waited.message;
  EXPECT_NE(waited.err.find("waiting until they are Ready"), std::string::npos) << waited.err;
  EXPECT_EQ(controller_.posts().back(), "/api/v1/jobs/a-2/scale {\"reward\":2,\"rollout\":3}");
  EXPECT_TRUE(run({"scale", "a-2", "counter=0"}).ok);
  EXPECT_EQ(controller_.posts().back(), "/api/v1/jobs/a-2/scale {\"counter\":0}");
  EXPECT_TRUE(run({"scale", "a-2", "rollout=auto"}).ok);
  EXPECT_EQ(controller_.posts().back(), "/api/v1/jobs/a-2/scale {\"rollout\":\"auto\"}");
  EXPECT_TRUE(run({"scale", "a-2", "--rollback"}).ok);
  EXPECT_EQ(controller_.posts().back(), "/api/v1/jobs/a-2/scale {\"rollback\":true}");
  const Outcome refused = run({"scale", "a-2", "rollout=99"});
  EXPECT_EQ(exit_code(refused.code), 2);
  EXPECT_EQ(refused.shown,
            "error[infeasible]: too many\n  help: at most 4\n"
            "error[infeasible]: too few\n  --> reward\n  help: at least 1\nand 2 more errors");
}

TEST_F(ClientVerbs, CancelReturnsWhenNothingRuns) {
  EXPECT_TRUE(run({"cancel", "a-2"}).ok);
  EXPECT_EQ(parse_json(run({"get", "jobs/a-2", "-o", "json"}).out)["state"], "Cancelled");
}

TEST_F(ClientVerbs, WaitEndsWithTheStateOrTheReason) {
  EXPECT_TRUE(run({"wait", "a-2", "--for", "Running"}).ok);
  EXPECT_TRUE(run({"wait", "a-2", "--for", "warmstart"}).ok) << "a later state will do";
  const Outcome late = run({"wait", "a-2", "--for", "Succeeded", "--timeout", "0"});
  EXPECT_EQ(exit_code(late.code), 5);
  controller_.set_jobs(json::array({job_json("a-2", "Failed")}));
  const Outcome failed = run({"wait", "a-2", "--for", "Running"});
  EXPECT_EQ(exit_code(failed.code), 1);
  EXPECT_NE(failed.message.find("out of restarts"), std::string::npos);
  EXPECT_TRUE(run({"wait", "a-2", "--for", "Failed"}).ok);
}

TEST_F(ClientVerbs, WaitFailsWhereTheJobHasEndedInAnotherState) {
  for (const char* wanted : {"Failed", "Cancelled", "Running", "Stopping"}) {
    const Outcome other = run({"wait", "a-1", "--for", wanted});
    EXPECT_FALSE(other.ok) << wanted;
    EXPECT_EQ(exit_code(other.code), 1) << wanted;
    EXPECT_NE(other.message.find("it is Succeeded, not " + std::string(wanted)), std::string::npos)
        << other.message;
  }
  EXPECT_TRUE(run({"wait", "a-1", "--for", "Succeeded"}).ok);
}

TEST_F(ClientVerbs, LogsAskForWhatWasAsked) {
  EXPECT_EQ(run({"logs", "a-2/rollout/0"}).out,
            "one\ntwo\n/api/v1/actors/a-2%2Frollout%2F0/logs\n");
  EXPECT_NE(run({"logs", "learner/0", "-p"}).out.find("?previous=1"), std::string::npos);
  EXPECT_NE(run({"logs", "learner/0", "-f"}).out.find("a-2/learner/0"), std::string::npos);
  EXPECT_EQ(parse_json(run({"get", "events", "a-20", "-o", "json"}).out)[0]["seq"], 2);
}

TEST_F(ClientVerbs, LogsTakeAnEndATimeAndAnEndedRun) {
  EXPECT_EQ(run({"logs", "a-2/rollout/0", "--tail", "5", "--since", "2m"}).out,
            "one\ntwo\n/api/v1/actors/a-2%2Frollout%2F0/logs?tail=5&since=120\n");
  EXPECT_EQ(run({"logs", "old-1/rollout/0"}).out, "recorded rollout/0\n");
  EXPECT_EQ(run({"logs", "rollout/0", "-j", "old"}).out, "recorded rollout/0\n");
  EXPECT_EQ(run({"logs", "old-1/rollout/0", "-f"}).out, "recorded rollout/0\n");
  EXPECT_EQ(run({"logs", "old-1/rollout/0", "-p"}).code, ErrorCode::kInvalid);
  const Outcome none = run({"logs", "old-1/rollout/7"});
  EXPECT_EQ(none.code, ErrorCode::kNotFound);
  EXPECT_NE(none.help.find("old-1/rollout/0"), std::string::npos) << none.help;
}

TEST_F(ClientVerbs, LogsOfAJobAreThoseOfItsActorsInTheOrderOfTheirTimes) {
  controller_.set_actors(
      json::array({actor_json("a-1/rollout/0", "Stopped"), actor_json("a-1/learner/0", "Stopped"),
                   actor_json("a-1/reward/0", "Queued")}));
  EXPECT_EQ(run({"logs", "a-1"}).out,
            "rollout/0 | 2026-01-01T10:00:01.000Z I r1\n"
            "learner/0 | 2026-01-01T10:00:02.000Z I \x1b[2Jl2\n"
            "rollout/0 | 2026-01-01T10:00:03.000Z I r3\n"
            "rollout/0 |   more of r3\n");
  const std::string old = run({"logs", "old"}).out;
  EXPECT_EQ(old, "rollout/0 | recorded rollout/0\nlearner/0 | recorded learner/0\n");
}

TEST_F(ClientVerbs, FollowingAJobEndsWithItsActors) {
  controller_.set_jobs(json::array({job_json("a-1", "Succeeded"), job_json("a-2", "Failed")}));
  std::istringstream lines(run({"logs", "a-2", "-f"}).out);
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  EXPECT_EQ(all, (std::vector<std::string>{"learner/0 | \x1b[2Jlog of a-2/learner/0",
                                           "rollout/0 | \x1b[2Jlog of a-2/rollout/0"}));
}

TEST_F(ClientVerbs, RunsOfEarlierControllersAreListedAndDescribed) {
  EXPECT_EQ(run({"get", "runs", "-o", "name"}).out, "runs/a-2\nruns/old-1\n");
  const std::string table = run({"get", "runs"}).out;
  for (const char* part : {"RUN", "EVAL", "0.750", "20/20", "1m20s", "2023-11-1"})
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  EXPECT_EQ(parse_json(run({"get", "run/old", "-o", "json"}).out)["id"], "old-1");
  for (const char* object : {"run/old-1", "job/old-1", "job/old"})
    EXPECT_NE(run({"describe", object}).out.find("runs/old-1"), std::string::npos) << object;
  EXPECT_NE(run({"describe", "actor/old-1/rollout/0"}).out.find("old-1/rollout/0"),
            std::string::npos);
  EXPECT_NE(run({"describe", "job/a-1"}).out.find("jobs/a-1"), std::string::npos);
  EXPECT_NE(run({"samples", "old"}).out.find("/jobs/old-1/samples"), std::string::npos);
  EXPECT_EQ(run({"events", "-j", "old", "-o", "json"}).out, "[]\n");
  EXPECT_EQ(run({"get", "runs", "-w"}).code, ErrorCode::kInvalid) << "the API has no such stream";
  EXPECT_EQ(run({"describe", "run/odl-1"}).help, "did you mean `old-1`?");
  EXPECT_EQ(run({"scale", "old-1", "rollout=2"}).code, ErrorCode::kNotFound) << "it has ended";
}

TEST_F(ClientVerbs, DeleteRemovesOneEndedRun) {
  EXPECT_EQ(run({"delete", "run/old-1"}).out, "run/old-1 deleted\n");
  EXPECT_EQ(controller_.deleted(), std::vector<std::string>{"old-1"});
  const Outcome alive = run({"delete", "run", "a-2"});
  EXPECT_EQ(alive.code, ErrorCode::kInvalid);
  EXPECT_EQ(alive.help, "tandem cancel a-2");
  const Outcome none = run({"delete", "run/a-3"});
  EXPECT_EQ(none.code, ErrorCode::kNotFound);
  EXPECT_EQ(none.help, "did you mean `a-2`?");
}

TEST_F(ClientVerbs, StatusIsAPageOrJson) {
  const std::string page = run({"status"}).out;
  for (const char* part : {"http://127.0.0.1:7422", "pid 4711", "version 9.9", "/home/u/.tandem",
                           "1 lost, 1 ready", "2 Failed, 1 Running", "12", "alerts      1",
                           "critical TandemNodeLost for 1m01s: 1 is lost.\n  tandem get nodes\n"})
    EXPECT_NE(page.find(part), std::string::npos) << part << "\n" << page;
  EXPECT_EQ(page.find("Queued"), std::string::npos);
  EXPECT_EQ(parse_json(run({"status", "-o", "json"}).out)["runs"], 12);
}

TEST_F(ClientVerbs, ListsAreSortedByAnyField) {
  EXPECT_EQ(run({"get", "actors", "--sort-by", "name", "-o", "name"}).out,
            "actors/a-1/rollout/0\nactors/a-2/learner/0\nactors/a-2/rollout/0\n");
  EXPECT_EQ(run({"get", "jobs", "--sort-by", "-id", "-o", "name"}).out, "jobs/a-2\njobs/a-1\n");
  const Outcome unknown = run({"get", "jobs", "--sort-by", "stat"});
  EXPECT_EQ(unknown.code, ErrorCode::kInvalid);
  EXPECT_EQ(unknown.help, "did you mean `state`?");
}

TEST_F(ClientVerbs, TablesHideActorsThatHaveEnded) {
  EXPECT_EQ(run({"get", "actors"}).out.find("a-1/rollout/0"), std::string::npos);
  EXPECT_NE(run({"get", "actors"}).out.find("a-2/rollout/0"), std::string::npos);
  EXPECT_NE(run({"get", "actors", "--all"}).out.find("a-1/rollout/0"), std::string::npos);
  EXPECT_NE(run({"get", "actors/a-1/rollout/0"}).out.find("a-1/rollout/0"), std::string::npos);
  EXPECT_EQ(run({"get", "actors", "-j", "a-1"}).out,
            "no actor runs; ended: 1, which --all shows\n");
  EXPECT_NE(run({"get", "jobs"}).out.find("a-1"), std::string::npos);
}

TEST_F(ClientVerbs, WhyOfARunThatHasEndedSaysHow) {
  const Outcome why = run({"why", "old-1"});
  EXPECT_TRUE(why.ok) << why.message;
  EXPECT_TRUE(why.out.starts_with("old-1 is ")) << why.out;
}

TEST_F(ClientVerbs, LogsSteerNoTerminalAndKeepTheirBytesInAPipe) {
  EXPECT_TRUE(run({"logs", "learner/0"}).out.starts_with("\x1b]0;owned\x07\tred\n"));
  EXPECT_TRUE(run({"logs", "learner/0"}, true).out.starts_with("\\u001b]0;owned\\u0007\tred\n"));
  EXPECT_EQ(run({"logs", "learner/0", "-f"}).out, "\x1b[2Jlog of a-2/learner/0\n");
  EXPECT_EQ(run({"logs", "learner/0", "-f"}, true).out, "\\u001b[2Jlog of a-2/learner/0\n");
  controller_.set_jobs(json::array({job_json("a-1", "Succeeded"), job_json("a-2", "Failed")}));
  EXPECT_EQ(run({"logs", "a-2", "-f"}, true).out.find('\x1b'), std::string::npos);
  controller_.set_actors(json::array({actor_json("a-1/learner/0", "Stopped")}));
  EXPECT_EQ(run({"logs", "a-1"}, true).out,
            "learner/0 | 2026-01-01T10:00:02.000Z I \\u001b[2Jl2\n");
}

TEST_F(ClientVerbs, WatchingAPipePrintsALineForEachChange) {
  std::istringstream lines(run({"get", "jobs", "-w", "-o", "json"}).out);
  std::vector<json> states;
  for (std::string line; std::getline(lines, line);) states.push_back(parse_json(line)["state"]);
  EXPECT_EQ(states, (std::vector<json>{"Succeeded", "Running", "Stopping"}));
}

TEST_F(ClientVerbs, TopPrintsOneFrameOffATerminal) {
  const std::string frame = run({"top"}).out;
  EXPECT_NE(frame.find("a-2/learner/0"), std::string::npos);
  EXPECT_EQ(frame.find("a-1"), std::string::npos) << "it has ended";
  EXPECT_EQ(frame.find('\x1b'), std::string::npos);
}

TEST_F(ClientVerbs, SubmitSendsTheEffectiveJob) {
  const job::JobFolder folder;
  folder.write("job.yaml", folder.minimal());
  const std::string path = folder.root() / "job.yaml";
  const Outcome submitted = run({"submit", path.c_str(), "--set", "rollout.n=4"});
  EXPECT_TRUE(submitted.ok) << submitted.message;
  EXPECT_EQ(submitted.out, "tiny-3\n");
  const std::string post = controller_.posts().back();
  EXPECT_NE(post.find("  n: 4\n"), std::string::npos);
  const auto sent = job::parse_job({.yaml = std::string_view(post).substr(post.find(' ') + 1),
                                    .origin = "request body",
                                    .base = "/",
                                    .set_base = "/"});
  ASSERT_TRUE(sent) << render(sent.error());
  EXPECT_EQ(sent->spec.model.path, folder.root() / "models/tiny");
  EXPECT_EQ(run({"submit", path.c_str(), "--set", "rollout.n=0"}).code, ErrorCode::kInvalid);
}

TEST_F(ClientVerbs, AQueuedJobIsToldWhateverItWaitsFor) {
  const job::JobFolder folder;
  folder.write("job.yaml", folder.minimal());
  const std::string path = folder.root() / "job.yaml";
  for (const char* const reason : {"WaitingForCapacity", "WaitingForJobs"}) {
    json queued = job_json("tiny-3", "Queued");
    queued["reason"] = reason;
    queued["message"] = "1 jobs are queued before it";
    controller_.set_submitted(queued);
    const Outcome submitted = run({"submit", path.c_str()});
    EXPECT_EQ(submitted.code, ErrorCode::kInfeasible) << reason;
    EXPECT_NE(submitted.err.find("1 jobs are queued before it"), std::string::npos)
        << submitted.err;
  }
}

TEST_F(ClientVerbs, SubmitWaitEndsWithTheSummaryOfThisRunAlone) {
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  folder.write("runs/old-1/journal.sqlite", "");
  folder.write("runs/old-1/job.yaml", print_job(folder.full()));
  json ended = job_json("old-1", "Failed");
  ended["began"] = false;  // it was refused before it went on with the run
  controller_.set_submitted(ended);
  json run_of_old{{"id", "old-1"}, {"name", "old"}, {"result", {{"state", "Succeeded"}}}};
  controller_.set_runs(json::array({run_of_old}));
  const Outcome refused = run({"submit", "--wait", "--resume", "old-1"});
  EXPECT_EQ(refused.code, ErrorCode::kFailed);
  EXPECT_EQ(refused.err.find("Succeeded"), std::string::npos)
      << "that is the result of the run before: " << refused.err;
  controller_.set_runs(json::array({{{"id", "tiny-3"}, {"result", {{"state", "Succeeded"}}}}}));
  controller_.set_submitted(job_json("tiny-3", "Succeeded"));
  folder.write("job.yaml", folder.minimal());
  const std::string path = folder.root() / "job.yaml";
  const Outcome done = run({"submit", "--wait", path.c_str()});
  EXPECT_TRUE(done.ok) << done.message;
  EXPECT_EQ(done.out, "tiny-3\n");
  EXPECT_NE(done.err.find("tiny-3 Succeeded in"), std::string::npos) << done.err;
}

TEST_F(ClientVerbs, AskWaitsUntilTheActorIsReady) {
  controller_.set_states_of_actors({"Placing", "Initializing", "Ready"});
  const Outcome asked = run({"ask", "a-2/rollout/0", "{}"});
  EXPECT_NE(asked.err.find("a-2/rollout/0 is Placing: because; it is asked once it is Ready"),
            std::string::npos)
      << asked.err;
  EXPECT_TRUE(controller_.posts().back().starts_with("/api/v1/actors/")) << "it was asked";
  controller_.set_states_of_actors({"Ready"});
  EXPECT_EQ(run({"ask", "a-2/rollout/0", R"({"add": 2})", "--timeout", "1m"}).err, "");
  EXPECT_EQ(controller_.posts().back(),
            "/api/v1/actors/a-2%2Frollout%2F0/ask?timeout_s=60 {\"add\": 2}");
}

TEST_F(ClientVerbs, SubmitTakesUpARunWithItsOwnJobFile) {
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  folder.write("runs/tiny-1/journal.sqlite", "");
  job::JobSpec kept = folder.full();
  kept.rollout.n = 4;
  folder.write("runs/tiny-1/job.yaml", print_job(kept));
  const std::filesystem::path run_dir = folder.root() / "runs/tiny-1";
  for (const std::string& named : {std::string("tiny-1"), run_dir.string()}) {
    const Outcome resumed = run({"submit", "--resume", named.c_str(), "--set", "seed=3"});
    EXPECT_TRUE(resumed.ok) << resumed.message;
    const std::string post = controller_.posts().back();
    EXPECT_TRUE(post.starts_with("/api/v1/jobs?resume=" + url_escape(run_dir.string()) + " "))
        << post;
    EXPECT_NE(post.find("  n: 4\n"), std::string::npos) << post;
    EXPECT_NE(post.find("seed: 3\n"), std::string::npos) << post;
  }
  EXPECT_EQ(exit_code(run({"submit", "--resume", "tiny-2"}).code), 1);
}

TEST_F(ClientVerbs, SamplesAreAskedOfTheController) {
  EXPECT_NE(run({"samples", "a-2", "--step", "3", "--failed", "--limit", "5"})
                .out.find("/jobs/a-2/samples?eval=0&failed=1&step=3&limit=5"),
            std::string::npos);
  EXPECT_NE(run({"samples", "a-2", "--step", "0", "--eval"}).out.find("?eval=1&step=0"),
            std::string::npos);
}

TEST_F(ClientVerbs, MetricsAreAskedOfTheControllerPageByPage) {
  const Outcome csv = run({"metrics", "old", "--keys", "b*", "--keys", "a,x", "--steps", "2:9"});
  EXPECT_EQ(csv.out, "step,a,b\n1,7,\n2,,0.5\n") << csv.message;
  EXPECT_EQ(controller_.metrics_targets(),
            (std::vector<std::string>{
                "/api/v1/jobs/old-1/metrics?keys=b%2A%2Ca%2Cx&from=2&to=9",
                "/api/v1/jobs/old-1/metrics?keys=b%2A%2Ca%2Cx&from=2&to=9&after=5.1.2.3.0"}));
  EXPECT_NE(run({"metrics", "old", "-o", "parquet"}, /*terminal=*/true).help.find("> metrics.parq"),
            std::string::npos);
  // A script plays DuckDB.
  const job::JobFolder folder;
  folder.write("duckdb", "#!/bin/sh\n/bin/cat\n");
  std::filesystem::permissions(folder.root() / "duckdb", std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", folder.root().c_str(), 1);
  const Outcome parquet = run({"metrics", "old", "-o", "parquet"});
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(parquet.out, csv.out) << parquet.message;
  for (const char* wrong : {"x", "1:x", ":", "3:2", "1:2:3", ""}) {
    const std::vector<const char*> words = {"metrics", "old", "--steps", wrong};
    EXPECT_FALSE(parse_command_line(words, client_verbs)) << wrong;
  }
}

// A table of steps alone is no answer to a question for figures.
TEST_F(ClientVerbs, MetricsThatNoKeyMatchesAreNotFound) {
  const Outcome none = run({"metrics", "old", "--keys", "zza", "--keys", "zz*b"});
  EXPECT_FALSE(none.ok);
  EXPECT_EQ(none.code, ErrorCode::kNotFound);
  EXPECT_EQ(none.message, "no figure of the run matches `zza`, `zz*b`");
  EXPECT_EQ(none.out, "");
  const Outcome near = run({"metrics", "old", "--keys", "zz"});
  EXPECT_EQ(near.help, "`tandem metrics old -o table` lists all of them");
  EXPECT_FALSE(run({"metrics", "old", "--keys", "zz", "--steps", "1:2"}).ok);
}

TEST_F(ClientVerbs, MetricsOfOtherStepsAreANote) {
  const Outcome none = run({"metrics", "old", "--keys", "late", "--steps", "1:2"});
  EXPECT_TRUE(none.ok) << none.message;
  EXPECT_EQ(none.err, "note: the run has no such figures in these steps\n");
  EXPECT_EQ(none.out, "step\n1\n2\n");
}

TEST_F(ClientVerbs, ASweepIsARunPerValueInOneGroup) {
  const job::JobFolder folder;
  folder.write("job.yaml", folder.minimal());
  const std::string path = folder.root() / "job.yaml";
  controller_.set_submitted(job_json("tiny-3", "Starting"));
  const Outcome done = run({"submit", path.c_str(), "--sweep", "seed=5,6"});
  EXPECT_TRUE(done.ok) << done.message;
  EXPECT_EQ(done.out, "tiny-3\ntiny-3\n");
  EXPECT_NE(done.err.find("--group tiny-sweep-20"), std::string::npos) << done.err;
  const auto posts = controller_.posts();
  ASSERT_EQ(posts.size(), 2U);
  EXPECT_NE(posts[0].find("seed: 5\n"), std::string::npos) << posts[0];
  EXPECT_NE(posts[1].find("run_name: \"tiny seed=6\"\n"), std::string::npos) << posts[1];
  const auto group = [](const std::string& post) {
    const std::size_t at = post.find("group: tiny-sweep-");
    return at == std::string::npos ? "none" : post.substr(at, post.find('\n', at) - at);
  };
  EXPECT_EQ(group(posts[0]), group(posts[1]));
  EXPECT_NE(group(posts[0]), "none");
  // One wrong value, and nothing is submitted.
  EXPECT_FALSE(run({"submit", path.c_str(), "--sweep", "seed=7,x"}).ok);
  EXPECT_EQ(controller_.posts().size(), 2U);
  for (const char* option : {"--sweep", "--set"}) {
    const std::vector<const char*> both = {"submit", "--resume", "tiny-1", option, "seed=1,2"};
    EXPECT_FALSE(parse_command_line(both, client_verbs)) << option;
  }
  // --set of a number can mean nothing else.
  EXPECT_EQ(run({"submit", path.c_str(), "--set", "seed=7,8"}).out, "tiny-3\ntiny-3\n");
  ASSERT_EQ(controller_.posts().size(), 4U);
  EXPECT_NE(controller_.posts()[3].find("run_name: \"tiny seed=8\"\n"), std::string::npos);
}

TEST_F(ClientVerbs, RunsAreFoundByTheirGroupAndTags) {
  const auto labelled = [](const char* id, const char* group, std::vector<std::string> tags) {
    return json({{"id", id}, {"name", id}, {"group", group}, {"tags", tags}});
  };
  controller_.set_runs(json::array(
      {labelled("a-1", "g", {"x"}), labelled("a-2", "g", {"x", "y"}), labelled("a-3", "", {"y"})}));
  const auto names = [this](std::vector<const char*> words) {
    words.insert(words.begin(), {"get", "runs", "-o", "name"});
    return run(words).out;
  };
  EXPECT_EQ(names({"--group", "g"}), "runs/a-1\nruns/a-2\n");
  EXPECT_EQ(names({"--tag", "y"}), "runs/a-2\nruns/a-3\n");
  EXPECT_EQ(names({"--tag", "y", "--tag", "x", "--group", "g"}), "runs/a-2\n");
  EXPECT_EQ(names({"--group", "none"}), "");
  EXPECT_NE(run({"get", "runs", "-o", "wide"}).out.find("x,y"), std::string::npos);
  EXPECT_EQ(exit_code(run({"get", "jobs", "--group", "g"}).code), 64);
}

}  // namespace
}  // namespace tandem::cli
