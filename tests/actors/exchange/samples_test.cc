#include "actors/exchange/samples.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace tandem::actors {
namespace {

const ExchangeRecord kRecord{
    .prompt = "<|user|>1+1",
    .data = R"({"sum": {"sum": 2}, "from": "sums", "messages": [{"role": "user", "content": "1+1"},
             {"role": "assistant", "content": "let me see"}]})"};
const RecordKeys kKeys{.answer = "sum", .data_source = "from"};

TEST(Samples, CarryTheFieldsOfTheirRecord) {
  GroupPayload payload{.group = GroupId{4}, .prompt = kRecord.prompt};
  payload.trajectories.push_back({.text = "2"});
  const auto lines = sample_lines(
      {.step = StepId{3}, .record = kRecord, .keys = kKeys, .rewards = {1}, .finishes = {{}}},
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

}  // namespace
}  // namespace tandem::actors
