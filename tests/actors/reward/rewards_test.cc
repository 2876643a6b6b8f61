// Rewards of several parts, of a server in this process, and of functions that a real python3 runs.
//
// Tests actors/reward/sum_verifier.h, actors/reward/payment.h, actors/reward/http_verifier.h,
// actors/reward/python_program.h.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "actors/reward/make_verifier.h"
#include "runtime/base/rng.h"
#include "runtime/http/http_server.h"
#include "tests/actors/reward/judge_items.h"

namespace tandem::reward {
namespace {

using messages::Scored;
using messages::ScoreFailed;
using messages::TrajectoryScore;
using namespace std::chrono_literals;
using nlohmann::json;

TEST(Sum, IsThatOfThePartsAsTheyArePaid) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const auto draw = [&] { return static_cast<double>(rng.below(2001)) / 100 - 10; };
    const auto payment = [&] {
      Payment drawn{.scale = draw(), .bias = draw(), .weight = draw()};
      if (rng.below(2) == 0) drawn.clip = {{-std::abs(draw()), std::abs(draw())}};
      return drawn;
    };
    std::vector<RewardPart> parts;
    std::vector<std::optional<TrajectoryScore>> scores;
    double sum = 0;
    const Payment whole = payment();
    for (std::size_t i = 0; i < 1 + rng.below(5); ++i) {
      parts.push_back({"part" + std::to_string(i), {}, payment()});
      scores.emplace_back();
      if (rng.below(4) == 0) continue;  // not for this record
      const double score = draw();
      scores.back() = Scored{score};
      const Payment& p = parts.back().payment;
      double paid = p.scale * score + p.bias;
      if (p.clip) paid = std::min(std::max(paid, (*p.clip)[0]), (*p.clip)[1]);
      sum += p.weight * paid;
    }
    const TrajectoryScore all = sum_of(parts, whole, scores);
    EXPECT_NEAR(value(all), whole.weight * before_weight(whole, sum), 1e-9);
    for (std::size_t i = 0; i < parts.size(); ++i)
      EXPECT_EQ(extra(all).contains(parts[i].name), scores[i].has_value());
  }
}

TEST(Sum, OfAFailureOrOfTooMuchIsAFailure) {  // RW-2
  const std::vector<RewardPart> parts{{"a", {}, {}}, {"b", {}, {.weight = 1e6}}};
  EXPECT_EQ(reason(sum_of(parts, {}, {{Scored{1}, ScoreFailed{"no answer"}}})), "`b`: no answer");
  expect_part(reason(sum_of(parts, {}, {{Scored{1}, Scored{1e35}}})), "score is 1e+41");
}

TEST(Sum, KeepsWhatThePartsSayAndTheVoteOfTheHeaviest) {
  const std::vector<RewardPart> parts{{"format", {}, {.weight = 0.1}},
                                      {"right", {}, {.weight = -1}}};
  const TrajectoryScore all =
      sum_of(parts, {},
             {{Scored{1, messages::vote_of("x"), R"({"pred": "x", "tags": 2})"},
               Scored{0.5, messages::vote_of("y"), R"({"pred": "y", "why": "off"})"}}});
  EXPECT_EQ(value(all), 0.1 - 0.5);
  EXPECT_EQ(std::get<Scored>(all).vote, messages::vote_of("y"));
  EXPECT_EQ(extra(all), parse_json(R"({"format": 1.0, "right": 0.5, "pred": "y", "format.tags": 2,
    "format.pred": "x", "right.pred": "y", "right.why": "off"})"));
  // The parts' numbers stay where what they say is too long together.
  const std::string longest = json{{"s", std::string(messages::kExtraBytesMax - 20, 's')}}.dump();
  const json cut = extra(sum_of(parts, {}, {{Scored{1, {}, longest}, Scored{0, {}, longest}}}));
  EXPECT_EQ(cut["format"], 1.0);
  EXPECT_EQ(cut["right"], 0.0);
  EXPECT_LE(cut.dump().size(), messages::kExtraBytesMax);
}

