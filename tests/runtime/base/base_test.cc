#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/result.h"
#include "runtime/base/rng.h"

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

}  // namespace
}  // namespace tandem
