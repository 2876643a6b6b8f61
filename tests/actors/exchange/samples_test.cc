#include "actors/exchange/samples.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace tandem::exchange {
namespace {

const ExchangeRecord kRecord{
    .prompt = "<|user|>1+1",
    .data = R"({"sum": {"sum": 2}, "from": "sums", "messages": [{"role": "user", "content": "1+1"},
             {"role": "assistant", "content": "let me see"}]})"};
const RecordKeys kKeys{.answer = "sum", .data_source = "from"};

TEST(Samples, CarryTheFieldsOfTheirRecord) {
  messages::GroupPayload payload{.group = GroupId{4}, .prompt = kRecord.prompt};
  payload.trajectories.push_back({.text = "2"});
  const auto lines = sample_lines({.step = StepId{3},
                                   .record = kRecord,
                                   .keys = kKeys,
                                   .rewards = {1},
                                   .finishes = {{}},
                                   .notes = {},
                                   .rows_max = 1},
                                  payload);
  ASSERT_EQ(lines.size(), 1U);
  const nlohmann::json failed = parse_json(failure_line(
      {.step = StepId{3}, .record = kRecord, .keys = kKeys, .reason = "too slow"}, nullptr));
  EXPECT_EQ(failed["error"], "too slow");
  for (const nlohmann::json& line : {parse_json(lines.front()), failed}) {
    EXPECT_EQ(line["step"], 3);
    EXPECT_EQ(line["prompt"], "<|user|>1+1");
    EXPECT_EQ(line["answer"]["sum"], 2);
    EXPECT_EQ(line["data_source"], "sums");
    EXPECT_EQ(line["user"], "1+1");
  }
}

TEST(Samples, OfAStepCarryWhatTheRewardSaidAndAreNoMoreThanAreKept) {
  messages::GroupPayload payload{.group = GroupId{4}, .prompt = kRecord.prompt};
  payload.trajectories.assign(3, {.text = "2"});
  const auto lines = sample_lines({.step = StepId{3},
                                   .record = kRecord,
                                   .keys = kKeys,
                                   .rewards = {1, -1, 0},
                                   .finishes = {{}, {}, {}},
                                   .notes = {{R"({"format": 1})", "", ""}, {"", "late", ""}},
                                   .rows_max = 2},
                                  payload);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(parse_json(lines[0])["extra"]["format"], 1);
  EXPECT_FALSE(parse_json(lines[0]).contains("error"));
  EXPECT_EQ(parse_json(lines[1])["error"], "late");
  EXPECT_EQ(parse_json(lines[1])["reward"], -1);
  EXPECT_FALSE(parse_json(lines[1]).contains("extra"));
}

}  // namespace
}  // namespace tandem::exchange
