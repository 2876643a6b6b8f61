// A judge: what its server is asked, what is read from its words, and the rewards that come of it,
// from a server in this process.
//
// Tests actors/reward/judge_form.h, actors/reward/judge_reward.h, actors/reward/pattern.h.
#include "actors/reward/judge_form.h"

#include <gtest/gtest.h>

#include <cmath>

#include "actors/reward/pattern.h"
#include "runtime/http/http_server.h"
#include "tests/actors/reward/judge_items.h"

namespace tandem::reward {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

std::string chat_answer(const json& content, const char* reason = "stop") {
  return dump_json({{"object", "chat.completion"},
                    {"choices",
                     {{{"index", 0},
                       {"message", {{"role", "assistant"}, {"content", content}}},
                       {"finish_reason", reason}}}}});
}

json body_of(const JudgeReward& judge, const ScoreItem& item) {
  const ScoreItem* const one[] = {&item};
  return parse_json(judge_form(judge).value().body(one).value());
}

// What comes of a judge that said this.
RewardAnswer answer_to(const json& content, const JudgeReward& judge = {},
                       const char* reason = "stop") {
  const auto answers = judge_form(judge).value().answers(chat_answer(content, reason), 1);
  EXPECT_TRUE(answers) << render(answers.error());
  return answers->at(0);
}
double score_of(const RewardAnswer& answer) {
  const auto* score = std::get_if<double>(&answer.score);
  return score ? *score : -1e9;
}
std::string failure_of(const RewardAnswer& answer) {
  const auto* why = std::get_if<std::string>(&answer.score);
  return why ? *why : "scored";
}

TEST(Judge, IsAskedAboutOneCompletion) {
  const ScoreItem asked = item("it is 4", "4", {{"level", 3}});
  const json plain = body_of({}, asked);
  EXPECT_EQ(plain["max_tokens"], 512);
  EXPECT_EQ(plain["temperature"], 0.0);
  EXPECT_FALSE(plain.contains("model"));
  ASSERT_EQ(plain["messages"].size(), 1u);
  EXPECT_EQ(plain["messages"][0]["role"], "user");
  const std::string text = plain["messages"][0]["content"];
  expect_part(text, "Task:\np:\n");
  expect_part(text, "A right answer: 4\n");
  expect_part(text, "The answer to grade:\nit is 4\n");
  expect_part(text, "from 0 (wrong) to 10 ");
  const std::string unknown = body_of({}, item("x", json()))["messages"][0]["content"];
  EXPECT_EQ(unknown.find("right answer"), unknown.npos);

  const json own = body_of({.model = "big",
                            .system = "Be strict.",
                            .prompt = "{{ data.level }} {{ completion | upper }} {{ highest }}",
                            .range = {0, 2.5},
                            .max_tokens = 7,
                            .temperature = 0.5,
                            .extra_body = R"({"top_k": 3, "max_tokens": 9})"},
                           asked);
  EXPECT_EQ(own, json({{"model", "big"},
                       {"messages",
                        {{{"role", "system"}, {"content", "Be strict."}},
                         {{"role", "user"}, {"content", "3 IT IS 4 2.5"}}}},
                       {"max_tokens", 9},
                       {"temperature", 0.5},
                       {"top_k", 3}}));
}

TEST(Judge, ItsLastScoreCounts) {
  const std::pair<const char*, double> cases[] = {
      {"Score: 7", 7},
      {"It is right.\n\n**Score:** 10/10", 10},
      {"Score (0-10): 8", 8},
      {"**Score (0-10):** 7.5/10.", 7.5},
      {"The score is 3, as it says so.", 3},
      {"score = 2", 2},
      {"Score: 10 would be too much.\nScore: 4", 4},
      {"{\"score\": 6, \"why\": \"Score: 1\"}", 6},
      {"<think>Score: 9? No.</think>Score: 1", 1},
      {"Score: 0", 0},
      {"Score: .5 of them", 0.5},
      {"Score: 7.", 7},
      {"Score: 8 / 10", 8},
      {"Score: 8/10.0", 8},
      {"Score: 9\nScore: 1,000 would be too much", 9},
  };
  for (const auto& [said, score] : cases) {
    const RewardAnswer answer = answer_to(said);
    EXPECT_EQ(score_of(answer), score / 10) << said << failure_of(answer);
    EXPECT_EQ(parse_json(answer.extra)["judged"], score) << said;
  }
  EXPECT_EQ(score_of(answer_to("Score: -1", {.range = {-1, 1}})), 0);
  EXPECT_EQ(score_of(answer_to("[[B]] 3", {.pattern = R"(\]\] (\d))", .range = {1, 5}})), 0.5);
}

TEST(Judge, WithoutAScoreItIsAFailureByName) {  // RW-2
  EXPECT_EQ(failure_of(answer_to("I cannot say.")), "the judge gave no score: I cannot say.");
  EXPECT_EQ(failure_of(answer_to("")), "the judge gave no score: it said nothing");
  EXPECT_EQ(failure_of(answer_to(nullptr)), "the judge gave no score: it said nothing");
  EXPECT_EQ(failure_of(answer_to("Score: 11")),
            "the judge's score 11 is not within judge.range: Score: 11");
  for (const char* said : {"Score: \u22123", "Score: 10/100", "Score: 1,000", "Score: 1e1",
                           "Score: 3/5", "Score: 1.5.2", "Score: -", "Score:"})
    EXPECT_EQ(failure_of(answer_to(said)).substr(0, 24), "the judge gave no score:") << said;
  EXPECT_EQ(failure_of(answer_to("{\"score\": 1e300}")).substr(0, 25), "the judge's score 1e+300 ");
  // The last number of an answer that was cut may be incomplete: 1 may be the beginning of 10.
  for (const auto& [said, reason] :
       {std::pair("Well. Score: 1", "length"), std::pair("{\"score\": 1", "length"),
        std::pair("<think>Score: 9", "stop")})
    EXPECT_EQ(failure_of(answer_to(said, {}, reason)),
              std::string("judge.max_tokens cut the judge's answer: ") + said);
  for (const char* body :
       {"", "no JSON", "[]", "{}", R"({"choices": []})", R"({"choices": {"message": 1}})",
        R"({"choices": [{"message": {"content": 7}}]})", R"({"error": {"message": "no"}})"}) {
    const auto answers = judge_form({}).value().answers(body, 1);
    ASSERT_FALSE(answers) << body;
    expect_part(answers.error().message, "the server's answer is no chat completion");
  }
}

// An `extra` over its limit would be refused by whoever gets the score.
TEST(Judge, WhatItSaysIsBounded) {
  const std::string odd = std::string(4000, '\1') + "\nScore: 5";
  const RewardAnswer answer = answer_to(odd);
  EXPECT_EQ(score_of(answer), 0.5) << failure_of(answer);
  EXPECT_LE(answer.extra.size(), messages::kExtraBytesMax);
  EXPECT_EQ(parse_json(answer.extra)["judged"], 5.0);
  EXPECT_EQ(score_of(answer_to(std::string(1 << 20, '(') + " Score: 5")), 0.5);
}

TEST(Judge, SettingsThatCannotWorkAreRefused) {
  const auto fault = [](const JudgeReward& judge) {
    const auto form = judge_form(judge);
    return form ? "accepted" : form.error().where + ": " + form.error().message;
  };
  expect_part(fault({.prompt = "{{ completion"}), "prompt: ");
  EXPECT_EQ(fault({.prompt = "Is it good?"}), "prompt: the judge never sees the completion");
  EXPECT_EQ(fault({.pattern = "Score"}), "pattern: the pattern has no group");
  expect_part(fault({.pattern = "("}), "pattern: the pattern does not compile: ");
  EXPECT_EQ(fault({.range = {1, 1}}), "range: the range has no room between its ends");
  EXPECT_EQ(fault({.extra_body = R"({"n": 2})"}), "extra_body: a judge cannot have `n` of its own");
}

TEST(Judge, RewardsCompletionsByAServer) {
  Guarded<int> calls;
  const auto answer = [&](const http::HttpRequest& request) {
    EXPECT_EQ(request.target, "/v1/chat/completions");
    const std::string text = parse_json(request.body)["messages"][0]["content"];
    const bool again = calls.with([](int& count) { return ++count; }) == 1;
    if (text.find("[bad]") != text.npos) return http::HttpResponse{.body = chat_answer("Hm.")};
    if (again) return http::HttpResponse{.status = 503, .body = "loading"};
    return http::HttpResponse{
        .body = chat_answer(text.find("[good]") != text.npos ? "Yes.\nScore: 9" : "No.\nScore: 2")};
  };
  const auto server = *http::HttpServer::listen({}, {}, answer);
  const RewardParts reward =
      one({.type = VerifierType::kJudge,
           .http = {.url = "http://" + to_string(server->endpoint()), .concurrency = 2},
           .timeout = 20s,
           .retries = 1});
  const auto scores =
      judge(reward, {item("[good]"), item("poor"), item("[bad]"), item("[good]")}).value();
  EXPECT_EQ(value(scores[0]), 0.9);
  EXPECT_EQ(value(scores[1]), 0.2);
  EXPECT_EQ(reason(scores[2]), "the judge gave no score: Hm.");
  EXPECT_EQ(value(scores[3]), 0.9);
  EXPECT_EQ(extra(scores[0]), json({{"judged", 9.0}, {"judge", "Yes.\\nScore: 9"}}));
  expect_part(describe(reward), "type=judge url=");
}

TEST(Judge, ATemplateThatFailsForAnItemFailsThatItem) {
  const auto server = *http::HttpServer::listen({}, {}, [](const http::HttpRequest&) {
    return http::HttpResponse{.body = chat_answer("Score: 5")};
  });
  const RewardParts reward =
      one({.type = VerifierType::kJudge,
           .http = {.url = "http://" + to_string(server->endpoint())},
           .judge = {.prompt = "{{ completion }}{% if not data.ok %}{{ raise_exception('no ok') "
                               "}}{% endif %}"}});
  const auto scores = judge(reward, {item("a", "a", {{"ok", true}}), item("b")}).value();
  EXPECT_EQ(value(scores[0]), 0.5);
  expect_part(reason(scores[1]), "no ok");
}

TEST(Pattern, TheLastMatchIsFound) {
  const auto last = [](const char* pattern, const char* text) {
    return Pattern::compile(pattern).value().last(text).group.value_or("none");
  };
  EXPECT_EQ(last("(\\d)", "1 2 3"), "3");
  EXPECT_EQ(last("(\\d*)", "12 a"), "") << "an empty match moves on, and ends";
  EXPECT_EQ(last("(x)", "1 2 3"), "none");
  EXPECT_EQ(last("^(a)", "aa"), "a");
  EXPECT_EQ(last("(é)", "éé\xff"), "é");
}

}  // namespace
}  // namespace tandem::reward