TEST(Sum, ASingleRewardIsScaledAndKeepsItsScore) {
  RewardParts reward = one({.type = VerifierType::kExact});
  reward.parts[0].payment = {.scale = 2, .bias = -1, .clip = {{-0.5, 5}}};
  const auto scores = judge(reward, {item("a"), item("b")}).value();
  EXPECT_EQ(value(scores[0]), 1);
  EXPECT_EQ(value(scores[1]), -0.5);
  EXPECT_EQ(extra(scores[0]), json({{"raw", 1.0}}));
}

TEST(Sum, ARecordIsScoredByThePartsOfItsSource) {
  RewardParts reward{
      {{"format", {}, {}}, {"exact", {"easy"}, {.weight = 10}}, {"math", {"hard"}, {}}},
      {{.type = VerifierType::kRegex, .pattern = "^[a-z0-9]+$"},
       {.type = VerifierType::kExact},
       {.type = VerifierType::kMath}},
      {}};
  auto items = std::vector{item("a"), item("2", "4/2"), item("a")};
  items[0].data_source = "easy";
  items[1].data_source = "hard";
  auto scores = judge(reward, items).value();
  EXPECT_EQ(value(scores[0]), 11);
  EXPECT_EQ(extra(scores[0]), json({{"format", 1.0}, {"exact", 1.0}}));
  EXPECT_EQ(value(scores[1]), 2);
  EXPECT_EQ(value(scores[2]), 1);
  reward.parts[0].sources = {"easy"};
  scores = judge(reward, items).value();
  EXPECT_EQ(value(scores[1]), 1);
  expect_part(reason(scores[2]), "no reward has the data source of this record");
}

// A reward server whose answers the test decides.
class Server {
 public:
  using Answer = std::function<http::HttpAnswer(const json& body, const http::HttpRequest&)>;
  explicit Server(Answer answer)
      : server_(*http::HttpServer::listen({}, {}, [this, answer](const http::HttpRequest& request) {
          ++calls;
          return answer(parse_json(request.body), request);
        })) {}
  RewardParts reward(Duration timeout = 20s, int retries = 2, int batch_size = 16) const {
    return one({.type = VerifierType::kHttp,
                .http = {.url = "http://" + to_string(server_->endpoint()) + "/score?x=1",
                         .batch_size = batch_size},
                .timeout = timeout,
                .retries = retries});
  }
  std::atomic<int> calls = 0;

 private:
  std::unique_ptr<http::HttpServer> server_;
};

http::HttpAnswer said(const json& body) { return http::HttpResponse{.body = dump_json(body)}; }

// The completion behind the prompt, as a number.
json lengths(const json& body) {
  json rewards = json::array();
  for (const json& query : body["query"]) rewards.push_back(query.get<std::string>().size() - 2);
  return rewards;
}

TEST(HttpReward, GetsTheShapeOfOpenRlhfInBatches) {  // HV-1
  Guarded<std::vector<json>> bodies;
  Guarded<std::string> key;
  Server server([&](const json& body, const http::HttpRequest& request) {
    bodies.with([&](auto& all) { all.push_back(body); });
    key.with([&](auto& text) { text = request.header("authorization"); });
    EXPECT_EQ(request.target, "/score?x=1");
    json logs{{"length", lengths(body)}, {"odd", json::array({1, 2, 3, 4})}};
    return said({{"rewards", lengths(body)}, {"extra_logs", logs}});
  });
  setenv("TEST_REWARD_KEY", "Bearer secret", 1);
  RewardParts reward = server.reward(20s, 2, 3);
  reward.verifiers[0].http.header_env = {{"authorization", "TEST_REWARD_KEY"}};
  std::vector<ScoreItem> items;
  for (int i = 0; i < 100; ++i) items.push_back(item(std::string(i, 'x'), i));
  const auto scores = judge(reward, items).value();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(value(scores[static_cast<std::size_t>(i)]), i);
    EXPECT_EQ(extra(scores[static_cast<std::size_t>(i)]), json({{"length", i}}));
  }
  bodies.with([](auto& all) {
    EXPECT_EQ(all.size(), 34u);
    for (const json& body : all) {
      EXPECT_LE(body["query"].size(), 3u);
      EXPECT_EQ(body["prompts"][0], "p:");
      EXPECT_EQ(body["labels"].size(), body["query"].size());
    }
  });
  key.with([](auto& text) { EXPECT_EQ(text, "Bearer secret"); });
  expect_part(describe(reward), "type=http url=");
  EXPECT_EQ(describe(reward).find("secret"), std::string::npos) << "HV-2";
}

