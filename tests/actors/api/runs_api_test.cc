// The HTTP API's routes of runs, asked without a socket: a controller on real threads, and run
// directories that the test makes.
#include "actors/api/runs_api.h"

#include <condition_variable>
#include <mutex>

#include "actors/api/http_api.h"
#include "actors/runs/cluster_journal.h"
#include "actors/runs/run_files.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/sqlite/sqlite.h"
#include "tests/actors/api/described_api.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Collects the lines of a stream until it is closed.
class CollectedStream final : public http::HttpStream {
 public:
  bool write(std::string line) override {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_all();
    return !closed_;
  }
  void close() override {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  std::size_t unsent_bytes() const override { return 0; }
  bool open() const override {
    const std::lock_guard lock(mutex_);
    return !closed_;
  }
  // Waits until `count` lines are there; false where it is closed before that.
  bool wait_for_lines(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return lines_.size() >= count || closed_; }) &&
           lines_.size() >= count;
  }
  bool wait_for_close() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return closed_; });
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  static constexpr std::chrono::seconds kDeadline{60};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
  bool closed_ = false;
};

class RunsApiTest : public testing::Test {
 protected:
  RunsApiTest() {
    controller::ControllerActions actions;
    actions.expect = [](const std::string&, const node::RankId&) {};
    actions.agent = [](const std::string&, Incarnation) { return actor::Ref<node::AgentInbox>(); };
    actions.rank = [](const node::RankId&) { return actor::Ref<messages::RankInbox>(); };
    actions.make_run_directory =
        [this](const controller::JobShape& shape) -> Result<controller::RunDirectory> {
      const std::string id = shape.name + "-1";
      return controller::RunDirectory{id, folder_.run(id).string()};
    };
    actions.write_result = [](const controller::JobRecord&, const std::string&) -> Result<void> {
      return {};
    };
    actions.close_exchange = [](const std::string&) {};
    actions.remember = [](std::span<const controller::DurableEvent>) { return Result<void>(); };
    actions.journal = [](const runs::ClusterEvent&) -> Result<void> { return {}; };
    actions.events_before = 41;
    controller_ = system_.spawn<controller::Controller>(
        "controller", [actions] { return std::make_unique<controller::Controller>(1, actions); });
    handler_ = described(make_http_handler(
        {.controller = controller_,
         .shape_of = [](const SubmittedJob& job) -> Result<controller::JobShape> {
           return shape_of(job.yaml);
         },
         .home = folder_.home,
         .read_job = {[](const std::string&, const fs::path&) {
                        return std::optional<runs::JobFacts>();
                      },
                      [](const std::string& yaml, const fs::path&) -> Result<runs::JobKeys> {
                        if (yaml.empty()) return Error{ErrorCode::kInvalid, "no job"};
                        return runs::JobKeys{{"name", yaml}, {"rollout.n", "8"}};
                      }},
         .identity =
             [] {
               return ClusterIdentity{"0.1.0", 3, 99, "127.0.0.1:7422", 5};
             },
         .make_page_key = [] { return std::string("key"); },
         .system = system_}));
  }
  ~RunsApiTest() override { executor_.stop(); }

  static controller::JobShape shape_of(const std::string& name) {
    controller::JobShape shape{
        .name = name,
        .replicas = {{messages::Role::kRollout, 1}, {messages::Role::kReward, 1}},
        .total_steps = 10};
    for (const messages::Role& role : messages::kTrainingRoles)
      shape.per_rank[role] = scheduler::resources({.cpus = 1});
    return shape;
  }
  http::HttpAnswer ask(const std::string& method, const std::string& target,
                       const std::string& body = "") const {
    http::HttpRequest request{.method = method, .body = body};
    EXPECT_TRUE(http::split_target(target, request)) << target;
    return handler_(request);
  }
  http::HttpResponse response(const std::string& target, const std::string& method = "GET",
                              const std::string& body = "") const {
    auto answer = ask(method, target, body);
    auto* whole = std::get_if<http::HttpResponse>(&answer);
    EXPECT_NE(whole, nullptr) << target;
    return whole ? std::move(*whole) : http::HttpResponse{.status = 0};
  }
  json got(const std::string& target) const {
    const auto answer = response("/api/v1" + target);
    EXPECT_EQ(answer.status, 200) << target << ": " << answer.body;
    return parse_json(answer.body);
  }
  std::shared_ptr<CollectedStream> stream(const std::string& target) const {
    auto answer = ask("GET", "/api/v1" + target);
    auto collected = std::make_shared<CollectedStream>();
    if (auto* streaming = std::get_if<http::HttpStreaming>(&answer))
      streaming->start(collected);
    else
      ADD_FAILURE() << target << " is no stream";
    return collected;
  }
  // Waits for room that never comes: no node is there.
  std::string submit(const std::string& name) const {
    const auto answer = response("/api/v1/jobs", "POST", name);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return parse_json(answer.body).value("id", "");
  }

