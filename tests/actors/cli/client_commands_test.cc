// The client's commands against a real HTTP server that plays a controller with one job.
#include "actors/cli/client_commands.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>

#include "actors/cli/client_program.h"
#include "actors/cli/command_line.h"
#include "actors/cli/complete_command.h"
#include "actors/job/print_job.h"
#include "runtime/base/file.h"
#include "runtime/http/http_server.h"
#include "tests/actors/cli/command_outcome.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

json actor(const std::string& name, const std::string& state) {
  return {{"name", name},
          {"job", name.substr(0, name.find('/'))},
          {"role", "rollout"},
          {"state", state},
          {"reason", state},
          {"message", "because"},
          {"why", json::array({{{"who", name}, {"waits_for", "a lease"}, {"since_s", 1}}})}};
}

json job(const std::string& id, const std::string& state) {
  return {{"id", id},
          {"name", id.substr(0, id.rfind('-'))},
          {"state", state},
          {"reason", state == "Failed" ? "JobFailed" : ""},
          {"message", state == "Failed" ? "the learner ran out of restarts" : ""},
          {"actors", {{"rollout", {{"desired", 1}, {"ready", 1}}}}}};
}

// The state of the played controller. A POST changes its last job as the real controller does.
class FakeController {
 public:
  FakeController() {
    auto server = http::HttpServer::listen(
        {}, {}, [this](const http::HttpRequest& request) { return answer(request); });
    EXPECT_TRUE(server) << render(server.error());
    server_ = std::move(*server);
  }

  std::string address() const { return link::to_string(server_->endpoint()); }

  void set_jobs(json jobs) {
    const std::lock_guard lock(mutex_);
    jobs_ = std::move(jobs);
  }

  void set_runs(json runs) {
    const std::lock_guard lock(mutex_);
    runs_ = std::move(runs);
  }

  void set_actors(json actors) {
    const std::lock_guard lock(mutex_);
    actors_ = std::move(actors);
  }

  // Sets the object that answers the next submission of a job.
  void set_submitted(json submitted) {
    const std::lock_guard lock(mutex_);
    submitted_ = std::move(submitted);
  }

  // Each look at an actor takes the first of these states; the last one stays.
  void set_states_of_actors(std::vector<std::string> states) {
    const std::lock_guard lock(mutex_);
    states_ = std::move(states);
  }

  std::vector<std::string> deleted() {
    const std::lock_guard lock(mutex_);
    return deleted_;
  }

  std::vector<std::string> posts() {
    const std::lock_guard lock(mutex_);
    return posts_;
  }

 private:
  http::HttpAnswer answer(const http::HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    const auto& path = request.segments;  // api, v1, kind, name, verb
    if (request.method == "POST") return post(request);
    if (request.method == "DELETE") return remove(path[3]);
    if (path[2] == "status") return found(status_);
    if (request.query.contains("watch")) return watch();
    if (request.query.contains("follow")) return follow(path[3]);
    if (path.size() == 5 && path[4] == "logs") return logs(path[3], request.target);
    if (path.size() == 6 && path[4] == "logs") return text("recorded " + path[5] + "\n");
    if (path.size() == 5 && path[4] == "samples")
      return found(json::array({{{"prompt", "p"}, {"completion", request.target}}}));
    const json list = path[2] == "jobs"     ? jobs_
                      : path[2] == "actors" ? actors_
                      : path[2] == "events" ? events_
                      : path[2] == "runs"   ? runs_
                                            : json::array();
    if (path.size() == 3) return found(list);
    for (json item : list) {
      if (item.value("id", item.value("name", "")) != path[3]) continue;
      if (path[2] == "actors" && !states_.empty()) {
        item["state"] = states_.front();
        if (states_.size() > 1) states_.erase(states_.begin());
      }
      return found(item);
    }
    return http::error_response(404, {ErrorCode::kNotFound, "no " + path[3], "", "look again"});
  }

