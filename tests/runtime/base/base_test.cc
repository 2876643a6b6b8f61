// Tests runtime/base/digest.h, runtime/base/result.h, runtime/base/rng.h.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/result.h"
#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The known-answer vector of Random123's kat_vectors: key and counter all zero.
TEST(Rng, PhiloxMatchesItsReferenceVector) {
  const std::array<std::uint32_t, 4> expected{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
  EXPECT_EQ(philox4x32(0, 0), expected);
}

TEST(Rng, DerivedSeedsDependOnEveryLabelAndOnTheirOrder) {
  EXPECT_NE(derive_seed(1, {2, 3}), derive_seed(1, {3, 2}));
  EXPECT_NE(derive_seed(1, {2, 3}), derive_seed(2, {2, 3}));
  EXPECT_NE(derive_seed(1, "data"), derive_seed(1, "init"));
}

TEST(Rng, ShuffleIsAPermutationAndRepeats) {
  std::vector<int> a(100), b;
  std::iota(a.begin(), a.end(), 0);
  b = a;
  const std::vector<int> sorted = a;
  Rng first(7), second(7);
  shuffle(std::span(a), first);
  shuffle(std::span(b), second);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, sorted);
  std::sort(a.begin(), a.end());
  EXPECT_EQ(a, sorted);
}

TEST(Digest, HexHasTwoDigitsForEachByte) {
  EXPECT_EQ(hex(bytes_of(std::string_view("\0\x0f\xa0", 3))), "000fa0");
}

TEST(Digest, Sha256MatchesTheStandardsExample) {
  EXPECT_EQ(sha256_hex(bytes_of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// RFC 3720, B.4, and the check value of the CRC catalogues.
TEST(Digest, Crc32cMatchesThePublishedExamples) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8A9136AAu);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xff'))), 0x62A8AB43u);
  EXPECT_EQ(crc32c({}), 0u);
}

std::vector<std::byte> counted_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i % 251);
  return bytes;
}

TEST(Digest, Sha256OfPartsIsThatOfTheWhole) {
  const std::vector<std::byte> whole = counted_bytes(1'000);
  Sha256 digest;
  EXPECT_EQ(digest.hex(), sha256_hex({}));
  digest.update(std::span(whole).first(63));
  EXPECT_EQ(digest.hex(), sha256_hex(std::span(whole).first(63)));
  digest.update({});
  digest.update(std::span(whole).subspan(63));
  EXPECT_EQ(digest.hex(), sha256_hex(whole));
}

// XXH3-64, whose values lie in journals and checkpoints, by a build of its library for plain SSE2:
// each of the lengths takes another way through it.
TEST(Digest, Checksum64IsTheSameOnEveryProcessor) {
  EXPECT_EQ(checksum64({}), 0x2d06800538d394c2u);
  EXPECT_EQ(checksum64(bytes_of("abc")), 0x78af5f94892f3950u);
  EXPECT_EQ(checksum64(counted_bytes(240)), 0x375a384d957fe865u);
  EXPECT_EQ(checksum64(counted_bytes(241)), 0x02e8cd95421c6d02u);
  EXPECT_EQ(checksum64(counted_bytes(1'000)), 0x33ef703fb2b20ed1u);
  EXPECT_EQ(checksum64(counted_bytes(100'000)), 0x42c23aeead96750du);
}

TEST(Digest, Checksum64OfPartsDoesNotDependOnTheCuts) {
  for_seeds(100, [](std::uint64_t seed) {
    Rng rng(seed);
    const std::vector<std::byte> whole = counted_bytes(rng.below(100'000));
    const std::uint64_t part_max = 1 + rng.below(30'000);
    Checksum64 checksum;
    for (std::span<const std::byte> rest = whole; !rest.empty();) {
      EXPECT_NE(checksum.value(), checksum64(whole)) << "not all parts are there";
      const std::size_t part = std::min<std::size_t>(rest.size(), rng.below(part_max + 1));
      checksum.update(rest.first(part));
      rest = rest.subspan(part);
    }
    EXPECT_EQ(checksum.value(), checksum64(whole));
  });
}

TEST(Result, CarriesAValueOrAnErrorWithItsExitCode) {
  const Result<int> good = 3;
  EXPECT_EQ(*good, 3);
  const Result<int> bad = Error{ErrorCode::kInvalid, "learner.ranks must be 1 or more",
                                "job.yaml:3:9", "write `ranks: 1`"};
  ASSERT_FALSE(bad);
  EXPECT_EQ(exit_code(bad.error().code), 64);
  EXPECT_EQ(render(bad.error()),
            "error[invalid]: learner.ranks must be 1 or more\n  --> job.yaml:3:9\n"
            "  help: write `ranks: 1`");
}

TEST(Result, FurtherErrorsAreShownLikeTheFirst) {
  Error error{ErrorCode::kInvalid, "a is wrong", "job.yaml:3:9", "write `a: 1`"};
  error.further = {{"b is \x1b[2Jwrong", "", ""}, {"c is wrong", "job.yaml:7:1", "remove it"}};
  const std::string all =
      "error[invalid]: a is wrong\n  --> job.yaml:3:9\n  help: write `a: 1`\n"
      "error[invalid]: b is \\u001b[2Jwrong\n"
      "error[invalid]: c is wrong\n  --> job.yaml:7:1\n  help: remove it";
  EXPECT_EQ(render(error), all);
  error.further_left_out = 1;
  EXPECT_EQ(render(error), all + "\nand 1 more error");
  error.further_left_out = 7;
  EXPECT_EQ(render(error), all + "\nand 7 more errors");
}

}  // namespace
}  // namespace tandem