  const runs::RunFolder folder_;
  actor::ThreadedExecutor executor_{2, 1};
  actor::System system_{executor_, {}};
  actor::Ref<controller::Controller::Inbox> controller_;
  http::HttpHandler handler_;
};

TEST_F(RunsApiTest, RunsOfAllControllersAreListed) {
  EXPECT_EQ(got("/runs"), json::array());
  const fs::path old = folder_.run("old-1");
  folder_.append(old / "result.json", R"({"state":"Succeeded","steps":10})");
  folder_.append(old / "logs/rollout.0.4.log", "text\n");
  const json runs = got("/runs");
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0]["state"], "Succeeded");
  EXPECT_EQ(runs[0]["live"], false);
  const json one = got("/runs/old");
  EXPECT_EQ(one["id"], "old-1");
  EXPECT_EQ(one["result"]["steps"], 10);
  EXPECT_EQ(one["actors"], json::parse(R"([{"name":"rollout/0","incarnations":[4]}])"));
  EXPECT_EQ(response("/api/v1/runs/none").status, 404);
  EXPECT_EQ(response("/api/v1/runs/old-1/nonsense").status, 404);
  for (const char* const watched : {"/api/v1/runs?watch=1", "/api/v1/runs/old-1?watch"}) {
    const auto refused = response(watched);
    EXPECT_EQ(refused.status, 400);
    EXPECT_NE(refused.body.find("/api/v1/jobs?watch=1"), std::string::npos) << refused.body;
  }
}

TEST_F(RunsApiTest, TheConfigurationOfARunIsItsJobFilesKeys) {
  folder_.append(folder_.run("old-1") / "job.yaml", "old");
  EXPECT_EQ(
      got("/runs/old/config").dump(),
      R"({"config":[{"key":"name","value":"old"},{"key":"rollout.n","value":"8"}],"id":"old-1"})");
  folder_.replace(folder_.run("old-1") / "job.yaml", "");
  EXPECT_EQ(response("/api/v1/runs/old-1/config").status, 400);
  fs::remove(folder_.run("old-1") / "job.yaml");
  const auto none = response("/api/v1/runs/old-1/config");
  EXPECT_EQ(none.status, 404);
  EXPECT_NE(none.body.find("no job file"), std::string::npos) << none.body;
}

TEST_F(RunsApiTest, MetricsAreBucketsOfTheKeysThatAreAskedFor) {
  const fs::path run = folder_.run("old-1");
  for (int step = 1; step <= 1000; ++step)
    folder_.append(run / "metrics.jsonl", R"({"step":)" + std::to_string(step) + R"(,"a/b":)" +
                                              std::to_string(step % 10) + ",\"c\":null}\n");
  const json all = got("/runs/old-1/metrics");
  EXPECT_EQ(all["keys"], json::array({"a/b"}));
  EXPECT_EQ(all["step_min"], 1);
  EXPECT_EQ(all["step_max"], 1000);
  EXPECT_EQ(all["live"], false);
  EXPECT_TRUE(all["series"].empty());
  const json some = got("/runs/old-1/metrics?keys=a%2Fb,none&from=101&to=200&points=5");
  EXPECT_EQ(some["series"]["a/b"]["steps"], json::array({101, 121, 141, 161, 181}));
  EXPECT_EQ(some["series"]["a/b"]["min"], json::array({0.0, 0.0, 0.0, 0.0, 0.0}));
  EXPECT_EQ(some["series"]["a/b"]["max"], json::array({9.0, 9.0, 9.0, 9.0, 9.0}));
  EXPECT_TRUE(some["series"]["none"]["steps"].empty());
  EXPECT_TRUE(fs::exists(run / "metrics.index"));
  for (const char* const wrong : {"points=0", "points=5001", "points=x", "from=-2", "to=1e9"})
    EXPECT_EQ(response(std::string("/api/v1/runs/old-1/metrics?keys=a&") + wrong).status, 400)
        << wrong;
  EXPECT_TRUE(
      got("/runs/" + folder_.run("empty-1").filename().string() + "/metrics")["keys"].empty());
}