  http::HttpAnswer post(const http::HttpRequest& request) {
    posts_.push_back(request.target + " " + request.body);
    if (request.segments.size() == 3) {
      jobs_.push_back(submitted_);
      return found(jobs_.back());
    }
    json& target = jobs_.back();
    const json body = parse_json(request.body);
    if (request.segments[4] == "cancel") target["state"] = "Cancelled";
    for (const auto& [role, count] : body.items()) {
      if (count == 99)
        return http::error_response({.code = ErrorCode::kInfeasible,
                                     .message = "too many",
                                     .help = "at most 4",
                                     .further = {{"too few", "reward", "at least 1"}},
                                     .further_left_out = 2});
      target["actors"][role] = {{"desired", count}, {"ready", count}};
    }
    if (request.segments[4] == "cancel") actors_ = json::array({actor("a-2/rollout/0", "Stopped")});
    return found(json::object());
  }

  // Two actors of a-1 have lines with times, which alternate.
  static http::HttpAnswer logs(const std::string& actor, const std::string& target) {
    if (actor == "a-1/rollout/0")
      return text("2026-01-01T10:00:01.000Z I r1\n2026-01-01T10:00:03.000Z I r3\n  more of r3\n");
    if (actor == "a-1/learner/0") return text("2026-01-01T10:00:02.000Z I \x1b[2Jl2\n");
    if (actor == "a-2/learner/0") return text("\x1b]0;owned\x07\tred\n" + target);
    if (actor == "a-1/reward/0")
      return http::error_response({ErrorCode::kNotFound, "no log yet", "", ""});
    return text("one\ntwo\n" + target + "\n");
  }

  http::HttpAnswer remove(const std::string& run) {
    deleted_.push_back(run);
    if (run == "a-2")
      return http::error_response({ErrorCode::kInvalid, "a-2 lives", "", "tandem cancel a-2"});
    for (auto it = runs_.begin(); it != runs_.end(); ++it)
      if ((*it)["id"] == run) {
        runs_.erase(it);
        return found(json::object());
      }
    return http::error_response({ErrorCode::kNotFound, "there is no run " + run, "", ""});
  }

  static http::HttpAnswer watch() {
    return http::HttpStreaming{.start = [](std::shared_ptr<http::HttpStream> stream) {
      stream->write(job("a-2", "Stopping").dump());
      stream->write(job("a-2", "Stopping").dump());
      stream->close();
    }};
  }

  static http::HttpAnswer follow(const std::string& actor) {
    return http::HttpStreaming{.content_type = "text/plain",
                               .start = [actor](std::shared_ptr<http::HttpStream> stream) {
                                 stream->write("\x1b[2Jlog of " + actor);
                                 stream->close();
                               }};
  }

  static http::HttpAnswer found(const json& body) {
    return http::HttpResponse{.status = 200, .body = body.dump()};
  }
  static http::HttpAnswer text(std::string body) {
    return http::HttpResponse{.status = 200, .content_type = "text/plain", .body = std::move(body)};
  }

  std::mutex mutex_;
  json jobs_ = json::array({job("a-1", "Succeeded"), job("a-2", "Running")});
  json actors_ = json::array({actor("a-1/rollout/0", "Stopped"), actor("a-2/rollout/0", "Ready"),
                              actor("a-2/learner/0", "Busy")});
  json events_ = json::array({{{"seq", 1}, {"kind", "Started"}, {"subject", "a-2/rollout/0"}},
                              {{"seq", 2}, {"kind", "Started"}, {"subject", "a-20"}}});
  // "old-1" is of an earlier controller: only its directory tells of it.
  json runs_ = json::array(
      {job("a-2", "Running"),
       {{"id", "old-1"},
        {"name", "old"},
        {"state", "Succeeded"},
        {"step", 20},
        {"total_steps", 20},
        {"reward_mean", 0.5},
        {"eval_final", 0.75},
        {"wall_seconds", 80},
        {"created", 1'700'000'000'000},
        {"actors", json::array({{{"name", "old-1/rollout/0"}, {"state", "Stopped"}},
                                {{"name", "old-1/learner/0"}, {"state", "Stopped"}}})}}});
  json status_ = {{"version", "9.9"},
                  {"pid", 4711},
                  {"epoch", 3},
                  {"home", "/home/u/.tandem"},
                  {"http", "127.0.0.1:7422"},
                  {"started", 1'700'000'000'000},
                  {"nodes", {{"ready", 1}, {"lost", 1}}},
                  {"jobs", {{"Running", 1}, {"Failed", 2}, {"Queued", 0}}},
                  {"runs", 12}};
  json submitted_ = job("tiny-3", "Starting");
  std::vector<std::string> posts_, deleted_, states_;
  std::unique_ptr<http::HttpServer> server_;  // last: ends before the fields that its handlers use
};

