// Lines of reward programs: which are scores, and what is said about the others.
#include "actors/reward/reward_answer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "actors/messages/reward.h"

namespace tandem::reward {
namespace {

std::string reason_of(const std::string& line) {
  const auto answer = read_reward_answer(line);
  if (!answer) return "no answer";
  const auto* reason = std::get_if<std::string>(&answer->score);
  return reason ? *reason : "a score";
}

TEST(RewardAnswer, ANumberOrABooleanIsAScore) {
  const std::pair<const char*, double> scores[] = {
      {R"({"id": 7, "score": 1})", 1},
      {R"({"id": 7, "score": -2.5, "error": null})", -2.5},
      {R"({"id": 7, "score": true})", 1},
      {R"({"id": 7, "score": false})", 0},
      {R"({"id": 7, "score": 3e38})", 3e38},
      {R"({"id": 7, "score": 1e-400})", 0},
      // Other fields beside the score do no harm.
      {R"({"id": 7, "score": 0.5, "parts": {"format": NaN}})", 0.5}};
  for (const auto& [line, score] : scores) {
    const auto answer = read_reward_answer(line);
    ASSERT_TRUE(answer && answer->id) << line;
    EXPECT_EQ(*answer->id, 7u);
    ASSERT_TRUE(std::holds_alternative<double>(answer->score)) << reason_of(line);
    EXPECT_EQ(std::get<double>(answer->score), score) << line;
  }
}

TEST(RewardAnswer, ANumberThatIsNotFiniteIsNamedAsItIsWritten) {
  for (const std::string number :
       {"NaN", "Infinity", "-Infinity", "nan", "-nan", "inf", "-inf", "1e400", "-1e400", "1e+39"})
    EXPECT_EQ(reason_of(R"({"id": 7, "score": )" + number + "}"),
              "score is " + number + "; a score must be a finite number, at most 3.4e38 in size");
  EXPECT_EQ(reason_of(R"({"id": 7, "error": "NaN \" NaN", "x": NaN})"),
            R"(the program reported "NaN \" NaN")")
      << "text in quotes is left alone";
}

TEST(RewardAnswer, AnotherTypeIsNamed) {
  const std::pair<const char*, const char*> found[] = {{R"("high")", "a string"},
                                                       {R"("1.0")", "a string"},
                                                       {"null", "null"},
                                                       {"[1]", "a list"},
                                                       {R"({"value": 1})", "an object"}};
  for (const auto& [score, kind] : found) {
    const std::string line = std::string(R"({"id": 7, "score": )") + score + "}";
    EXPECT_EQ(reason_of(line), std::string("score must be a number, found ") + kind + ": " + line);
  }
  EXPECT_EQ(reason_of(R"({"id": 7})"), R"(the answer lacks a score: {"id": 7})");
  EXPECT_EQ(reason_of(R"({"id": 7, "error": "no"})"), R"(the program reported "no")");
}

// {"not finite": …} stands for a number that JSON cannot have, where a program has not printed it.
TEST(RewardAnswer, AnObjectThatLooksLikeANumberInDisguiseIsAnObject) {
  for (const std::string score : {R"({"not finite": 3})", R"({"not finite": "no"})"})
    EXPECT_EQ(reason_of(R"({"id": 7, "score": )" + score + "}"),
              R"(score must be a number, found an object: {"id": 7, "score": )" + score + "}");
  const auto answer =
      read_reward_answer(R"({"id": 7, "score": 1, "extra": {"a": {"not finite": 3}, "b": NaN}})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->extra, R"({"a":{"not finite":3},"b":"NaN"})");
}

TEST(RewardAnswer, AnAnswerWithoutItsIdIsSaidToLackIt) {
  EXPECT_EQ(reason_of(R"({"score": 1})"), R"(the answer lacks the id of its line: {"score": 1})");
  EXPECT_EQ(reason_of(R"({"error": "no"})"),
            R"(the answer lacks the id of its line: {"error": "no"})");
  EXPECT_EQ(reason_of(R"({"id": "7", "score": 1})"),
            "id must be the number that the line has, found a string: "
            R"({"id": "7", "score": 1})");
  EXPECT_EQ(reason_of(R"({"id": -1, "score": 1})"),
            "id must be the number that the line has, found the number -1: "
            R"({"id": -1, "score": 1})");
  EXPECT_FALSE(read_reward_answer(R"({"score": 1})")->id);
}

TEST(RewardAnswer, OtherOutputIsNoAnswer) {
  for (const char* const line : {"loading the judge", "{", "1.0", "NaN", "[1, 2]",
                                 "{\"id\": 7, NaN", R"({"level": "info"})", "\"{", "{\"a\\"})
    EXPECT_EQ(reason_of(line), "no answer") << line;
}

TEST(RewardAnswer, AReasonIsShortWhateverTheLine) {
  const std::string number(100'000, '9');
  EXPECT_LT(reason_of(R"({"id": 7, "score": )" + number + "}").size(), 200u);
  EXPECT_LT(reason_of(R"({"id": 7, "score": ")" + number + "\"}").size(), 400u);
}

TEST(RewardAnswer, AnObjectExtraIsKeptBesideTheScore) {
  const auto answer = read_reward_answer(
      R"({"id": 7, "score": 1, "extra": {"format": true, "parts": [0.5, NaN], "pred": "42"}})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(std::get<double>(answer->score), 1);
  EXPECT_EQ(answer->extra, R"({"format":true,"parts":[0.5,"NaN"],"pred":"42"})");
  EXPECT_FALSE(answer->extra_fault);
  EXPECT_EQ(answer->vote, messages::vote_of("42"));
  const auto number = read_reward_answer(R"({"id": 7, "score": 1, "extra": {"pred": 42}})");
  EXPECT_EQ(number->vote, messages::vote_of("42"));
  const auto none = read_reward_answer(R"({"id": 7, "score": 1, "extra": null})");
  EXPECT_TRUE(none->extra.empty() && !none->extra_fault && !none->vote);
}

TEST(RewardAnswer, AnExtraThatCannotBeKeptIsLeftOutAloud) {
  const auto list = read_reward_answer(R"({"id": 7, "score": 1, "extra": [1]})");
  ASSERT_TRUE(list && list->extra_fault);
  EXPECT_EQ(std::get<double>(list->score), 1) << "the score counts";
  EXPECT_EQ(*list->extra_fault, "extra must be an object, found a list; it is left out");
  const auto number = read_reward_answer(R"({"id": 7, "score": 1, "extra": -Infinity})");
  ASSERT_TRUE(number && number->extra_fault);
  EXPECT_EQ(*number->extra_fault,
            "extra must be an object, found the number -Infinity; it is left out");
  const std::string long_text(messages::kExtraBytesMax, 'x');
  const auto large =
      read_reward_answer(R"({"id": 7, "score": 1, "extra": {"a": ")" + long_text + "\"}}");
  ASSERT_TRUE(large && large->extra_fault);
  EXPECT_TRUE(large->extra.empty());
  EXPECT_EQ(*large->extra_fault,
            "extra has 4104 bytes of JSON, more than the 4096 that are kept; it is left out");
}

}  // namespace
}  // namespace tandem::reward
