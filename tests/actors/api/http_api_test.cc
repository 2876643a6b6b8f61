// The HTTP API on a real controller: foreign bodies, numbers and names that it must refuse. A
// cluster that runs jobs behind it is tests/e2e/cluster_test.cc's.
#include "actors/api/http_api.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stdexcept>

#include "actors/api/http_answers.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "tests/actors/api/described_api.h"
#include "tests/actors/controller/controller_world.h"

namespace tandem::api {
namespace {

using http::HttpResponse;
using nlohmann::json;

constexpr auto kPatience = std::chrono::seconds(100);  // ends a hang; never measured

// Keeps the lines of a stream, or throws at the first one.
class Lines final : public http::HttpStream {
 public:
  explicit Lines(bool throws = false) : throws_(throws) {}
  bool write(std::string line) override {
    if (throws_) throw std::runtime_error("a library did");
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_all();
    return true;
  }
  void close() override {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  std::size_t unsent_bytes() const override {
    const std::lock_guard lock(mutex_);
    ++looks_;
    changed_.notify_all();
    return unsent_;
  }
  bool wait_for_looks(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return looks_ >= count; });
  }
  void set_unsent(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    unsent_ = bytes;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return lines_.size();
  }
  bool open() const override {
    const std::lock_guard lock(mutex_);
    return !closed_;
  }
  bool wait_for_line() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return !lines_.empty(); });
  }
  bool wait_for_end() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return closed_; });
  }
  std::string first() const {
    const std::lock_guard lock(mutex_);
    return lines_.front();
  }

 private:
  const bool throws_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<std::string> lines_;
  bool closed_ = false;
  std::size_t unsent_ = 0;
  mutable int looks_ = 0;
};

struct Api {
  Api() {
    const auto actions = [] {
      controller::ControllerActions made;
      made.expect = [](const std::string&, const node::RankId&) {};
      made.make_run_directory =
          [](const controller::JobShape&) -> Result<controller::RunDirectory> {
        return controller::RunDirectory{"job-1", "runs/job-1"};
      };
      made.remember = [](std::span<const controller::DurableEvent>) -> Result<void> { return {}; };
      made.journal = [](const runs::ClusterEvent&) -> Result<void> { return {}; };
      return made;
    };
    controller = system.spawn<controller::Controller>(
        "controller", [actions] { return std::make_unique<controller::Controller>(1, actions()); });
    handler = described(make_http_handler(
        {.controller = controller,
         .shape_of = [this](const SubmittedJob& job) -> Result<controller::JobShape> {
           submitted = job;
           return shape;
         },
         .home = std::filesystem::path(testing::TempDir()) / "no-such-home",
         .read_job = {[](const std::string&, const std::filesystem::path&) {
                        return std::optional<runs::JobFacts>();
                      },
                      [](const std::string&, const std::filesystem::path&) {
                        return Result<runs::JobKeys>(runs::JobKeys{});
                      }},
         .identity = [] { return ClusterIdentity{}; },
         .make_page_key = [] { return std::string("key"); },
         .system = system}));
  }
  ~Api() { executor.stop(); }

  HttpResponse ask(const std::string& method, const std::string& target) const {
    http::HttpRequest request{.method = method};
    EXPECT_TRUE(http::split_target(target, request)) << target;
    return std::get<HttpResponse>(handler(request));
  }

  HttpResponse post(const std::string& verb, const std::string& body) const {
    return std::get<HttpResponse>(handler({.method = "POST",
                                           .target = "/api/v1/jobs/job-1/" + verb,
                                           .segments = {"api", "v1", "jobs", "job-1", verb},
                                           .query = {},
                                           .body = body}));
  }
  HttpResponse post_job(std::map<std::string, std::string> query) const {
    return std::get<HttpResponse>(handler({.method = "POST",
                                           .target = "/api/v1/jobs",
                                           .segments = {"api", "v1", "jobs"},
                                           .query = std::move(query),
                                           .body = "name: job"}));
  }
  void submit() const {
    const auto answer = post_job({});
    ASSERT_EQ(answer.status, 200) << answer.body;
  }
  json desired() const {
    const auto answer = std::get<HttpResponse>(handler({.method = "GET",
                                                        .target = "/api/v1/jobs/job-1",
                                                        .segments = {"api", "v1", "jobs", "job-1"},
                                                        .query = {},
                                                        .body = {}}));
    const json job = parse_json(answer.body);
    return {job["actors"]["rollout"]["desired"], job["actors"]["reward"]["desired"]};
  }
  void watch_events(const std::shared_ptr<Lines>& into) const {
    const auto answer = handler({.method = "GET",
                                 .target = "/api/v1/events?watch=1",
                                 .segments = {"api", "v1", "events"},
                                 .query = {{"watch", "1"}},
                                 .body = {}});
    std::get<http::HttpStreaming>(answer).start(into);
  }
  void node(const std::string& name) const {
    ASSERT_EQ(controller.tell(node::NodeUp{.node = name, .incarnation = {1}, .cpus = 0.1}),
              actor::Delivery::kAccepted);
  }