TEST(HttpReward, AWrongAnswerIsAFailureByName) {  // RW-2
  const auto failure_of = [](const http::HttpResponse& answer) {
    Server server([&](auto&, auto&) { return answer; });
    const auto scores = judge(server.reward(20s, 0), {item("x"), item("y")}).value();
    EXPECT_EQ(reason(scores[0]), reason(scores[1]));
    return reason(scores[0]);
  };
  expect_part(failure_of({.body = R"({"rewards": [1]})"}),
              "the server gave 1 rewards for 2 completions (http://127.0.0.1:");
  expect_part(failure_of({.body = R"({"rewards": [1, 2)"}), "did not answer with JSON");
  expect_part(failure_of({.body = R"({"scores": [1, 2]})"}), "lacks a list `rewards`");
  expect_part(failure_of({.body = R"([1, 2])"}), "lacks a list `rewards`");
  expect_part(failure_of({.status = 500, .body = "no\nGPU"}), "the server answered 500: no\\nGPU");
  expect_part(failure_of({.status = 401, .body = ""}), "the server answered 401");
  expect_part(failure_of({.body = R"({"rewards": [NaN, NaN]})"}), "score is NaN");
  expect_part(failure_of({.body = R"({"rewards": [null, null]})"}), "found null");
  expect_part(failure_of({.body = R"({"rewards": ["1", "1"]})"}), "found a string");
  expect_part(failure_of({.body = std::string(kHttpRewardBytesMax * 2, ' ')}),
              "did not answer in HTTP: body limit exceeded");
}

TEST(HttpReward, OneBadRewardCostsTheOthersNothing) {
  Server server([](const json& body, auto&) {
    json rewards = lengths(body);
    for (json& reward : rewards)
      if (reward == 3) reward = "three";
    return said({{"rewards", rewards}});
  });
  const auto scores = judge(server.reward(), {item("x"), item("xxx"), item("xx")}).value();
  EXPECT_EQ(value(scores[0]), 1);
  EXPECT_EQ(value(scores[2]), 2);
  expect_part(reason(scores[1]), "score must be a number, found a string");
  EXPECT_EQ(server.calls, 3) << "the one alone is asked for again";
}

TEST(HttpReward, AServerThatComesBackIsAskedAgain) {
  std::atomic<int> calls = 0;
  Server server([&](const json& body, auto&) -> http::HttpAnswer {
    if (++calls < 3) return http::HttpResponse{.status = 503, .body = "loading"};
    return said({{"rewards", lengths(body)}});
  });
  EXPECT_EQ(value(judge(server.reward(), {item("xx")}).value()[0]), 2);
  EXPECT_EQ(calls, 3);
}

TEST(HttpReward, AServerThatIsSilentOrGoneIsNamed) {
  std::promise<std::function<void(http::HttpResponse)>> asked;
  Server server([&](auto&, auto&) {
    return http::HttpLater{.start = [&](auto respond) { asked.set_value(respond); }, .headers = {}};
  });
  const auto late = judge(server.reward(200ms, 0), {item("x")}).value();
  expect_part(reason(late[0]), "the server did not answer in time");
  asked.get_future().get()({});
  const auto gone =
      judge(one({.type = VerifierType::kHttp, .http = {.url = "http://127.0.0.1:1"}, .retries = 0}),
            {item("x")})
          .value();
  expect_part(reason(gone[0]), "cannot reach the server: Connection refused (http://127.0.0.1:1)");
}

TEST(HttpReward, AWrongAddressOrKeyIsRefusedAtOnce) {
  const auto error_of = [](const HttpReward& http) {
    return judge(one({.type = VerifierType::kHttp, .http = http}), {}).error().message;
  };
  EXPECT_EQ(error_of({.url = "https://a/b"}), "https is not in this version");
  EXPECT_EQ(error_of({.url = "http://me:pw@a/b"}), "an address has no user and no password");
  for (const char* url : {"a/b", "http://", "http:///x", "http://a/ b", "http://[::1/x"})
    EXPECT_NE(error_of({.url = url}), "") << url;
  expect_part(error_of({.url = "http://a", .header_env = {{"x-key", "NOT_SET_ANYWHERE"}}}),
              "NOT_SET_ANYWHERE is not set");
}

