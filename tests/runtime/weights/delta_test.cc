// What has changed between two versions, on random layouts and versions (WD-1, WD-2).
#include "runtime/weights/delta.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/digest.h"
#include "runtime/base/rng.h"

namespace tandem::weights {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kBlock = 64 << 10;

// Tensors whose sizes are around those of blocks and of the words of a bitmap.
WeightsLayout random_layout(Rng& rng) {
  constexpr std::uint64_t kSizes[] = {1, 63, 64, 65, 1000, kBlock - 1, kBlock, kBlock + 1, 150'001};
  WeightsLayout layout{.hash = rng.next()};
  for (std::uint64_t i = 0; i < 1 + rng.below(5); ++i) {
    const std::uint64_t element = std::uint64_t{1} << rng.below(3);
    const std::uint64_t bytes = element * kSizes[rng.below(std::size(kSizes))];
    layout.tensors.push_back({.name = "tensor " + std::to_string(i),
                              .offset = layout.arena_bytes,
                              .bytes = bytes,
                              .element_bytes = element});
    layout.arena_bytes += bytes;
  }
  return layout;
}

Bytes random_arena(Rng& rng, std::uint64_t bytes) {
  Bytes arena(bytes);
  for (std::byte& byte : arena) byte = static_cast<std::byte>(rng.next());
  return arena;
}

// `arena` after a step that changes about one byte of `every`; 0: none.
Bytes changed(Rng& rng, Bytes arena, std::uint64_t every) {
  if (every == 0) return arena;
  for (std::byte& byte : arena)
    if (rng.below(every) == 0) byte ^= static_cast<std::byte>(1 + rng.below(255));
  return arena;
}

DeltaName name_of(const Bytes& base, const Bytes& next) {
  return {.base = {.version = {3}, .checksum = checksum64(base)},
          .next = {.version = {4}, .checksum = checksum64(next)}};
}

Delta delta_of(const WeightsLayout& layout, const Bytes& base, const Bytes& next,
               std::uint64_t bytes_per_step = 1 << 20) {
  DeltaEncoder encoder(layout, name_of(base, next), 2 * layout.arena_bytes + (1 << 20));
  while (encoder.step(base, next, bytes_per_step)) {
  }
  EXPECT_FALSE(encoder.gave_up());
  return encoder.take();
}

TEST(Delta, WD1AppliedToItsBaseItGivesTheVersionToTheBit) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const WeightsLayout layout = random_layout(rng);
    const Bytes base = random_arena(rng, layout.arena_bytes);
    constexpr std::uint64_t kEvery[] = {0, 50'000, 1000, 50, 10, 2, 1};
    const Bytes next = changed(rng, base, kEvery[rng.below(std::size(kEvery))]);
    const Delta delta = delta_of(layout, base, next, 1 + rng.below(300'000));
    Bytes arena = base;
    for (const char* time : {"once", "twice", "to the version itself"}) {
      const auto applied = apply_delta(layout, delta.name, delta.bytes, arena);
      ASSERT_TRUE(applied) << applied.error().message;
      EXPECT_TRUE(arena == next) << time;
    }
  }
}

TEST(Delta, WD2WhatIsDamagedIsRefusedAndChangesNoByte) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const WeightsLayout layout = random_layout(rng);
    const Bytes base = random_arena(rng, layout.arena_bytes);
    const Bytes next = changed(rng, base, 1 + rng.below(200));
    const Delta delta = delta_of(layout, base, next);
    Bytes arena = base;
    const auto refused = [&](const DeltaName& name, const Bytes& bytes) {
      const auto applied = apply_delta(layout, name, bytes, arena);
      EXPECT_TRUE(!applied && applied.error().code == ErrorCode::kInvalid);
      EXPECT_TRUE(arena == base);
    };
    for (int i = 0; i < 100; ++i) {
      Bytes flipped = delta.bytes;
      // Half of the flips are in the heads at the beginning.
      const std::size_t reach = i % 2 ? flipped.size() : std::min<std::size_t>(flipped.size(), 100);
      flipped[rng.below(reach)] ^= static_cast<std::byte>(1 << rng.below(8));
      refused(delta.name, flipped);
    }
    Bytes shorter = delta.bytes, longer = delta.bytes;
    shorter.resize(rng.below(shorter.size()));
    longer.resize(longer.size() + 1 + rng.below(100));
    refused(delta.name, shorter);
    refused(delta.name, longer);
    DeltaName other = delta.name;
    ++(rng.below(2) == 0 ? other.base : other.next).checksum;
    refused(other, delta.bytes);
    other = delta.name;
    ++other.next.version.value;
    refused(other, delta.bytes);
    WeightsLayout another = layout;
    ++another.hash;
    EXPECT_FALSE(apply_delta(another, delta.name, delta.bytes, arena));
  }
}

// Blocks that nobody has encoded, with the right checksum. Who sends them can spoil the version,
// which its own checksum tells, and nothing else.
TEST(Delta, WD2AForgedOneIsRefusedOrWritesIntoTheVersionAlone) {
  constexpr std::size_t kHead = 64, kSection = 24, kGuard = 64 << 10;
  int refused = 0, applied = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const WeightsLayout layout = random_layout(rng);
    const Bytes base = random_arena(rng, layout.arena_bytes);
    Delta delta = delta_of(layout, base, changed(rng, base, 1 + rng.below(3000)));
    if (delta.bytes.size() == kHead) continue;  // nothing has changed
    std::uint64_t blocks = 0;
    std::memcpy(&blocks, delta.bytes.data() + kHead + sizeof(blocks), sizeof blocks);
    const auto section = std::span(delta.bytes).subspan(kHead, kSection + blocks);
    // Half of them in the head of the first block and behind it, the others anywhere.
    const std::size_t reach = rng.below(2) ? std::min<std::size_t>(blocks, 12) : blocks;
    for (std::uint64_t flips = 1 + rng.below(3); flips > 0; --flips)
      section[kSection + rng.below(reach)] ^= static_cast<std::byte>(1 << rng.below(8));
    Checksum64 checksum;
    checksum.update(section.first(kSection - sizeof(std::uint64_t)));
    checksum.update(section.subspan(kSection));
    const std::uint64_t value = checksum.value();
    std::memcpy(section.data() + kSection - sizeof value, &value, sizeof value);
    Bytes memory(kGuard + layout.arena_bytes + kGuard);
    const auto arena = std::span(memory).subspan(kGuard, layout.arena_bytes);
    std::ranges::copy(base, arena.begin());
    if (apply_delta(layout, delta.name, delta.bytes, arena)) {
      ++applied;
    } else {
      ++refused;
      EXPECT_TRUE(std::ranges::equal(arena, base));
    }
    const auto none = [](std::byte byte) { return byte == std::byte{0}; };
    EXPECT_TRUE(std::ranges::all_of(std::span(memory).first(kGuard), none));
    EXPECT_TRUE(std::ranges::all_of(std::span(memory).last(kGuard), none));
  }
  EXPECT_GT(refused, 10);
  EXPECT_GT(applied, 10);
}