  actor::ThreadedExecutor executor{3, 1};
  actor::System system{executor, nullptr};
  actor::Ref<controller::Controller::Inbox> controller;
  http::HttpHandler handler;
  controller::JobShape shape = controller::shape_of(1);  // of what is submitted
  SubmittedJob submitted;                                // the last one whose shape was asked for
};

TEST(HttpApi, ASubmittedJobMayNameTheFolderOfItsPathsAndTheRunToResume) {
  const Api api;
  EXPECT_EQ(api.post_job({{"folder", "here"}}).status, 400);
  EXPECT_EQ(api.submitted.yaml, "") << "refused before it is looked at";
  EXPECT_EQ(api.post_job({}).status, 200);
  EXPECT_EQ(api.submitted.yaml, "name: job");
  EXPECT_EQ(api.submitted.folder, "");
  const Api second;
  EXPECT_EQ(second.post_job({{"folder", "/data"}, {"resume", "job-7"}}).status, 200);
  EXPECT_EQ(second.submitted.folder, "/data");
  EXPECT_EQ(second.submitted.resume, "job-7");
}

TEST(HttpApi, APathThatTakesAnotherMethodSaysWhich) {
  const Api api;
  const auto allowed = [&](const std::string& method, const std::string& path) {
    const HttpResponse answer = api.ask(method, path);
    EXPECT_EQ(answer.status, 405) << method << " " << path;
    const auto allow = answer.headers.find("allow");
    return allow == answer.headers.end() ? "" : allow->second;
  };
  EXPECT_EQ(allowed("POST", "/api/v1/status"), "GET");
  EXPECT_EQ(allowed("PUT", "/api/v1/jobs"), "GET, POST");
  EXPECT_EQ(allowed("POST", "/api/v1/runs/a-1"), "DELETE, GET");
  EXPECT_EQ(allowed("GET", "/api/v1/actors/a-1/rollout/0/ask"), "POST");
  EXPECT_EQ(allowed("DELETE", "/healthz"), "GET");
  for (const char* const method : {"GET", "PUT"}) {
    const HttpResponse none = api.ask(method, "/api/v1/runs/a-1/nonsense");
    EXPECT_EQ(none.status, 404);
    EXPECT_EQ(parse_json(none.body)["error"]["help"],
              "below /api/v1/runs/a-1 there are config, delete, events, logs, metrics and samples");
  }
  EXPECT_EQ(parse_json(api.ask("GET", "/nonsense").body)["error"]["help"],
            "the API is below /api/v1; metrics are at /metrics");
}

// All pages of a list, each name once and in order.
std::vector<std::string> names_by_pages(const Api& api, const std::string& list,
                                        std::size_t limit) {
  std::vector<std::string> names;
  for (std::string after;;) {
    const HttpResponse answer =
        api.ask("GET", "/api/v1/" + list + "?limit=" + std::to_string(limit) + "&after=" + after);
    EXPECT_EQ(answer.status, 200) << answer.body;
    const json page = parse_json(answer.body);
    EXPECT_LE(page.size(), limit);
    for (const json& item : page) names.push_back(item.contains("id") ? item["id"] : item["name"]);
    if (page.size() < limit) return names;
    after = names.back();
  }
}