TEST_F(RunsApiTest, LinesOfMetricsAreThoseOfTheFile) {
  const fs::path run = folder_.run("old-1");
  folder_.append(run / "metrics.jsonl", "{\"step\":1,\"a\":1}\n{\"step\":2,\"a\":2,\"b\":3}\n");
  const json page = got("/jobs/old/metrics?keys=b,c&from=2");
  EXPECT_EQ(page.dump(), R"({"lines":[{"b":3,"step":2}],"next":null})");
  EXPECT_EQ(response("/api/v1/jobs/old-1/metrics?after=x").status, 400);
  EXPECT_EQ(response("/api/v1/jobs/none/metrics").status, 404);
}

TEST_F(RunsApiTest, SamplesOfAnEndedRunComeInPages) {
  const fs::path run = folder_.run("old-1");
  for (int i = 1; i <= 100; ++i)
    folder_.append(run / "samples.jsonl", "{\"step\":" + std::to_string(i) + "}\n");
  folder_.append(run / "samples.jsonl", "{\"step\":100,\"eval\":\"final\"}\n");
  const json newest = got("/runs/old-1/samples?limit=2");
  EXPECT_EQ(newest, json::parse(R"([{"step":100,"seq":100},{"step":99,"seq":99}])"));
  EXPECT_EQ(got("/runs/old-1/samples?eval=1").size(), 1U);
  EXPECT_EQ(got("/runs/old-1/samples?eval=any&limit=1000").size(), 101U);
  EXPECT_EQ(got("/runs/old-1/samples?before=3").size(), 2U);
  const json of_job = got("/jobs/old-1/samples?eval=0");  // oldest first, as ever
  ASSERT_EQ(of_job.size(), 64U);
  EXPECT_EQ(of_job.front()["step"], 37);
  EXPECT_EQ(of_job.back()["step"], 100);
  EXPECT_EQ(response("/api/v1/jobs/none/samples").status, 404);
}

TEST_F(RunsApiTest, LogsAreFoundByTheirNamesAlone) {
  const fs::path run = folder_.run("old-1");
  folder_.append(folder_.home / "token", "secret\n");
  folder_.append(run / "logs/rollout.0.4.log", "first\n");
  folder_.append(run / "logs/rollout.0.9.log", "a\nb\nc\n");
  const auto text = [&](const std::string& rest) {
    return response("/api/v1/runs/old-1/logs/" + rest).body;
  };
  EXPECT_EQ(text("rollout/0"), "a\nb\nc\n");
  EXPECT_EQ(text("rollout/0/4"), "first\n");
  EXPECT_EQ(text("rollout/0?previous=1"), "first\n");
  EXPECT_EQ(text("rollout/0?tail=2"), "b\nc\n");
  EXPECT_EQ(text("rollout/0?tail=2&since=60"), "b\nc\n");
  EXPECT_EQ(response("/api/v1/actors/old-1/rollout/0/logs?tail=1").body, "c\n");
  for (const char* const wrong :
       {"rollout/0/5", "rollout", "..%2F..%2Ftoken", "../../../token", "rollout%2F..%2F..%2Ftoken",
        "%2Fetc%2Fpasswd", "rollout/0/4/4", "rollout/0%00"}) {
    const auto answer = response("/api/v1/runs/old-1/logs/" + std::string(wrong));
    EXPECT_EQ(answer.status, 404) << wrong;
    EXPECT_EQ(answer.body.find("secret"), std::string::npos);
  }
  EXPECT_EQ(response("/api/v1/runs/old-1/logs/rollout/0?tail=-1").status, 400);
}

