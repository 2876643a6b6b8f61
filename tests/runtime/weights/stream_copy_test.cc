// Copies block by block: sizes and places that are no whole blocks or lines, and nothing beside
// them.
#include "runtime/weights/stream_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::weights {
namespace {

constexpr std::byte kUntouched{0xa5};
constexpr std::size_t kMargin = 256;

std::vector<std::byte> random_bytes(Rng& rng, std::size_t count) {
  std::vector<std::uint64_t> words(count / sizeof(std::uint64_t) + 1);
  for (std::uint64_t& word : words) word = rng.next();
  std::vector<std::byte> bytes(count);
  std::memcpy(bytes.data(), words.data(), count);
  return bytes;
}

// Source and destination lie at any address, with a margin around the destination.
TEST(StreamCopy, CopiesExactlyWhatItIsGiven) {
  for_seeds(200, [](std::uint64_t seed) {
    Rng rng(seed);
    const std::size_t bytes = rng.below(5 * kStreamBlockBytes);
    // The distance from the beginning of a line.
    const std::size_t shift = rng.below(2) == 0 ? 0 : rng.below(64);
    const std::size_t from_shift = rng.below(64);
    const std::vector<std::byte> source = random_bytes(rng, bytes + from_shift);
    std::span<const std::byte> from = std::span(source).subspan(from_shift);
    std::vector<std::byte> room(bytes + 2 * kMargin, kUntouched);
    const auto address = reinterpret_cast<std::uintptr_t>(room.data());
    const std::size_t begin = kMargin / 2 + (64 - address % 64) % 64 + shift;
    std::span<std::byte> to = std::span(room).subspan(begin, bytes);
    while (!from.empty()) {
      const std::size_t copied = stream_block(to, from);
      ASSERT_EQ(copied, std::min(from.size(), kStreamBlockBytes));
      to = to.subspan(copied);
      from = from.subspan(copied);
    }
    stream_end();
    EXPECT_TRUE(std::equal(source.begin() + static_cast<std::ptrdiff_t>(from_shift), source.end(),
                           room.begin() + static_cast<std::ptrdiff_t>(begin)));
    const auto untouched = [&](std::size_t first, std::size_t last) {
      return std::all_of(room.begin() + static_cast<std::ptrdiff_t>(first),
                         room.begin() + static_cast<std::ptrdiff_t>(last),
                         [](std::byte byte) { return byte == kUntouched; });
    };
    EXPECT_TRUE(untouched(0, begin) && untouched(begin + bytes, room.size()));
  });
}

TEST(StreamCopy, OfNothingIsNothing) { EXPECT_EQ(stream_block({}, {}), 0u); }

}  // namespace
}  // namespace tandem::weights
