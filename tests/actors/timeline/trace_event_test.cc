// The text of each kind of event.
#include "actors/timeline/trace_event.h"

#include <gtest/gtest.h>

#include <limits>

#include "runtime/base/json.h"

namespace tandem::timeline {
namespace {

std::string json_of(const TraceEvent& event) {
  std::string text;
  append_json(event, text);
  EXPECT_FALSE(parse_json(text).is_discarded()) << text;
  return text;
}

TEST(TraceEventTest, ASpanHasALength) {
  EXPECT_EQ(json_of({.phase = TracePhase::kSpan,
                     .name = "step 1",
                     .category = "train",
                     .row = {2, 9},
                     .at = 5,
                     .lasts = 7,
                     .arguments = {{"groups", std::int64_t{3}}, {"mean", 0.5}}}),
            R"({"ph":"X","name":"step 1","cat":"train","pid":2,"tid":9,"ts":5,"dur":7,)"
            R"("args":{"groups":3,"mean":0.5}})");
}

TEST(TraceEventTest, AsynchronousSpansHaveAnIdWithinTheirProcess) {
  EXPECT_EQ(
      json_of({.phase = TracePhase::kBegin,
               .name = "group",
               .category = "group",
               .row = {5, 0},
               .id = 17}),
      R"({"ph":"b","name":"group","cat":"group","pid":5,"tid":0,"ts":0,"id2":{"local":"17"}})");
}

TEST(TraceEventTest, AnInstantHasAScope) {
  EXPECT_EQ(json_of({.phase = TracePhase::kInstant, .name = "up"}),
            R"({"ph":"i","name":"up","pid":0,"tid":0,"ts":0,"s":"t"})");
}

TEST(TraceEventTest, AnyTextAndNumberIsJson) {
  const std::string odd = "a \"quoted\" \\ \n\x01 \xff line";
  const auto parsed =
      parse_json(json_of({.name = odd,
                          .arguments = {{"text", odd},
                                        {"none", std::numeric_limits<double>::quiet_NaN()},
                                        {"least", std::numeric_limits<std::int64_t>::min()}}}));
  ASSERT_TRUE(parsed.is_object());
  EXPECT_EQ(parsed["name"], "a \"quoted\" \\ \n\x01 \xEF\xBF\xBD line");
  EXPECT_TRUE(parsed["args"]["none"].is_null());
  EXPECT_EQ(parsed["args"]["least"], std::numeric_limits<std::int64_t>::min());
}

}  // namespace
}  // namespace tandem::timeline