// One tensor of bf16 of a million elements, every `every`-th of which changes.
std::uint64_t bytes_with(std::uint64_t every) {
  constexpr std::uint64_t kElements = 1 << 20;
  const WeightsLayout layout{.arena_bytes = 2 * kElements,
                             .tensors = {{.name = "w", .bytes = 2 * kElements}}};
  const Bytes base(layout.arena_bytes);
  Bytes next = base;
  for (std::uint64_t i = 0; i < kElements; i += every) next[2 * i] = std::byte{1};
  return delta_of(layout, base, next).bytes.size();
}

TEST(Delta, TakesTheSmallestForm) {
  constexpr std::uint64_t kElements = 1 << 20, kHeads = 64 + 24 + 16 * 8;
  EXPECT_EQ(bytes_with(kElements / 4), 64u + 24 + 4 * (8 + 4)) << "blocks without a change";
  EXPECT_EQ(bytes_with(128), kHeads + 4 * kElements / 128) << "offsets: 64 times smaller";
  EXPECT_EQ(bytes_with(8), kHeads + kElements / 8 + 2 * kElements / 8) << "bitmaps";
  EXPECT_EQ(bytes_with(1), kHeads + 2 * kElements) << "dense: hardly more than the whole";
}

TEST(Delta, GivesUpWhereTheDeltaIsTooLarge) {
  const WeightsLayout layout{.arena_bytes = 1 << 20, .tensors = {{.name = "w", .bytes = 1 << 20}}};
  const Bytes base(layout.arena_bytes), next(layout.arena_bytes, std::byte{1});
  DeltaEncoder encoder(layout, name_of(base, next), layout.arena_bytes / 2);
  int steps = 1;
  while (encoder.step(base, next, 2 * kBlock)) ++steps;
  EXPECT_TRUE(encoder.gave_up());
  EXPECT_LE(steps, 5) << "of 8: it reads no further";
}

}  // namespace
}  // namespace tandem::weights
