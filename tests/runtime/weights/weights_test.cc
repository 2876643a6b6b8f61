#include "runtime/weights/weights.h"

#include <gtest/gtest.h>

namespace tandem::runtime {
namespace {

TEST(WeightsNames, TellRunsApart) {
  EXPECT_EQ(weights_name("a-1", "/x/runs/a-1"), weights_name("a-1", "/x/runs/../runs/a-1"));
  EXPECT_NE(weights_name("a-1", "/x/runs/a-1"), weights_name("a-1", "/y/runs/a-1"));
  EXPECT_TRUE(weights_name("a-1", "/x").starts_with("a-1-"));
}

TEST(WeightsLayouts, AgreeForEqualManifestsOnly) {
  Manifest one;
  one.add("w", DType::kF32, {4, 8});
  Manifest same;
  same.add("w", DType::kF32, {4, 8});
  Manifest other;
  other.add("w", DType::kF32, {8, 4});
  EXPECT_EQ(layout_of(one).hash, layout_of(same).hash);
  EXPECT_NE(layout_of(one).hash, layout_of(other).hash);
  EXPECT_EQ(layout_of(one).arena_bytes, one.bytes_total);
  EXPECT_NE(layout_of(one).manifest_json.find("\"w\""), std::string::npos);
}

}  // namespace
}  // namespace tandem::runtime