TEST_F(RunsApiTest, ALargeLogIsCutWithALineThatSaysSo) {
  const fs::path run = folder_.run("old-1");
  const std::string line(999, 'x');
  std::string log;
  while (log.size() < kLogAnswerBytesMax + 100'000) log += line + "\n";
  folder_.append(run / "logs/rollout.0.4.log", log + "end\n");
  const std::string body = response("/api/v1/runs/old-1/logs/rollout/0").body;
  EXPECT_TRUE(body.starts_with("[the first ")) << body.substr(0, 100);
  EXPECT_TRUE(body.ends_with("x\nend\n"));
  EXPECT_LE(body.size(), kLogAnswerBytesMax + 500);
  EXPECT_EQ(response("/api/v1/runs/old-1/logs/rollout/0?tail=1").body, "end\n");
}

TEST_F(RunsApiTest, AFollowedLogEndsWithItsRun) {
  const fs::path run = folder_.run("old-1");
  const fs::path log = run / "logs/rollout.0.4.log";
  folder_.append(log, "one\ntwo\n");
  auto lock = std::make_unique<FileLock>(FileLock::take(run / "run.lock", "it", "").value());
  const auto followed = stream("/runs/old-1/logs/rollout/0?follow=1&tail=1");
  ASSERT_TRUE(followed->wait_for_lines(1));
  EXPECT_TRUE(followed->open());
  folder_.append(log, "three\nlast");
  lock.reset();
  ASSERT_TRUE(followed->wait_for_close());
  EXPECT_EQ(followed->lines(), (std::vector<std::string>{"two", "three", "last"}));
}

TEST_F(RunsApiTest, AFollowedLogGoesOnWhereAnotherAnswerBrokeOff) {
  folder_.append(folder_.run("old-1") / "logs/rollout.0.4.log", "one\ntwo\nthree\n");
  const std::string path = "/runs/old-1/logs/rollout/0?follow=1&tail=1";
  const auto position = [&](const std::string& target) {
    return std::get<http::HttpStreaming>(ask("GET", "/api/v1" + target))
        .headers.at(node::kLogPositionHeader);
  };
  const auto lines = [&](const std::string& target) {
    const auto followed = stream(target);
    EXPECT_TRUE(followed->wait_for_close());
    return followed->lines();
  };
  EXPECT_EQ(position(path), "4:8");
  EXPECT_EQ(position(path + "&from=4:4"), "4:4");
  EXPECT_EQ(lines(path + "&from=4:4"), (std::vector<std::string>{"two", "three"}));
  EXPECT_EQ(lines(path + "&from=3:4"), (std::vector<std::string>{"one", "two", "three"}))
      << "of another incarnation";
  EXPECT_EQ(response("/api/v1" + path + "&from=x").status, 400);
}

TEST_F(RunsApiTest, ARunThatLivesIsNotDeleted) {  // RC-1
  const fs::path run = folder_.run("old-1");
  {
    const auto lock = FileLock::take(run / "run.lock", "it", "").value();
    const auto refused = response("/api/v1/runs/old-1", "DELETE");
    EXPECT_EQ(refused.status, 409);
    EXPECT_NE(refused.body.find("cancel it first"), std::string::npos) << refused.body;
  }
  const std::string queued = submit("new");
  EXPECT_EQ(response("/api/v1/runs/" + queued, "DELETE").status, 409);
  EXPECT_EQ(response("/api/v1/runs/old-1", "DELETE").status, 200);
  EXPECT_FALSE(fs::exists(run));
  EXPECT_EQ(response("/api/v1/runs/old-1", "DELETE").status, 404);
  EXPECT_EQ(response("/api/v1/jobs/" + queued + "/cancel", "POST").status, 200);
  EXPECT_EQ(response("/api/v1/runs/" + queued + "/delete", "POST").status, 200);
  EXPECT_EQ(got("/runs"), json::array());
  EXPECT_EQ(got("/jobs"), json::array()) << "nor is its job listed";
  EXPECT_EQ(response("/api/v1/jobs/" + queued).status, 404);
  EXPECT_EQ(got("/events?job=" + queued).back()["message"], "its run was deleted");
  EXPECT_EQ(response("/api/v1/jobs/x", "DELETE").status, 405);
}

TEST_F(RunsApiTest, EventsOfEndedRunsAndOfThisController) {
  const std::string id = submit("new");
  json events = got("/events?job=" + id);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0]["seq"], 42);  // numbers go on from those of earlier controllers
  EXPECT_EQ(events[0]["subject"], id);
  EXPECT_TRUE(got("/events?since=" + std::to_string(events.back()["seq"].get<int>())).empty());
  EXPECT_EQ(got("/events?limit=1").size(), 1U);
  EXPECT_TRUE(got("/events?job=ne").empty());  // no beginning of a name is one
  auto journal =
      sqlite::Sqlite::open((folder_.home / "controller.sqlite").string(),
                           "CREATE TABLE events(seq INTEGER, epoch INTEGER, time_ms INTEGER, "
                           "kind TEXT, subject TEXT, message TEXT)");
  ASSERT_TRUE(journal.has_value());
  ASSERT_TRUE((*journal)->insert("INSERT INTO events VALUES(7, 1, 5, 'job', 'old-1', 'submitted')",
                                 {sqlite::Sqlite::Row{}}));
  folder_.run("old-1");
  for (const char* const target : {"/runs/old-1/events", "/events?job=old-1", "/events?job=old"}) {
    events = got(target);
    ASSERT_EQ(events.size(), 1U) << target;
    EXPECT_EQ(events[0]["seq"], 7);
    EXPECT_EQ(events[0]["time"], 5);
  }
  EXPECT_EQ(got("/events?job=" + id).size(), got("/runs/" + id + "/events").size());
  const auto watched = stream("/events?watch=1&since=41&job=" + id);
  EXPECT_TRUE(watched->wait_for_lines(1));
  watched->close();
}

