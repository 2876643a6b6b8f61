// A native engine whose weights are damaged.
//
// Tests actors/rollout/native_engine.h.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/actors/rollout/engine_builder.h"

namespace tandem::rollout {
namespace {

class EngineFailure : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Scheduling, EngineFailure, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Async" : "Sync"; });

TEST_P(EngineFailure, LogitsThatAreNoNumbersFailTheEngine_EN5) {
  const TinyModel model;
  EngineConfig config = tiny_engine_config();
  config.args.async_scheduling = GetParam();
  const auto engine = model.engine(config);
  engine->begin_update(PolicyVersion{1});
  const std::span<std::byte> sink = engine->weight_sink().value();
  std::ranges::fill(sink, std::byte{0xff});  // NaN in every format
  engine->finish_update(sink);
  engine->submit(group_work(1, "36+01="));
  std::vector<EngineEvent> events;
  while (engine->can_step() && events.empty()) {
    engine->step();
    events = engine->poll();
  }
  ASSERT_EQ(events.size(), 1u);
  const auto* failed = std::get_if<EngineFailed>(&events[0]);
  ASSERT_NE(failed, nullptr) << "an answer of arbitrary tokens";
  EXPECT_NE(failed->error.message.find("version 1"), std::string::npos) << failed->error.message;
  EXPECT_FALSE(engine->can_step());
}

}  // namespace
}  // namespace tandem::rollout