TEST(HttpApi, AListCanBeReadPageByPage) {
  const Api api;
  api.submit();  // it waits: the nodes are too small
  for (const char* const name : {"d", "b", "e", "a", "c"}) api.node(name);
  const auto has_five = [&] {
    return parse_json(api.ask("GET", "/api/v1/nodes").body).size() == 5;
  };
  ASSERT_TRUE(has_five()) << "a tell comes before the ask behind it";
  const std::vector<std::string> nodes{"a", "b", "c", "d", "e"};
  for (const std::size_t limit : {1u, 2u, 5u, 9u})
    EXPECT_EQ(names_by_pages(api, "nodes", limit), nodes);
  const std::vector<std::string> actors{"job-1/learner/0", "job-1/reward/0", "job-1/rollout/0"};
  for (const std::size_t limit : {1u, 2u, 3u})
    EXPECT_EQ(names_by_pages(api, "actors", limit), actors);
  EXPECT_EQ(names_by_pages(api, "jobs", 1), std::vector<std::string>{"job-1"});
  EXPECT_EQ(parse_json(api.ask("GET", "/api/v1/actors?job=job-1&limit=2").body).size(), 2u);
  EXPECT_EQ(api.ask("GET", "/api/v1/actors?job=job-2").body, "[]\n");
  EXPECT_EQ(parse_json(api.ask("GET", "/api/v1/actors/job-1/reward/0").body)["name"], actors[1]);
  EXPECT_EQ(parse_json(api.ask("GET", "/api/v1/actors/reward/0").body)["name"], actors[1]);
  EXPECT_EQ(parse_json(api.ask("GET", "/api/v1/nodes/c").body)["reserved"].size(), 0u);
  EXPECT_EQ(api.ask("GET", "/api/v1/nodes/f").status, 404);
  EXPECT_EQ(api.ask("GET", "/api/v1/groups/7").status, 404);
  for (const char* const wrong :
       {"nodes?limit=0", "jobs?limit=many", "groups?after=job-1/x", "groups?after=7",
        "groups?job=job-1&after=job-2/7", "nodes?watch=1&limit=2"})
    EXPECT_EQ(api.ask("GET", std::string("/api/v1/") + wrong).status, 400) << wrong;
}

// Each schema that `value` refers to, at any depth.
void gather_references(const json& value, std::set<std::string>& names) {
  for (const auto& [key, one] : value.items()) {
    if (key == "$ref") names.insert(one.get<std::string>());
    if (one.is_structured()) gather_references(one, names);
  }
}

TEST(HttpApi, TheDocumentIsWholeAndUsesAllThatItHas) {
  const Api api;
  const json document = parse_json(api.ask("GET", "/api/v1/openapi.json").body);
  std::set<std::string> wanted, had, ids;
  gather_references(document, wanted);
  for (const auto& [name, schema] : document["components"]["schemas"].items())
    had.insert("#/components/schemas/" + name);
  EXPECT_EQ(wanted, had);
  std::size_t operations = 0;
  for (const auto& [path, methods] : document["paths"].items())
    for (const auto& [method, operation] : methods.items()) {
      ++operations;
      ids.insert(operation["operationId"].get<std::string>());
      EXPECT_TRUE(operation["responses"].contains("200")) << path;
      std::size_t in_path = 0;
      for (const json& parameter : operation["parameters"]) {
        EXPECT_FALSE(parameter["description"].get<std::string>().empty()) << path << parameter;
        if (parameter["in"] != "path") continue;
        ++in_path;
        const std::string name = "{" + parameter["name"].get<std::string>() + "}";
        EXPECT_NE(path.find(name), std::string::npos) << path << " " << name;
      }
      EXPECT_EQ(in_path, static_cast<std::size_t>(std::ranges::count(path, '{'))) << path;
    }
  EXPECT_EQ(ids.size(), operations) << "each has an id of its own";
}

TEST(HttpApi, TheContractNamesEachPathOfTheDocument) {
  const Api api;
  const json document = parse_json(api.ask("GET", "/api/v1/openapi.json").body);
  const std::string page =
      read_file(std::string(TANDEM_SOURCE_DIR) + "/docs/design/contract.md").value();
  for (const auto& [path, methods] : document["paths"].items()) {
    const std::string last = path.substr(path.rfind('/') + 1);
    if (last.starts_with("{")) continue;
    EXPECT_NE(page.find(last), std::string::npos) << "the contract has no " << path;
  }
}