// What the controller of a `tandem run` has announced is in the run's directory, and what that of
// this state folder has announced in the state folder. The event of both is there once.
TEST_F(RunsApiTest, EventsOfTandemRunAndOfThisStateFolderAreOneList) {
  const fs::path run = folder_.run("old-1");
  const runs::ClusterEvent one{.seq = 1,
                               .time_ms = 1000,
                               .kind = "actor",
                               .subject = "old-1/rollout/0",
                               .message = "restarted 1 of 10",
                               .level = messages::EventLevel::kError};
  runs::ClusterEvent two = one, three = one;
  two.seq = 2, two.time_ms = 2000, two.message = "the disk is full";
  three.seq = 3, three.time_ms = 3000, three.message = "succeeded";
  auto here = runs::ClusterJournal::begin(folder_.home, 1),
       there = runs::ClusterJournal::begin(run, 1);
  ASSERT_TRUE(here && there);
  for (const auto& event : {one, two}) ASSERT_TRUE(there->append(event));
  for (const auto& event : {two, three}) ASSERT_TRUE(here->append(event));
  for (const char* const target : {"/runs/old-1/events", "/events?job=old-1"}) {
    const json events = got(target);
    ASSERT_EQ(events.size(), 3U) << target << events;
    EXPECT_EQ(events[0]["message"], "restarted 1 of 10");
    EXPECT_EQ(events[0]["level"], "error");
    EXPECT_EQ(events[1]["message"], "the disk is full");
    EXPECT_EQ(events[2]["message"], "succeeded");
  }
  EXPECT_EQ(got("/events?job=old-1&since=1").size(), 2U);
  EXPECT_EQ(got("/events?job=old-1&limit=1")[0]["message"], "succeeded");
}

