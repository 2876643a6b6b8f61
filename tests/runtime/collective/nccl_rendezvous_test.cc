#include "runtime/collective/nccl_rendezvous.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem::collective {
namespace {

device::Manifest two_tensors() {
  device::Manifest manifest;
  manifest.add("embed.weight", device::DType::kF32, {32, 16});
  manifest.add("norm.weight", device::DType::kF32, {16});
  return manifest;
}

std::string difference(const device::Manifest& ours, const device::Manifest& theirs) {
  const Result<void> checked = check_layouts(ours, theirs);
  return checked ? "" : checked.error().message;
}

TEST(NcclRendezvous, NV1TheFirstTensorThatDiffersIsNamed) {
  const device::Manifest ours = two_tensors();
  EXPECT_EQ(difference(ours, two_tensors()), "");
  device::Manifest renamed = ours;
  renamed.parameters[1].name = "final_norm.weight";
  EXPECT_EQ(difference(ours, renamed),
            "tensor 1 is norm.weight (f32, [16], at byte 2048) here and final_norm.weight (f32, "
            "[16], at byte 2048) there");
  device::Manifest other_dtype;
  other_dtype.add("embed.weight", device::DType::kBF16, {32, 16});
  other_dtype.add("norm.weight", device::DType::kF32, {16});
  EXPECT_EQ(difference(ours, other_dtype),
            "tensor 0 is embed.weight (f32, [32, 16], at byte 0) here and embed.weight (bf16, [32, "
            "16], at byte 0) there");
  device::Manifest longer = ours;
  longer.add("head.weight", device::DType::kF32, {2});
  EXPECT_EQ(difference(ours, longer),
            "tensor 2, head.weight (f32, [2], at byte 2112), is there and not here");
  EXPECT_EQ(difference(longer, ours),
            "tensor 2, head.weight (f32, [2], at byte 2112), is here and not there");
  device::Manifest padded = ours;
  padded.bytes_total += 64;
  EXPECT_EQ(difference(ours, padded),
            "the tensors are the same, and take 2112 bytes here and 2176 there");
}

TEST(NcclRendezvous, NV1ARankOfAnotherLayoutDoesNotJoin) {
  const auto refusal = [](const NcclRendezvous& offered, int rank) {
    const Result<void> checked = check_rendezvous(offered, rank, 17);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(refusal({.epoch = 3, .size = 2, .layout_hash = 17}, 1), "");
  EXPECT_EQ(refusal({.epoch = 3, .size = 2, .layout_hash = 18}, 1),
            "epoch 3 is for weights of another layout (hash 18, not 17)");
  EXPECT_EQ(refusal({.epoch = 3, .size = 2, .layout_hash = 17}, 2),
            "epoch 3 has 2 ranks, and no rank 2");
  EXPECT_EQ(refusal({.epoch = 3, .size = 1000, .layout_hash = 17}, 2),
            "epoch 3 has 1000 ranks, not 1 to 256");
}

}  // namespace
}  // namespace tandem::collective
