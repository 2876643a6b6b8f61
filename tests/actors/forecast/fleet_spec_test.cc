#include "actors/forecast/fleet_spec.h"

#include <gtest/gtest.h>

namespace tandem::forecast {
namespace {

TEST(FleetSpec, TimesHaveUnits) {
  EXPECT_DOUBLE_EQ(*parse_seconds("150us"), 150e-6);
  EXPECT_DOUBLE_EQ(*parse_seconds("6.2ms"), 6.2e-3);
  EXPECT_DOUBLE_EQ(*parse_seconds("2m"), 120);
  EXPECT_DOUBLE_EQ(*parse_seconds("1d"), 86400);
  EXPECT_DOUBLE_EQ(*parse_seconds("20"), 20);
  for (const char* const text : {"", "ms", "-1s", "1w", "nan", "inf", "1 s", "1e400"})
    EXPECT_FALSE(parse_seconds(text)) << text;
}

TEST(FleetSpec, AnEngineHasANameAndCosts) {
  const auto engine =
      parse_engine("B:step=9ms,seq=0.3ms,prompt=20us,context=1ns,install=0.4,fetch=2");
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->name, "B");
  EXPECT_DOUBLE_EQ(engine->step_s, 9e-3);
  EXPECT_DOUBLE_EQ(engine->sequence_s, 3e-4);
  EXPECT_DOUBLE_EQ(engine->prompt_token_s, 2e-5);
  EXPECT_DOUBLE_EQ(engine->context_token_s, 1e-9);
  EXPECT_DOUBLE_EQ(engine->install_s, 0.4);
  EXPECT_DOUBLE_EQ(engine->fetch_s, 2);
  EXPECT_DOUBLE_EQ(parse_engine("seq=1ms", {.step_s = 5})->step_s, 5);
  for (const char* const text : {"", "step", "step=", "speed=1ms", "step=1ms,,", "step=0,seq=0"})
    EXPECT_FALSE(parse_engine(text)) << text;
}

TEST(FleetSpec, AFleetHasKindsOfEngines) {
  const std::vector<EngineCosts> engines{{.name = "A", .step_s = 1}, {.name = "B", .step_s = 2}};
  const auto fleet = parse_fleet("2xA+3xB", engines);
  ASSERT_TRUE(fleet);
  ASSERT_EQ(fleet->size(), 5u);
  EXPECT_EQ((*fleet)[1].name, "A");
  EXPECT_EQ((*fleet)[2].name, "B");
  EXPECT_EQ(parse_fleet("64", {{.name = "", .step_s = 1}})->size(), 64u);
  for (const char* const text :
       {"", "0xA", "-1xA", "2xC", "2", "A", "2xA+", "2yA", "100001xA", "60000xA+60000xB"})
    EXPECT_FALSE(parse_fleet(text, engines)) << text;
}

}  // namespace
}  // namespace tandem::forecast