// A run that an earlier version's `tandem run` has had is told of by its own journal, also of the
// time before a controller took it up.
TEST_F(RunsApiTest, EventsOfARunThatNoControllerHereHasHad) {
  const fs::path run = folder_.run("old-1");
  {
    const auto files = runs::RunFiles::open(run.string());
    ASSERT_TRUE(files.has_value());
    ASSERT_TRUE((*files)->journal(
        std::vector<exchange::JournalEvent>{
            exchange::StageEntered{exchange::RunStage::kRunning, "training"},
            exchange::EvaluationEnded{.evaluation = messages::EvaluationId{1},
                                      .kind = exchange::EvaluationKind::kFinal,
                                      .version = PolicyVersion{7},
                                      .all = {.mean = 0.5, .scored = 2},
                                      .sources = {}},
            exchange::RunEnded{"all steps are trained"}},
        sqlite::Durability::kKill));
  }
  for (const char* const target : {"/runs/old-1/events", "/events?job=old-1", "/events?job=old"}) {
    const json events = got(target);
    ASSERT_EQ(events.size(), 3U) << target;
    EXPECT_EQ(events[1]["message"], "evaluated final=0.5 scored=2 failed=0 of version 7");
    EXPECT_EQ(events[2]["message"], "ended all steps are trained");
  }
  auto journal =
      sqlite::Sqlite::open((folder_.home / "controller.sqlite").string(),
                           "CREATE TABLE events(seq INTEGER, epoch INTEGER, time_ms INTEGER, "
                           "kind TEXT, subject TEXT, message TEXT)");
  ASSERT_TRUE((*journal)->insert("INSERT INTO events VALUES(7, 1, ?, 'job', 'old-1', 'resumed')",
                                 {sqlite::Sqlite::Row{unix_ms() + 60'000}}));
  EXPECT_EQ(got("/events?job=old-1").size(), 4U);
  EXPECT_EQ(got("/events?job=old-1").back()["message"], "resumed");
}

TEST_F(RunsApiTest, StepsWithSamplesAreListed) {
  const fs::path run = folder_.run("old-1");
  for (const char* const line : {R"({"step":1})", R"({"step":1})", R"({"step":4})",
                                 R"({"step":5,"eval":"final"})", R"({"step":7,"error":"late"})"})
    folder_.append(run / "samples.jsonl", std::string(line) + "\n");
  EXPECT_EQ(got("/jobs/old-1/samples?eval=0&steps=1"), json::array({1, 4, 7}));
  EXPECT_EQ(got("/jobs/old-1/samples?eval=1&steps=1"), json::array({5}));
  EXPECT_EQ(got("/jobs/old-1/samples?failed=1&steps=1"), json::array({7}));
}

TEST_F(RunsApiTest, StatusAgesAndWaits) {
  const std::string id = submit("new");
  const json status = got("/status");
  EXPECT_EQ(status["version"], "0.1.0");
  EXPECT_EQ(status["epoch"], 3);
  EXPECT_EQ(status["pid"], 99);
  EXPECT_EQ(status["http"], "127.0.0.1:7422");
  EXPECT_EQ(status["started"], 5);
  EXPECT_EQ(status["home"], folder_.home.string());
  EXPECT_EQ(status["nodes"], (json{{"ready", 0}, {"lost", 0}}));
  EXPECT_EQ(status["jobs"], (json{{"Queued", 1}}));
  EXPECT_EQ(status["runs"], 1);
  for (const json& object : {got("/jobs/" + id), got("/actors/" + id + "/rollout/0")}) {
    EXPECT_TRUE(object["created"].is_number());
    EXPECT_GE(object["age_s"].get<double>(), 0);
    EXPECT_TRUE(object["ended"].is_null());
  }
  EXPECT_EQ(got("/runs/" + id)["state"], "Queued");
  EXPECT_EQ(got("/runs/" + id)["live"], true);
  EXPECT_FALSE(got("/wait_graph?job=" + id)["edges"].empty());
  EXPECT_EQ(response("/api/v1/wait_graph?job=none").status, 404);
  EXPECT_EQ(response("/api/v1/jobs/" + id + "/cancel", "POST").status, 200);
  EXPECT_TRUE(got("/jobs/" + id)["ended"].is_number());
  EXPECT_TRUE(got("/actors/" + id + "/rollout/0")["ended"].is_number());
}

}  // namespace
}  // namespace tandem::api