TEST(HttpApi, AWatchIsAskedForByItsValue) {
  const Api api;
  EXPECT_EQ(api.ask("GET", "/api/v1/jobs?watch=0").body, "[]\n") << "a whole answer";
}

TEST(HttpApi, AKeyOpensThePage) {
  const Api api;
  const json opened = parse_json(api.ask("POST", "/api/v1/dashboard").body);
  EXPECT_EQ(opened["path"], "/?key=key");
  EXPECT_DOUBLE_EQ(opened["expires_s"].get<double>(), 120);
}

TEST(HttpApi, ScaleTakesWhatTheJobFileTakesAndNothingElse) {
  const Api api;
  api.submit();
  for (const char* count : {"0", "-1", "4097", "100000", "2000000000", "4294967298", "99999999999",
                            "18446744073709551617", "2.5", "1e2", "\"2\"", "null", "[2]"}) {
    const HttpResponse answer = api.post("scale", std::string(R"({"rollout": )") + count + "}");
    EXPECT_EQ(answer.status, 400) << count;
    const std::string message = parse_json(answer.body)["error"]["message"];
    EXPECT_TRUE(message.starts_with("cannot scale rollout to ")) << message;
    EXPECT_TRUE(message.ends_with(": a role has 1 to 4096 actors")) << message;
  }
  EXPECT_EQ(api.post("scale", R"({"reward": 2, "rollout": 100000})").status, 400);
  EXPECT_EQ(api.post("scale", R"({"rollouts": 2})").status, 400);
  const HttpResponse automatic = api.post("scale", R"({"reward": 2, "rollout": "auto"})");
  EXPECT_EQ(automatic.status, 400);
  EXPECT_NE(automatic.body.find("job-1 has no limits"), std::string::npos) << automatic.body;
  EXPECT_EQ(api.post("scale", R"({"reward": "auto", "rollout": 2})").status, 400);
  EXPECT_EQ(api.desired(), json({1, 1})) << "all or nothing";
  EXPECT_EQ(api.post("scale", R"({"rollout": 4096, "reward": 2})").status, 200);
  EXPECT_EQ(api.desired(), json({4096, 2}));
}

TEST(HttpApi, ScaleTakesAutoAndARollback) {
  Api api;
  api.shape.autoscale = {.min = 1, .max = 8};
  api.submit();
  const auto autoscale = [&] {
    return parse_json(api.ask("GET", "/api/v1/jobs/job-1").body)["autoscale"];
  };
  EXPECT_EQ(autoscale()["on"], true);
  const HttpResponse nothing = api.post("scale", R"({"rollback": true})");
  EXPECT_EQ(nothing.status, 400);
  EXPECT_NE(nothing.body.find("there is no allocation to go back to"), std::string::npos);
  EXPECT_EQ(api.post("scale", R"({"rollout": 4})").status, 200);
  EXPECT_EQ(autoscale()["on"], false);
  EXPECT_EQ(autoscale()["wanted"], 4);
  const HttpResponse automatic = api.post("scale", R"({"rollout": "auto", "reward": 2})");
  EXPECT_EQ(automatic.status, 200) << automatic.body;
  EXPECT_EQ(parse_json(automatic.body), (json{{"id", "job-1"}}));
  EXPECT_EQ(autoscale()["on"], true);
  for (const char* body :
       {R"({"rollback": false})", R"({"rollback": 1})", R"({"rollback": true, "rollout": 2})",
        R"({"rollout": "AUTO"})", R"({"rollout": true})", R"({"reward": "auto"})",
        R"({"learner": "auto"})", R"({"counter": "auto"})", "{}", R"("auto")"})
    EXPECT_EQ(api.post("scale", body).status, 400) << body;
  EXPECT_EQ(api.desired(), json({4, 2})) << "nothing is changed";
  EXPECT_EQ(autoscale()["on"], true);
  EXPECT_EQ(api.post("scale", R"({"rollback": true})").status, 200);
  EXPECT_EQ(api.desired(), json({4, 1}));
  EXPECT_EQ(autoscale()["on"], false);
  EXPECT_EQ(api.post("scale", R"({"rollback": true})").status, 400) << "once";
}

