#include "runtime/device/arena.h"

#include <gtest/gtest.h>

#include <utility>

namespace tandem::device {
namespace {

Manifest make_manifest() {
  Manifest manifest;
  manifest.add("norm", DType::kF32, {10});
  manifest.add("q", DType::kF32, {8, 16});
  manifest.add("k", DType::kF32, {4, 16});
  manifest.add("v", DType::kF32, {4, 16});
  return manifest;
}

TEST(Manifest, ParametersAreAlignedAndAscending) {  // MF-1
  const Manifest manifest = make_manifest();
  std::size_t end = 0;
  for (const ParameterSpec& spec : manifest.parameters) {
    EXPECT_EQ(spec.offset_bytes % kAlignmentBytes, 0u);
    EXPECT_GE(spec.offset_bytes, end);
    EXPECT_LT(spec.offset_bytes, end + kAlignmentBytes);
    end = spec.offset_bytes + spec.bytes;
  }
  EXPECT_EQ(manifest.bytes_total, align_up(end));
  EXPECT_EQ(manifest.elements(), 10u + 16 * 16);
  EXPECT_EQ(manifest.find("k")->bytes, 256u);
  EXPECT_EQ(manifest.find("o"), nullptr);
  EXPECT_EQ(manifest, make_manifest());
}

TEST(Arena, NeighboursFuseIntoOneOperand) {  // MF-2
  const Arena arena = *Arena::allocate(make_manifest(), "a test");
  const TensorView fused = arena.fused("q", "v");
  EXPECT_EQ(fused.dim(0), 16);
  EXPECT_EQ(fused.dim(1), 16);
  fused.f32()[8 * 16] = 1.0f;
  fused.f32()[12 * 16] = 2.0f;
  EXPECT_EQ(arena.view("k").f32()[0], 1.0f);
  EXPECT_EQ(arena.view("v").f32()[0], 2.0f);
}

TEST(Arena, ViewsStayValidWhenItMoves) {
  Arena first = *Arena::allocate(make_manifest(), "a test");
  const TensorView norm = first.view("norm");
  norm.f32()[9] = 3.0f;
  const Arena second = std::move(first);
  EXPECT_EQ(second.view("norm").f32(), norm.f32());
  EXPECT_EQ(second.f32()[9], 3.0f);
  EXPECT_EQ(second.f32().size(), second.manifest().bytes_total / 4);
}

TEST(ArenaDeathTest, UnknownNamesAndGapsAreBugs) {
  const Arena arena = *Arena::allocate(make_manifest(), "a test");
  EXPECT_DEATH(arena.view("o"), "spec");
  EXPECT_DEATH(arena.fused("norm", "q"), "offset_bytes");
}

}  // namespace
}  // namespace tandem::device