class PythonFunction : public testing::Test {
 protected:
  PythonFunction() {
    std::string pattern = testing::TempDir() + "python.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~PythonFunction() override { std::filesystem::remove_all(folder_); }

  RewardParts reward(const std::string& script, const std::string& name, Duration timeout = 20s) {
    std::ofstream(folder_ / "mine.py") << script;
    return one({.type = VerifierType::kPython,
                .python = {.function = (folder_ / "mine.py").string() + ":" + name},
                .timeout = timeout,
                .retries = 0});
  }
  std::filesystem::path folder_;
};

TEST_F(PythonFunction, AFunctionOfVerlsIsCalledAsThere) {
  const auto scores = judge(reward(R"(
import os
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    print("this must not reach", end="")
    os.system("echo the protocol")
    input_is_empty = os.read(0, 1) == b""
    if solution_str == "plain": return True
    return {"score": 0.5, "acc": solution_str == ground_truth, "pred": solution_str,
            "said": [data_source, extra_info, input_is_empty]}
)",
                                   "compute_score"),
                            {item("x", "x", {{"extra_info", {{"index", 3}}}}), item("plain")})
                          .value();
  EXPECT_EQ(value(scores[0]), 0.5);
  EXPECT_EQ(extra(scores[0]),
            parse_json(R"({"acc": true, "pred": "x", "said": ["", {"index": 3}, true]})"));
  EXPECT_EQ(std::get<Scored>(scores[0]).vote, messages::vote_of("x"));
  EXPECT_EQ(value(scores[1]), 1);
}

TEST_F(PythonFunction, AFunctionOfTrlsGetsColumnsAndConversations) {
  const std::string script = R"(
def texts(prompts, completions, solution, **kwargs):
    assert isinstance(prompts, list) and "trainer_state" in kwargs
    return [float(c == s) for c, s in zip(completions, solution)]
def chats(completions, solution, **kwargs):
    return [float(c[0]["content"] == s) for c, s in zip(completions, solution)]
def batch(data_sources, solution_strs, ground_truths, extra_infos):
    return [len(s) for s in solution_strs]
def served(queries, prompts, labels):
    return {"rewards": [float(q == p + l) for q, p, l in zip(queries, prompts, labels)],
            "extra_logs": {"length": [len(q) for q in queries]}}
class Callable:
    async def __call__(self, completion, answer, level): return level
of_ours = Callable()
)";
  const json data{{"solution", "a"}, {"level", 7}};
  json chat = data;
  chat["messages"] = json::array({{{"role", "user"}, {"content", "?"}}});
  for (const auto& [name, record] : {std::pair("texts", data), {"chats", chat}, {"served", data}}) {
    const auto scores =
        judge(reward(script, name), {item("a", "a", record), item("b", "a", record)}).value();
    EXPECT_EQ(value(scores[0]), 1) << name;
    EXPECT_EQ(value(scores[1]), 0) << name;
  }
  EXPECT_EQ(value(judge(reward(script, "batch"), {item("xyz")}).value()[0]), 3);
  EXPECT_EQ(value(judge(reward(script, "of_ours"), {item("x", "a", data)}).value()[0]), 7);
}

