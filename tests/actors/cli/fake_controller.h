// Plays a controller with two jobs behind a real HTTP server.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/http/http_server.h"
#include "runtime/link/endpoint.h"

namespace tandem::cli {

using nlohmann::json;

inline json actor_json(const std::string& name, const std::string& state) {
  return {{"name", name},
          {"job", name.substr(0, name.find('/'))},
          {"role", "rollout"},
          {"state", state},
          {"reason", state},
          {"message", "because"},
          {"why", json::array({{{"who", name}, {"waits_for", "a lease"}, {"since_s", 1}}})}};
}

inline json job_json(const std::string& id, const std::string& state) {
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
  explicit FakeController(const link::Endpoint& at = {}) {
    auto server = http::HttpServer::listen(
        at, {}, [this](const http::HttpRequest& request) { return answer(request); });
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

  std::vector<std::string> metrics_targets() {
    const std::lock_guard lock(mutex_);
    return metrics_targets_;
  }

  std::vector<std::string> posts() {
    const std::lock_guard lock(mutex_);
    return posts_;
  }

 private:
  http::HttpAnswer answer(const http::HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    const auto& path = request.segments;  // api, v1, kind, name, verb
    if (path[0] == "readyz") return text("ready\n");
    if (request.method == "POST") return post(request);
    if (request.method == "DELETE") return remove(path[3]);
    if (path[2] == "status") return found(status_);
    if (request.query.contains("watch")) return watch();
    if (request.query.contains("follow")) return follow(path[3]);
    if (path.size() == 5 && path[4] == "logs") return logs(path[3], request.target);
    if (path.size() == 6 && path[4] == "logs") return text("recorded " + path[5] + "\n");
    if (path.size() == 5 && path[4] == "samples")
      return found(json::array({{{"prompt", "p"}, {"completion", request.target}}}));
    if (path.size() == 5 && path[4] == "metrics") return metrics(request);
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
    if (request.segments[4] == "cancel")
      actors_ = json::array({actor_json("a-2/rollout/0", "Stopped")});
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

  // Two pages.
  http::HttpAnswer metrics(const http::HttpRequest& request) {
    metrics_targets_.push_back(request.target);
    if (const auto keys = request.query.find("keys");
        keys != request.query.end() && (keys->second.starts_with("zz") ||
                                        (keys->second == "late" && request.query.contains("from"))))
      return found({{"lines", {{{"step", 1}}, {{"step", 2}}}}, {"next", nullptr}});
    if (request.query.contains("after"))
      return found({{"lines", {{{"step", 2}, {"b", 0.5}}}}, {"next", nullptr}});
    return found({{"lines", {{{"step", 1}, {"a", 7}}}}, {"next", "5.1.2.3.0"}});
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
      stream->write(job_json("a-2", "Stopping").dump());
      stream->write(job_json("a-2", "Stopping").dump());
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
  json jobs_ = json::array({job_json("a-1", "Succeeded"), job_json("a-2", "Running")});
  json actors_ =
      json::array({actor_json("a-1/rollout/0", "Stopped"), actor_json("a-2/rollout/0", "Ready"),
                   actor_json("a-2/learner/0", "Busy")});
  json events_ = json::array({{{"seq", 1}, {"kind", "Started"}, {"subject", "a-2/rollout/0"}},
                              {{"seq", 2}, {"kind", "Started"}, {"subject", "a-20"}}});
  // "old-1" is of an earlier controller: only its directory tells of it.
  json runs_ = json::array(
      {job_json("a-2", "Running"),
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
                  {"runs", 12},
                  {"alerts", json::array({{{"name", "TandemNodeLost"},
                                           {"severity", "critical"},
                                           {"message", "1 is lost."},
                                           {"advice", "tandem get nodes"},
                                           {"since_s", 61}}})}};
  json submitted_ = job_json("tiny-3", "Starting");
  std::vector<std::string> posts_, deleted_, states_, metrics_targets_;
  std::unique_ptr<http::HttpServer> server_;  // last: ends before the fields that its handlers use
};

}  // namespace tandem::cli
