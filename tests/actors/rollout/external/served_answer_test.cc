// What becomes of a server's answer: a sample, or an error that says what is wrong.
#include "actors/rollout/external/served_answer.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/actors/rollout/engine_builder.h"

namespace tandem::rollout {
namespace {

constexpr PolicyVersion kThree{3}, kFour{4};
const std::vector<std::int32_t> kPrompt{4, 5, 6, 7, 8};

struct Reading {
  TinyModel model;
  EngineConfig config = tiny_engine_config();
  StopRules stop;
  std::map<std::string, PolicyVersion> versions{{"us-3", kThree}, {"us-4", kFour}};
  std::string id = "us-9";
  bool keeps_kv = true, needs_logprobs = true;

  Reading() {
    config.max_response_length = 4;
    stop = make_stop_rules(config, model.config()).value();
  }
  // Two completions: one that ends by eos, one by its length while the version changed.
  ServedAnswer answer() const {
    const std::int32_t eos = model.config().eos_token_ids.front();
    return {.id = id,
            .prompt = kPrompt,
            .completions = {{.tokens = {4, 5, eos},
                             .logprobs = {-1, -2, -0.5f},
                             .end = ServedEnd::kStop,
                             .versions = {{"us-3", 0, 3}}},
                            {.tokens = {6, 7, 8, 9},
                             .logprobs = {-1, -2, -3, 0},
                             .end = ServedEnd::kLength,
                             .versions = {{"us-3", 0, 1}, {"us-4", 1, 4}}}}};
  }
  Result<std::vector<messages::Trajectory>> read(const ServedAnswer& answer) const {
    return trajectories_of(answer,
                           {.id = id,
                            .prompt = kPrompt,
                            .n = 2,
                            .sent_under = kThree,
                            .keeps_kv = keeps_kv,
                            .needs_logprobs = needs_logprobs},
                           {.stop = stop,
                            .tokenizer = model.tokenizer(),
                            .vocabulary = static_cast<std::int32_t>(model.config().vocab_size),
                            .versions = versions});
  }
  std::string fault(const std::function<void(ServedAnswer&)>& change) const {
    ServedAnswer changed = answer();
    change(changed);
    const auto read_back = read(changed);
    return read_back ? "" : read_back.error().message;
  }
};

void expect_said(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << "expected `" << part << "` in: " << message;
}

TEST(ServedAnswer, BecomesTrajectoriesWithVersionsAndText) {
  Reading reading;
  const auto read = reading.read(reading.answer());
  ASSERT_TRUE(read) << read.error().message;
  const messages::Trajectory &first = (*read)[0], &second = (*read)[1];
  EXPECT_EQ(first.tokens.size(), 3u);
  EXPECT_FALSE(first.truncated);
  EXPECT_EQ(first.oldest, kThree);
  EXPECT_TRUE(second.truncated);
  ASSERT_EQ(second.versions.size(), 2u);
  EXPECT_EQ(second.versions[1].version, kFour);
  EXPECT_EQ(second.versions[1].begin, 1);
  EXPECT_EQ(second.oldest, kThree) << "EN-3: its keys and values are of version 3";
  reading.keeps_kv = false;
  reading.versions["us-3"] = kFour;
  EXPECT_EQ((*reading.read(reading.answer()))[1].oldest, kFour)
      << "keys and values were computed anew";
}

TEST(ServedAnswer, OfAnotherRequestIsNone_SV3) {
  const Reading reading;
  expect_said(reading.fault([](auto& a) { a.id = "us-8"; }), "`us-8`, not `us-9`");
  expect_said(reading.fault([](auto& a) { a.prompt.pop_back(); }), "another prompt, of 4 tokens");
  expect_said(reading.fault([](auto& a) { a.prompt[2] = 9; }), "another prompt, of 5 tokens");
  expect_said(reading.fault([](auto& a) { a.completions.pop_back(); }), "1 completions of 2");
}

TEST(ServedAnswer, EveryTokenHasALogprobAndAVersionOfOurs_SV1) {
  const Reading reading;
  const auto of_first = [](const std::function<void(ServedCompletion&)>& change) {
    return [change](ServedAnswer& a) { change(a.completions[0]); };
  };
  expect_said(reading.fault(of_first([](auto& c) { c.tokens[1] = 16; })),
              "token 16 is not in the vocabulary of 16");
  expect_said(reading.fault(of_first([](auto& c) { c.tokens[1] = -1; })), "token -1");
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 0.5f})
    expect_said(reading.fault(of_first([bad](auto& c) { c.logprobs[1] = bad; })),
                "a token has the log-probability");
  expect_said(reading.fault(of_first([](auto& c) { c.logprobs.pop_back(); })),
              "3 tokens have 2 log-probabilities");
  expect_said(reading.fault(of_first([](auto& c) { c.versions[0].label = "them-3"; })), "`them-3`");
  expect_said(reading.fault(of_first([](auto& c) { c.versions[0].end = 2; })), "cover 2 of 3");
  expect_said(reading.fault(of_first([](auto& c) { c.versions[0].begin = 1; })), "do not cover");
  expect_said(reading.fault(of_first([](auto& c) { c.versions[0].end = 4; })), "do not cover");
  expect_said(reading.fault(of_first([](auto& c) { c.versions.clear(); })), "cover 0 of 3");
}

TEST(ServedAnswer, OfAVersionThatWasReplacedBeforeIsNone_SV1) {
  Reading reading;
  reading.versions["us-3"] = PolicyVersion{2};
  const auto read = reading.read(reading.answer());
  ASSERT_FALSE(read);
  expect_said(read.error().message, "version 2, which version 3 had replaced");
}

TEST(ServedAnswer, EndsByOurRulesAlone_SV2) {
  const Reading reading;
  // The server went on behind an end token: what it sampled there is no part of the completion.
  ServedAnswer longer = reading.answer();
  longer.completions[0].tokens.push_back(4);
  longer.completions[0].logprobs.push_back(-1);
  longer.completions[0].versions[0].end = 4;
  const auto read = reading.read(longer);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)[0].tokens.size(), 3u);

  const auto cut = [](ServedEnd end) {
    return [end](ServedAnswer& a) {
      ServedCompletion& c = a.completions[1];
      c.tokens.pop_back();
      c.logprobs.pop_back();
      c.versions[1].end = 3;
      c.end = end;
    };
  };
  expect_said(reading.fault(cut(ServedEnd::kLength)), "cut after 3 tokens, and 4 were asked for");
  expect_said(reading.fault(cut(ServedEnd::kStop)), "by none of the job's rules");
  expect_said(reading.fault(cut(ServedEnd::kAborted)), "aborted the request after 3 tokens");
}

TEST(ServedAnswer, OfAnEvaluationNeedsNoLogprobs) {
  Reading reading;
  reading.needs_logprobs = false;
  ServedAnswer answer = reading.answer();
  for (ServedCompletion& completion : answer.completions) completion.logprobs.clear();
  EXPECT_TRUE(reading.read(answer));
}

}  // namespace
}  // namespace tandem::rollout
