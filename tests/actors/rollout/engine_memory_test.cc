// An engine holds one copy of its weights, and a version computes the same numbers from whichever
// memory it was packed.
//
// Tests actors/rollout/native_engine.h.
#include <gtest/gtest.h>

#include "actors/model/kv_cache.h"
#include "actors/model/weights.h"
#include "actors/rollout/native_engine.h"
#include "runtime/device/memory.h"
#include "tests/actors/model/tiny_model.h"
#include "tests/actors/rollout/engine_builder.h"

namespace tandem::rollout {
namespace {

class NativeEngineMemory : public ::testing::TestWithParam<device::DType> {};
INSTANTIATE_TEST_SUITE_P(Of, NativeEngineMemory, ::testing::ValuesIn(model::testing::kDTypes),
                         [](const auto& test) { return device::name(test.param); });

// No arena lies beside the packed weights, unless a version has to be copied.
TEST_P(NativeEngineMemory, OneCopyOfTheWeights) {
  const TinyModel model(2, GetParam());
  const EngineConfig config = tiny_engine_config();
  const std::size_t arena = model.weights(PolicyVersion{0}).bytes().size();
  const std::size_t before = device::host_blocks().bytes_now;
  const auto engine = model.engine(config);
  model.update(*engine, PolicyVersion{1});
  const std::size_t held = device::host_blocks().bytes_now - before;
  const std::size_t pages = static_cast<std::size_t>(engine->pages_total()) *
                            model::KvCache::page_bytes(model.config(), config.args.block_size);
  const std::size_t planned =
      NativeEngine::bytes_beside_pages(model.config(), config, device::DeviceKind::kCpu) + pages;
  EXPECT_LT(held, planned + arena);
  EXPECT_GE(held, pages + model::Weights::bytes(model.config(), model::WeightsUse::kInference,
                                                device::DeviceKind::kCpu));
  ASSERT_TRUE(engine->weight_sink());
  ASSERT_TRUE(engine->weight_sink());
  EXPECT_EQ(device::host_blocks().bytes_now - before, held + arena);
}

TEST_P(NativeEngineMemory, AVersionInPlaceIsTheSameAsOneFromTheSink) {
  const TinyModel model(2, GetParam());
  const auto in_place = model.engine(tiny_engine_config()),
             copied = model.engine(tiny_engine_config());
  model.update(*in_place, PolicyVersion{1});
  copied->begin_update(PolicyVersion{1});
  model.fill_sink(*copied, PolicyVersion{1});
  copied->finish_update(copied->weight_sink().value());
  const messages::GroupWork group = group_work(0, "36+01=");
  in_place->submit(group);
  copied->submit(group);
  expect_same(run_to_end(*in_place).at(GroupId{0}), run_to_end(*copied).at(GroupId{0}), "in place");
}

}  // namespace
}  // namespace tandem::rollout