class ClientCommands : public ::testing::Test {
 protected:
  Outcome run(std::vector<const char*> arguments, bool terminal = false) {
    arguments.push_back("--address");
    arguments.push_back(address_.c_str());
    return cli::run(std::move(arguments), terminal);
  }

  FakeController controller_;
  std::string address_ = controller_.address();
};

TEST_F(ClientCommands, GetListsAndNamesOne) {
  EXPECT_EQ(run({"get", "jobs", "-o", "name"}).out, "jobs/a-1\njobs/a-2\n");
  EXPECT_EQ(parse_json(run({"get", "actors", "-o", "json"}).out).size(), 3u);
  EXPECT_EQ(run({"get", "nodes", "-o", "json"}).out, "[]\n");
  EXPECT_EQ(parse_json(run({"get", "actors/a-2/rollout/0", "-o", "json"}).out)["state"], "Ready");
  EXPECT_EQ(run({"get", "actors", "-j", "a-1", "-o", "name"}).out, "actors/a-1/rollout/0\n");
  EXPECT_EQ(parse_json(run({"events", "-j", "a-2", "-o", "json"}).out).size(), 1u);
}

TEST_F(ClientCommands, ShortNamesMustBeUnique) {
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
  controller_.set_jobs(json::array({job("a-1", "Running"), job("a-2", "Running")}));
  EXPECT_EQ(run({"get", "jobs", "a"}).code, ErrorCode::kInvalid);
}

TEST_F(ClientCommands, NotFoundIsSaidWithTheNearestName) {
  const Outcome none = run({"describe", "jobs/a-3"});
  EXPECT_EQ(exit_code(none.code), 3);
  EXPECT_EQ(none.help, "did you mean `a-1`?");
  EXPECT_EQ(run({"logs", "a-9/rollout/7"}).code, ErrorCode::kNotFound);
  EXPECT_EQ(run({"why", "nobody"}).code, ErrorCode::kNotFound);
  EXPECT_EQ(run({"get", "nodes/vm"}).message, "no vm");
}

TEST_F(ClientCommands, WhyTakesAJobOrAnActor) {
  EXPECT_NE(run({"why", "a-2"}).out.find("a-2 is Running"), std::string::npos);
  EXPECT_NE(run({"why", "learner/0"}).out.find("a lease"), std::string::npos);
  EXPECT_EQ(parse_json(run({"why", "learner/0", "-o", "json"}).out).size(), 1u);
  EXPECT_EQ(run({"why", "a-2", "-o", "json"}).out, "[]\n");
}

TEST_F(ClientCommands, DescribeShowsOnlyItsOwnEvents) {
  const std::string text = run({"describe", "jobs", "a-2"}).out;
  EXPECT_NE(text.find("a-2/rollout/0"), std::string::npos) << text;
  EXPECT_EQ(text.find("a-20"), std::string::npos) << text;
}