TEST(HttpApi, ANodeIsCordonedWithItsReasonAndUncordoned) {
  const Api api;
  ASSERT_EQ(api.controller.tell(node::NodeUp{"gpu 3", Incarnation{7}, 4, 1 << 30, 1}),
            actor::Delivery::kAccepted);
  const HttpResponse cordoned = api.ask("POST", "/api/v1/nodes/gpu%203/cordon?reason=a%20fan");
  ASSERT_EQ(cordoned.status, 200) << cordoned.body;
  const json node = parse_json(cordoned.body);
  EXPECT_EQ(node["cordoned"], "a fan");
  EXPECT_EQ(node["reason"], "Cordoned");
  EXPECT_EQ(node["state"], "Ready");
  EXPECT_EQ(parse_json(api.ask("POST", "/api/v1/nodes/gpu%203/drain").body)["cordoned"],
            "drained by a user");
  EXPECT_EQ(parse_json(api.ask("POST", "/api/v1/nodes/gpu%203/uncordon").body)["cordoned"], json());
  EXPECT_EQ(api.ask("POST", "/api/v1/nodes/gpu-4/drain").status, 404);
  const std::string long_reason(201, 'x');
  EXPECT_EQ(api.ask("POST", "/api/v1/nodes/gpu%203/cordon?reason=" + long_reason).status, 400);
}

TEST(HttpApi, ABodyThatNestsTooDeepIsRefused) {
  const Api api;
  api.submit();
  for (const std::size_t depth : {std::size_t{65}, std::size_t{400'000}}) {
    const std::string deep = std::string(depth, '[') + std::string(depth, ']');
    for (const std::string& body : {deep, R"({"rollout":)" + deep + "}"}) {
      const HttpResponse answer = api.post("scale", body);
      EXPECT_EQ(answer.status, 400);
      EXPECT_NE(answer.body.find("nested more than 64 deep"), std::string::npos) << answer.body;
    }
  }
  EXPECT_EQ(api.desired(), json({1, 1}));
}

TEST(HttpApi, AnEventOfForeignBytesReachesEveryWatcher) {
  const Api api;
  const auto lines = std::make_shared<Lines>();
  api.watch_events(lines);
  api.node("half of \xc3\xa9: \xc3");
  ASSERT_TRUE(lines->wait_for_line());
  EXPECT_EQ(parse_json(lines->first())["subject"], "half of é: \uFFFD");
}

// A client that does not read costs only the memory of one round's lines.
TEST(HttpApi, AStreamWhoseLinesWaitIsNotFedUntilTheyAreTaken) {
  const Api api;
  const auto slow = std::make_shared<Lines>(), quick = std::make_shared<Lines>();
  slow->set_unsent(1);
  api.watch_events(slow);
  api.watch_events(quick);  // fed behind the slow one in each round
  api.node("a");
  ASSERT_TRUE(quick->wait_for_line());
  EXPECT_EQ(slow->size(), 0u);
  EXPECT_TRUE(slow->open());
  slow->set_unsent(0);
  ASSERT_TRUE(slow->wait_for_line());
  EXPECT_EQ(slow->first(), quick->first()) << "nothing is lost";
}

TEST(HttpApi, SlowClientsTogetherHoldNoMoreThanTheBound) {
  const Api api;
  const auto slow = std::make_shared<Lines>(), quick = std::make_shared<Lines>();
  slow->set_unsent(kUnsentBytesMax);
  api.node("a");
  api.watch_events(slow);
  api.watch_events(quick);
  ASSERT_TRUE(quick->wait_for_looks(4)) << "rounds go by";
  EXPECT_EQ(quick->size(), 0u);
  slow->set_unsent(0);
  EXPECT_TRUE(slow->wait_for_line());
  EXPECT_TRUE(quick->wait_for_line());
}

TEST(HttpApi, AStreamThatFailsEndsAlone) {
  const Api api;
  const auto bad = std::make_shared<Lines>(true), good = std::make_shared<Lines>();
  api.watch_events(bad);
  api.watch_events(good);
  api.node("a");
  EXPECT_TRUE(bad->wait_for_end());
  EXPECT_TRUE(good->wait_for_line());
  EXPECT_TRUE(good->open());
  const auto later = std::make_shared<Lines>();
  api.watch_events(later);
  EXPECT_TRUE(later->wait_for_line());
}

}  // namespace
}  // namespace tandem::api
