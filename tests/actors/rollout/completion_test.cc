#include "actors/rollout/completion.h"

#include <gtest/gtest.h>

namespace tandem::rollout {
namespace {

// Ids: 0 pad, 1 eos (special), 2 "a", 3 "b", 4 "c", 5 "ab", 6 "bc", 7 and 8 the two bytes of "é".
model::Tokenizer tokenizer() {
  const std::string json = R"({"added_tokens": [
      {"id": 0, "content": "<pad>", "special": true, "normalized": false, "single_word": false,
       "lstrip": false, "rstrip": false},
      {"id": 1, "content": "<eos>", "special": true, "normalized": false, "single_word": false,
       "lstrip": false, "rstrip": false}],
    "normalizer": null, "post_processor": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "merges": ["a b", "b c"], "vocab": {"<pad>": 0, "<eos>": 1, "a": 2,
      "b": 3, "c": 4, "ab": 5, "bc": 6, "Ã": 7, "©": 8}}})";
  Result<model::Tokenizer> parsed = model::Tokenizer::parse(json, "test");
  CHECK(parsed.has_value());
  return *std::move(parsed);
}

model::ModelConfig model() {
  model::ModelConfig config;
  config.vocab_size = 9;
  config.eos_token_ids = {1};
  return config;
}

struct Finished {
  messages::Trajectory trajectory;
  std::size_t used = 0;  // tokens that were pushed
};

// Pushes tokens until it ends, which it must.
Finished push_all(const EngineConfig& config, const std::vector<std::int32_t>& tokens) {
  static const model::Tokenizer words = tokenizer();
  const Result<StopRules> rules = make_stop_rules(config, model());
  CHECK(rules.has_value());
  Completion completion(*rules, words);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto end = completion.push({.token = tokens[i], .logprob = -1.0f});
    if (!end) continue;
    Finished done{completion.take(), i + 1};
    EXPECT_EQ(done.trajectory.truncated, *end == messages::FinishReason::kLength);
    EXPECT_EQ(done.trajectory.tokens.size(), i + 1);
    return done;
  }
  ADD_FAILURE() << "it did not end";
  return {};
}

TEST(Completion, EosIsKeptAmongTheTokensAndNotInTheText) {
  const Finished done = push_all({.max_response_length = 10}, {2, 6, 1, 2});
  EXPECT_EQ(done.used, 3u);
  EXPECT_EQ(done.trajectory.text, "abc");
  EXPECT_FALSE(done.trajectory.truncated);
}

TEST(Completion, AStopStringMayBeginAndEndInsideTokens) {
  // "a" + "ab" + "bc": the stop "bb" spans the last two and leaves "aa".
  const Finished done =
      push_all({.sampling = {.stop = {"bb"}}, .max_response_length = 10}, {2, 5, 6, 2});
  EXPECT_EQ(done.used, 3u);
  EXPECT_EQ(done.trajectory.text, "aa");
}

TEST(Completion, TheFirstStopStringToBeginWins) {
  const Finished done =
      push_all({.sampling = {.stop = {"c", "bc"}}, .max_response_length = 10}, {2, 6});
  EXPECT_EQ(done.trajectory.text, "a");
}

TEST(Completion, AStopStringOfSpecialTokensIsNotText) {
  const Finished done =
      push_all({.sampling = {.stop = {"<eos>"}}, .max_response_length = 3}, {2, 0, 3});
  EXPECT_TRUE(done.trajectory.truncated);
  EXPECT_EQ(done.trajectory.text, "ab");
}

TEST(Completion, NothingEndsItBeforeMinTokens) {
  const EngineConfig config{.sampling = {.min_tokens = 3, .stop = {"aa"}, .stop_token_ids = {4}},
                            .max_response_length = 10};
  // "aa" is complete at two tokens: text like any other; "ba" + "a" completes another one later.
  const Finished done = push_all(config, {2, 2, 3, 2, 2, 4});
  EXPECT_EQ(done.used, 5u);
  EXPECT_EQ(done.trajectory.text, "aab");

  const Result<StopRules> rules = make_stop_rules(config, model());
  const model::Tokenizer words = tokenizer();
  Completion completion(*rules, words);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(std::vector<std::int32_t>(completion.banned(0).begin(), completion.banned(0).end()),
              (std::vector<std::int32_t>{1, 4}));
    EXPECT_FALSE(completion.push({.token = 3}));
  }
  EXPECT_TRUE(completion.banned(0).empty());
}

TEST(Completion, ItsLengthTruncatesIt) {
  const Finished done = push_all({.max_response_length = 2}, {7, 8, 2});
  EXPECT_TRUE(done.trajectory.truncated);
  EXPECT_EQ(done.trajectory.text, "é");
  EXPECT_FALSE(push_all({.max_response_length = 2}, {2, 1}).trajectory.truncated);
}

TEST(Completion, SpansAndOldestFollowVersions) {  // EN-3
  const model::Tokenizer words = tokenizer();
  const Result<StopRules> rules = make_stop_rules({.max_response_length = 4}, model());
  Completion completion(*rules, words);
  completion.push({.token = 2, .version = PolicyVersion{5}, .kv_oldest = PolicyVersion{4}});
  completion.push({.token = 2, .version = PolicyVersion{6}, .kv_oldest = PolicyVersion{6}});
  completion.push({.token = 2, .version = PolicyVersion{6}, .kv_oldest = PolicyVersion{6}});
  completion.push({.token = 1, .version = PolicyVersion{7}, .kv_oldest = PolicyVersion{6}});
  const messages::Trajectory done = completion.take();
  ASSERT_EQ(done.versions.size(), 3u);
  EXPECT_EQ(done.versions[1].begin, 1);
  EXPECT_EQ(done.versions[1].end, 3);
  EXPECT_EQ(done.oldest, PolicyVersion{4});
}

TEST(Completion, RulesThatMakeNoSenseAreRefused) {
  EXPECT_FALSE(make_stop_rules({.sampling = {.stop = {""}}}, model()));
  EXPECT_FALSE(make_stop_rules({.sampling = {.stop_token_ids = {9}}}, model()));
  EXPECT_FALSE(make_stop_rules({.sampling = {.min_tokens = 65}}, model()));
}

}  // namespace
}  // namespace tandem::rollout