TEST_F(ClientCommands, ScalePostsTheRolesAndWaitsUntilTheyAreReady) {
  EXPECT_TRUE(run({"scale", "a-2", "rollout=2"}).ok);
  EXPECT_EQ(controller_.posts().back(), "/api/v1/jobs/a-2/scale {\"rollout\":2}");
  EXPECT_TRUE(run({"scale", "a", "rollout=3", "reward=2", "--wait"}).ok);
  const Outcome refused = run({"scale", "a-2", "rollout=99"});
  EXPECT_EQ(exit_code(refused.code), 2);
  EXPECT_EQ(refused.shown,
            "error[infeasible]: too many\n  help: at most 4\n"
            "error[infeasible]: too few\n  --> reward\n  help: at least 1\nand 2 more errors");
}

TEST_F(ClientCommands, CancelReturnsWhenNothingRuns) {
  EXPECT_TRUE(run({"cancel", "a-2"}).ok);
  EXPECT_EQ(parse_json(run({"get", "jobs/a-2", "-o", "json"}).out)["state"], "Cancelled");
}

TEST_F(ClientCommands, WaitEndsWithTheStateOrTheReason) {
  EXPECT_TRUE(run({"wait", "a-2", "--for", "Running"}).ok);
  EXPECT_TRUE(run({"wait", "a-2", "--for", "WarmStart"}).ok) << "a later state will do";
  const Outcome late = run({"wait", "a-2", "--for", "Succeeded", "--timeout", "0"});
  EXPECT_EQ(exit_code(late.code), 5);
  controller_.set_jobs(json::array({job("a-2", "Failed")}));
  const Outcome failed = run({"wait", "a-2", "--for", "Running"});
  EXPECT_EQ(exit_code(failed.code), 1);
  EXPECT_NE(failed.message.find("out of restarts"), std::string::npos);
  EXPECT_TRUE(run({"wait", "a-2", "--for", "Failed"}).ok);
}

TEST_F(ClientCommands, WaitFailsWhereTheJobHasEndedInAnotherState) {
  for (const char* wanted : {"Failed", "Cancelled", "Running", "Stopping"}) {
    const Outcome other = run({"wait", "a-1", "--for", wanted});
    EXPECT_FALSE(other.ok) << wanted;
    EXPECT_EQ(exit_code(other.code), 1) << wanted;
    EXPECT_NE(other.message.find("it is Succeeded, not " + std::string(wanted)), std::string::npos)
        << other.message;
  }
  EXPECT_TRUE(run({"wait", "a-1", "--for", "Succeeded"}).ok);
}

TEST_F(ClientCommands, LogsAskForWhatWasAsked) {
  EXPECT_EQ(run({"logs", "a-2/rollout/0"}).out,
            "one\ntwo\n/api/v1/actors/a-2%2Frollout%2F0/logs\n");
  EXPECT_NE(run({"logs", "learner/0", "-p"}).out.find("?previous=1"), std::string::npos);
  EXPECT_NE(run({"logs", "learner/0", "-f"}).out.find("a-2/learner/0"), std::string::npos);
  EXPECT_EQ(parse_json(run({"get", "events", "a-20", "-o", "json"}).out)[0]["seq"], 2);
}

