#include "runtime/device/tensor_view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace tandem::device {
namespace {

TEST(TensorView, PartsOfAFusedBufferAreViews) {
  std::vector<float> data(4 * 10);
  std::iota(data.begin(), data.end(), 0.0f);
  const TensorView fused = tensor(data.data(), {4, 10});
  EXPECT_TRUE(fused.dense());
  EXPECT_EQ(fused.elements(), 40);
  const TensorView keys = split_heads(columns(fused, 4, 6), 2);
  EXPECT_EQ(keys.rank, 3);
  EXPECT_EQ(keys.dim(1), 2);
  EXPECT_EQ(keys.dim(2), 3);
  EXPECT_FALSE(keys.dense());
  const TensorView row = rows(keys, 2, 1);
  EXPECT_EQ(row.f32()[0], 24.0f);
  EXPECT_TRUE(row.dense());
  EXPECT_EQ(reshape(fused, {8, 5}).dim(0), 8);
}

TEST(TensorView, AnEmptyViewHasNoElements) {
  EXPECT_TRUE(TensorView{}.empty());
  EXPECT_EQ(TensorView{}.elements(), 0);
}

TEST(TensorViewDeathTest, WrongUseIsABug) {
  std::vector<float> data(6);
  const TensorView view = tensor(data.data(), {2, 3});
  EXPECT_DEATH(view.i32(), "dtype");
  EXPECT_DEATH(view.dim(2), "rank");
  EXPECT_DEATH(rows(view, 1, 2), "dim");
  EXPECT_DEATH(reshape(view, {7}), "elements");
}

}  // namespace
}  // namespace tandem::device