TEST_F(PythonFunction, WhatIsNoScoreIsAFailureByName) {  // RW-2
  const std::string script = R"(
def inner(x): return 1 / 0
def odd(completion):
    return {"none": None, "nan": float("nan"), "text": "high", "list": [1, 2], "no score": {"a": 1},
            "fine": 1}[completion] if completion != "throws" else inner(1)
def several(completions):
    if "throws" in completions: inner(1)
    return [1.0] * (len(completions) if "short" not in completions else 0)
)";
  const auto scores =
      judge(reward(script, "odd"), {item("none"), item("nan"), item("text"), item("list"),
                                    item("no score"), item("throws"), item("fine")})
          .value();
  const auto failed = [&](std::size_t i, const char* part) {
    expect_part(reason(scores[i]), part);
  };
  failed(0, "the function returned None");
  failed(1, "the function returned nan; a score must be a finite number");
  failed(2, "the function returned no number, but str: 'high'");
  failed(3, "the function returned no number, but list: [1, 2]");
  failed(4, "the function returned a dict without \\\"score\\\"");
  failed(5, "the function raised ZeroDivisionError: division by zero (mine.py:2 in inner)");
  EXPECT_EQ(value(scores[6]), 1);

  const auto batch =
      judge(reward(script, "several"), {item("x"), item("throws"), item("y")}).value();
  EXPECT_EQ(value(batch[0]), 1) << "one completion's error is its own";
  EXPECT_EQ(value(batch[2]), 1);
  expect_part(reason(batch[1]), "ZeroDivisionError");
  const auto cut = judge(reward(script, "several"), {item("short")}).value();
  expect_part(reason(cut[0]), "the function returned 0 scores for 1 completions");
}

TEST_F(PythonFunction, AFunctionThatHangsOrEndsItsProcessCostsThatCompletion) {
  const auto scores = judge(reward(R"(
import os, time
def score(completion):
    if completion == "hang": time.sleep(1000)
    if completion == "exit": os._exit(3)
    return 1
)",
                                   "score", 1s),
                            {item("hang"), item("exit"), item("x"), item("y")})
                          .value();
  expect_part(reason(scores[0]), "the program hung for 1 s");
  expect_part(reason(scores[1]), "the program exited with code 3");
  EXPECT_EQ(value(scores[2]), 1);
  EXPECT_EQ(value(scores[3]), 1);
}

TEST_F(PythonFunction, AModuleThatCannotBeLoadedEndsTheActorWithItsError) {
  const auto error_of = [&](const std::string& script, const std::string& name) {
    RewardParts parts = reward(script, name);
    parts.verifiers[0].retries = 5;
    const auto judged = judge(parts, {item("x")});
    EXPECT_FALSE(judged);
    EXPECT_EQ(judged.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(judged.error().where, "reward.function");
    return judged.error().message;
  };
  expect_part(error_of("import no_such_module", "f"), "No module named 'no_such_module'");
  expect_part(error_of("def f(x): return 1", "f"), "are of no known form");
  expect_part(error_of("f = 3", "f"), "is not a function");
  expect_part(error_of("def (", "f"), "SyntaxError");
}

TEST_F(PythonFunction, AnEditOfTheSameSecondAndSizeCounts) {
  EXPECT_EQ(value(judge(reward("def f(completion): return 1", "f"), {item("x")}).value()[0]), 1);
  const auto written = std::filesystem::last_write_time(folder_ / "mine.py");
  const RewardParts edited = reward("def f(completion): return 2", "f");
  std::filesystem::last_write_time(folder_ / "mine.py", written);
  EXPECT_EQ(value(judge(edited, {item("x")}).value()[0]), 2);
}

// An import may take longer than a completion may.
TEST_F(PythonFunction, TheTimeOfACompletionBeginsWhenTheModuleIsLoaded) {
  RewardParts parts = reward("import time\ntime.sleep(1.2)\ndef f(completion): return 1", "f", 1s);
  EXPECT_EQ(value(judge(parts, {item("x")}).value()[0]), 1);
  parts.verifiers[0].python.start_timeout = 100ms;
  expect_part(reason(judge(parts, {item("x")}).value()[0]), "was not ready after 0.1 s");
}

TEST_F(PythonFunction, AModuleIsFoundInItsFolder) {
  std::filesystem::create_directories(folder_ / "pack");
  std::ofstream(folder_ / "pack/part.py")
      << "from . import other\ndef f(completion): return other.x";
  std::ofstream(folder_ / "pack/other.py") << "x = 4";
  RewardParts parts = reward("", "");
  parts.verifiers[0].python.function = (folder_ / "pack.part:f").string();
  EXPECT_EQ(value(judge(parts, {item("x")}).value()[0]), 4);
}

}  // namespace
}  // namespace tandem::reward