TEST_F(ClientCommands, LogsTakeAnEndATimeAndAnEndedRun) {
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

TEST_F(ClientCommands, LogsOfAJobAreThoseOfItsActorsInTheOrderOfTheirTimes) {
  controller_.set_actors(
      json::array({actor("a-1/rollout/0", "Stopped"), actor("a-1/learner/0", "Stopped"),
                   actor("a-1/reward/0", "Queued")}));
  EXPECT_EQ(run({"logs", "a-1"}).out,
            "rollout/0 | 2026-01-01T10:00:01.000Z I r1\n"
            "learner/0 | 2026-01-01T10:00:02.000Z I \x1b[2Jl2\n"
            "rollout/0 | 2026-01-01T10:00:03.000Z I r3\n"
            "rollout/0 |   more of r3\n");
  const std::string old = run({"logs", "old"}).out;
  EXPECT_EQ(old, "rollout/0 | recorded rollout/0\nlearner/0 | recorded learner/0\n");
}

TEST_F(ClientCommands, FollowingAJobEndsWithItsActors) {
  controller_.set_jobs(json::array({job("a-1", "Succeeded"), job("a-2", "Failed")}));
  std::istringstream lines(run({"logs", "a-2", "-f"}).out);
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  EXPECT_EQ(all, (std::vector<std::string>{"learner/0 | \x1b[2Jlog of a-2/learner/0",
                                           "rollout/0 | \x1b[2Jlog of a-2/rollout/0"}));
}

TEST_F(ClientCommands, RunsOfEarlierControllersAreListedAndDescribed) {
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

TEST_F(ClientCommands, DeleteRemovesOneEndedRun) {
  EXPECT_EQ(run({"delete", "run/old-1"}).out, "run/old-1 deleted\n");
  EXPECT_EQ(controller_.deleted(), std::vector<std::string>{"old-1"});
  const Outcome alive = run({"delete", "run", "a-2"});
  EXPECT_EQ(alive.code, ErrorCode::kInvalid);
  EXPECT_EQ(alive.help, "tandem cancel a-2");
  const Outcome none = run({"delete", "run/a-3"});
  EXPECT_EQ(none.code, ErrorCode::kNotFound);
  EXPECT_EQ(none.help, "did you mean `a-2`?");
}

TEST_F(ClientCommands, StatusIsAPageOrJson) {
  const std::string page = run({"status"}).out;
  for (const char* part : {"http://127.0.0.1:7422", "pid 4711", "version 9.9", "/home/u/.tandem",
                           "1 lost, 1 ready", "2 Failed, 1 Running", "12"})
    EXPECT_NE(page.find(part), std::string::npos) << part << "\n" << page;
  EXPECT_EQ(page.find("Queued"), std::string::npos);
  EXPECT_EQ(parse_json(run({"status", "-o", "json"}).out)["runs"], 12);
}

TEST_F(ClientCommands, ListsAreSortedByAnyField) {
  EXPECT_EQ(run({"get", "actors", "--sort-by", "name", "-o", "name"}).out,
            "actors/a-1/rollout/0\nactors/a-2/learner/0\nactors/a-2/rollout/0\n");
  EXPECT_EQ(run({"get", "jobs", "--sort-by", "-id", "-o", "name"}).out, "jobs/a-2\njobs/a-1\n");
  const Outcome unknown = run({"get", "jobs", "--sort-by", "stat"});
  EXPECT_EQ(unknown.code, ErrorCode::kInvalid);
  EXPECT_EQ(unknown.help, "did you mean `state`?");
}

TEST_F(ClientCommands, TablesHideActorsThatHaveEnded) {
  EXPECT_EQ(run({"get", "actors"}).out.find("a-1/rollout/0"), std::string::npos);
  EXPECT_NE(run({"get", "actors"}).out.find("a-2/rollout/0"), std::string::npos);
  EXPECT_NE(run({"get", "actors", "--all"}).out.find("a-1/rollout/0"), std::string::npos);
  EXPECT_NE(run({"get", "actors/a-1/rollout/0"}).out.find("a-1/rollout/0"), std::string::npos);
  EXPECT_EQ(run({"get", "actors", "-j", "a-1"}).out,
            "no actor runs; ended: 1, which --all shows\n");
  EXPECT_NE(run({"get", "jobs"}).out.find("a-1"), std::string::npos);
}

TEST_F(ClientCommands, CompletionOffersWhatThereIs) {
  const auto words = [&](const char* names) {
    std::string all;
    for (const std::string& word : completion_words(names, address_)) all += word + " ";
    return all;
  };
  EXPECT_EQ(words("jobs"), "a-1 a-2 ");
  EXPECT_EQ(words("live"), "a-2 ") << "a-1 has ended, and `cancel` is of no use to it";
  EXPECT_EQ(words("records"), "a-1 a-2 old-1 ");
  EXPECT_EQ(words("runs/"), "runs/a-2 runs/old-1 ");
  EXPECT_EQ(words("targets"), "a-1 a-1/rollout/0 a-2 a-2/learner/0 a-2/rollout/0 old-1 ");
  EXPECT_NE(words("objects").find("actors/a-2/learner/0 "), std::string::npos);
  EXPECT_NE(words("sets").find("rollout.n= "), std::string::npos);
  EXPECT_NE(words("keys").find("async "), std::string::npos);
  EXPECT_EQ(words("nonsense"), "");
  controller_.set_jobs(json::array({job("$(reboot)-1", "Running"), job("b-1", "Running")}));
  EXPECT_EQ(words("jobs"), "b-1 ") << "a shell would carry the other one out";
}

TEST_F(ClientCommands, CompletionOffersTheActorsOfPastRuns) {
  const job::JobFolder folder;
  folder.write("logs/learner.0.1.log", "");
  controller_.set_runs(json::array({{{"id", "past-1"}, {"run_dir", folder.root()}}}));
  for (const auto& [names, word] :
       {std::pair("logs", "past-1/learner/0"), std::pair("known_actors", "past-1/learner/0"),
        std::pair("objects", "actors/past-1/learner/0")})
    EXPECT_EQ(std::ranges::count(completion_words(names, address_), word), 1) << names;
}

TEST_F(ClientCommands, WhyOfARunThatHasEndedSaysHow) {
  const Outcome why = run({"why", "old-1"});
  EXPECT_TRUE(why.ok) << why.message;
  EXPECT_TRUE(why.out.starts_with("old-1 is ")) << why.out;
}

TEST_F(ClientCommands, LogsSteerNoTerminalAndKeepTheirBytesInAPipe) {
  EXPECT_TRUE(run({"logs", "learner/0"}).out.starts_with("\x1b]0;owned\x07\tred\n"));
  EXPECT_TRUE(run({"logs", "learner/0"}, true).out.starts_with("\\u001b]0;owned\\u0007\tred\n"));
  EXPECT_EQ(run({"logs", "learner/0", "-f"}).out, "\x1b[2Jlog of a-2/learner/0\n");
  EXPECT_EQ(run({"logs", "learner/0", "-f"}, true).out, "\\u001b[2Jlog of a-2/learner/0\n");
  controller_.set_jobs(json::array({job("a-1", "Succeeded"), job("a-2", "Failed")}));
  EXPECT_EQ(run({"logs", "a-2", "-f"}, true).out.find('\x1b'), std::string::npos);
  controller_.set_actors(json::array({actor("a-1/learner/0", "Stopped")}));
  EXPECT_EQ(run({"logs", "a-1"}, true).out,
            "learner/0 | 2026-01-01T10:00:02.000Z I \\u001b[2Jl2\n");
}

TEST_F(ClientCommands, WatchingAPipePrintsALineForEachChange) {
  std::istringstream lines(run({"get", "jobs", "-w", "-o", "json"}).out);
  std::vector<json> states;
  for (std::string line; std::getline(lines, line);) states.push_back(parse_json(line)["state"]);
  EXPECT_EQ(states, (std::vector<json>{"Succeeded", "Running", "Stopping"}));
}

TEST_F(ClientCommands, TopPrintsOneFrameOffATerminal) {
  const std::string frame = run({"top"}).out;
  EXPECT_NE(frame.find("a-2/learner/0"), std::string::npos);
  EXPECT_EQ(frame.find("a-1"), std::string::npos) << "it has ended";
  EXPECT_EQ(frame.find('\x1b'), std::string::npos);
}

TEST_F(ClientCommands, SubmitSendsTheEffectiveJob) {
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

TEST_F(ClientCommands, AQueuedJobIsToldWhateverItWaitsFor) {
  const job::JobFolder folder;
  folder.write("job.yaml", folder.minimal());
  const std::string path = folder.root() / "job.yaml";
  for (const char* const reason : {"WaitingForCapacity", "WaitingForJobs"}) {
    json queued = job("tiny-3", "Queued");
    queued["reason"] = reason;
    queued["message"] = "1 jobs are queued before it";
    controller_.set_submitted(queued);
    const Outcome submitted = run({"submit", path.c_str()});
    EXPECT_EQ(submitted.code, ErrorCode::kInfeasible) << reason;
    EXPECT_NE(submitted.err.find("1 jobs are queued before it"), std::string::npos)
        << submitted.err;
  }
}

TEST_F(ClientCommands, SubmitWaitEndsWithTheSummaryOfThisRunAlone) {
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  folder.write("runs/old-1/journal.sqlite", "");
  folder.write("runs/old-1/job.yaml", print_job(folder.full()));
  json ended = job("old-1", "Failed");
  ended["began"] = false;  // it was refused before it went on with the run
  controller_.set_submitted(ended);
  json run_of_old{{"id", "old-1"}, {"name", "old"}, {"result", {{"state", "Succeeded"}}}};
  controller_.set_runs(json::array({run_of_old}));
  const Outcome refused = run({"submit", "--wait", "--resume", "old-1"});
  EXPECT_EQ(refused.code, ErrorCode::kFailed);
  EXPECT_EQ(refused.err.find("Succeeded"), std::string::npos)
      << "that is the result of the run before: " << refused.err;
  controller_.set_runs(json::array({{{"id", "tiny-3"}, {"result", {{"state", "Succeeded"}}}}}));
  controller_.set_submitted(job("tiny-3", "Succeeded"));
  folder.write("job.yaml", folder.minimal());
  const std::string path = folder.root() / "job.yaml";
  const Outcome done = run({"submit", "--wait", path.c_str()});
  EXPECT_TRUE(done.ok) << done.message;
  EXPECT_EQ(done.out, "tiny-3\n");
  EXPECT_NE(done.err.find("tiny-3 Succeeded in"), std::string::npos) << done.err;
}

TEST_F(ClientCommands, AskWaitsUntilTheActorIsReady) {
  controller_.set_states_of_actors({"Placing", "Initializing", "Ready"});
  const Outcome asked = run({"ask", "a-2/rollout/0", "{}"});
  EXPECT_NE(asked.err.find("a-2/rollout/0 is Placing: because; it is asked once it is Ready"),
            std::string::npos)
      << asked.err;
  EXPECT_TRUE(controller_.posts().back().starts_with("/api/v1/actors/")) << "it was asked";
  controller_.set_states_of_actors({"Ready"});
  EXPECT_EQ(run({"ask", "a-2/rollout/0", "{}"}).err, "");
}

TEST_F(ClientCommands, SubmitTakesUpARunWithItsOwnJobFile) {
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

TEST_F(ClientCommands, SamplesAreAskedOfTheController) {
  EXPECT_NE(run({"samples", "a-2", "--step", "3", "--failed", "--limit", "5"})
                .out.find("/jobs/a-2/samples?eval=0&failed=1&step=3&limit=5"),
            std::string::npos);
}

TEST(Client, TheFileOfTheControllerGivesItsAddress) {
  FakeController controller;
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  const auto lock = FileLock::take(folder.root() / "controller.lock", "the state", "");
  ASSERT_TRUE(lock);
  folder.write("controller.json", json{{"http", controller.address()}}.dump());
  EXPECT_TRUE(run({"get", "jobs"}).ok);
  ASSERT_EQ(::setenv("TANDEM_ADDRESS", "127.0.0.1:1", 1), 0);
  EXPECT_EQ(run({"get", "jobs"}).code, ErrorCode::kUnreachable);
  ASSERT_EQ(::unsetenv("TANDEM_ADDRESS"), 0);
}

}  // namespace
}  // namespace tandem::cli
