#include "runtime/weights/weights_config.h"

#include <gtest/gtest.h>

namespace tandem::weights {
namespace {

TEST(WeightsNames, TellRunsApart) {
  EXPECT_EQ(weights_name("a-1", "/x/runs/a-1"), weights_name("a-1", "/x/runs/../runs/a-1"));
  EXPECT_NE(weights_name("a-1", "/x/runs/a-1"), weights_name("a-1", "/y/runs/a-1"));
  EXPECT_TRUE(weights_name("a-1", "/x").starts_with("a-1-"));
}

TEST(WeightsLayouts, AgreeForEqualManifestsOnly) {
  device::Manifest one;
  one.add("w", device::DType::kF32, {4, 8});
  device::Manifest same;
  same.add("w", device::DType::kF32, {4, 8});
  device::Manifest other;
  other.add("w", device::DType::kF32, {8, 4});
  EXPECT_EQ(layout_of(one).hash, layout_of(same).hash);
  EXPECT_NE(layout_of(one).hash, layout_of(other).hash);
  EXPECT_EQ(layout_of(one).arena_bytes, one.bytes_total);
  EXPECT_NE(layout_of(one).manifest_json.find("\"w\""), std::string::npos);
  EXPECT_EQ(layout_difference(layout_of(one).manifest_json, layout_of(other).manifest_json),
            "tensor 0 is w (f32, [4, 8], at byte 0) here and w (f32, [8, 4], at byte 0) there");
  for (const char* strange : {"", "7", "[]", "{}", R"({"bytes_total":1,"parameters":[1]})",
                              R"({"bytes_total":1,"parameters":[{"name":1,"dtype":2,"shape":3,)"
                              R"("offset_bytes":4,"bytes":5}]})"})
    EXPECT_EQ(layout_difference(layout_of(one).manifest_json, strange),
              "one of the two cannot be read");
}

}  // namespace
}  // namespace tandem::weights
