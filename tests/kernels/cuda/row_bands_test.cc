#include "kernels/cuda/row_bands.h"

#include <gtest/gtest.h>

namespace tandem::kernels::cuda {
namespace {

// An algorithm in name: its bits are `order` alone, unless they depend on what stands beside a row.
struct Named {
  int id = 0;
  int order = 0;
  enum class Rows { kAlone, kByCount, kByPlace } depends_on = Rows::kAlone;
  bool general = true;
  std::int64_t fails_above = kTriedMax;

  bool operator==(const Named&) const = default;
};
using Depends = Named::Rows;

// Each row is three bytes: which of the repeated rows it is, the order, and what it must not know.
std::vector<std::byte> product(const Named& algorithm, std::int64_t rows) {
  std::vector<std::byte> bits;
  if (rows > algorithm.fails_above) return bits;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t company = algorithm.depends_on == Depends::kByCount   ? rows % 3
                                 : algorithm.depends_on == Depends::kByPlace ? i / 128
                                                                             : 0;
    for (const std::int64_t value : {i % kPeriod, std::int64_t{algorithm.order}, company}) {
      bits.push_back(static_cast<std::byte>(value));
    }
  }
  return bits;
}

std::optional<std::vector<int>> chosen(std::array<std::vector<Named>, 5> offers) {
  const auto algorithms =
      algorithms_by_rows<Named>({.offers = std::move(offers),
                                 .general = [](const Named& a) { return a.general; },
                                 .product = product});
  if (!algorithms) return std::nullopt;
  std::vector<int> ids;
  for (const Named& algorithm : *algorithms) ids.push_back(algorithm.id);
  return ids;
}

using Ids = std::optional<std::vector<int>>;

TEST(RowBands, CoverEveryCount) {
  EXPECT_EQ(row_band(1), 0);
  EXPECT_EQ(row_band(16), 0);
  EXPECT_EQ(row_band(17), 1);
  EXPECT_EQ(row_band(256), 2);
  EXPECT_EQ(row_band(1024), 3);
  EXPECT_EQ(row_band(1025), 4);
  EXPECT_EQ(row_band(std::int64_t{1} << 40), 4);
  for (std::size_t band = 0; band < kRowBands.size(); ++band) {
    EXPECT_EQ(row_band(kRowBands[band].rows_of_choice), band);
    EXPECT_TRUE(std::ranges::any_of(kTried, [&](auto rows) { return row_band(rows) == band; }));
  }
}

TEST(RowBands, EachTakesItsFirstOfferWithTheReferencesBits) {  // BR-1
  const Named few{.id = 10, .order = 1}, other{.id = 20, .order = 2}, large{.id = 30, .order = 1};
  const Named reference{.id = 1, .order = 1};
  EXPECT_EQ(chosen({{{other, few}, {other}, {reference}, {few, reference}, {other, large}}}),
            (Ids{{10, 1, 1, 10, 30}}));
}

TEST(RowBands, ARowThatKnowsItsCompanyIsNeverChosen) {  // BR-1
  const Named by_count{.id = 7, .order = 1, .depends_on = Depends::kByCount};
  const Named by_place{.id = 8, .order = 1, .depends_on = Depends::kByPlace};
  const Named good{.id = 1, .order = 1};
  EXPECT_EQ(chosen({{{by_count}, {by_count}, {by_count, by_place, good}, {by_place}, {by_place}}}),
            (Ids{{1, 1, 1, 1, 1}}));
  EXPECT_EQ(chosen({{{by_count}, {by_count}, {by_count}, {by_count}, {by_count}}}), std::nullopt);
  // Within the first 128 rows a place cannot be told: there it may stay.
  EXPECT_EQ(chosen({{{by_place}, {by_place}, {good}, {}, {}}}), (Ids{{8, 8, 1, 1, 1}}));
}

TEST(RowBands, AReferenceDoesEveryCount) {
  const Named narrow{.id = 1, .order = 1, .general = false};
  const Named fails{.id = 2, .order = 1, .fails_above = 500};
  const Named good{.id = 3, .order = 2};
  EXPECT_EQ(chosen({{{}, {}, {narrow, fails, good}, {}, {}}}), (Ids{{3, 3, 3, 3, 3}}));
  EXPECT_EQ(chosen({{{}, {}, {narrow, fails}, {}, {good}}}), (Ids{{3, 3, 3, 3, 3}}))
      << "one that is offered for another band";
  EXPECT_EQ(chosen({{{narrow}, {narrow}, {narrow, fails}, {fails}, {}}}), std::nullopt);
  EXPECT_EQ(chosen({}), std::nullopt);
}

// Sums that come out as zeros do so in any order.
TEST(RowBands, ZerosTellNothing) {
  const Named zeros{.id = 1, .order = 0}, good{.id = 2, .order = 1};
  EXPECT_EQ(chosen({{{zeros}, {zeros}, {zeros, good}, {zeros}, {zeros}}}), (Ids{{2, 2, 2, 2, 2}}));
  EXPECT_EQ(chosen({{{zeros}, {zeros}, {zeros}, {zeros}, {zeros}}}), std::nullopt);
  const auto bytes = [](std::initializer_list<int> values) {
    std::vector<std::byte> all;
    for (const int value : values) all.push_back(static_cast<std::byte>(value));
    return all;
  };
  EXPECT_TRUE(row_bands::tells_nothing(bytes({0, 0, 0, 0x80, 0, 1}), 2)) << "minus zero";
  EXPECT_FALSE(row_bands::tells_nothing(bytes({0, 0, 0, 0x81, 0, 1}), 2));
}

TEST(RowBands, TheReferenceIsTheOneThatServesMostBands) {
  const Named lonely{.id = 1, .order = 1}, social{.id = 2, .order = 2};
  EXPECT_EQ(chosen({{{social}, {social}, {lonely, social}, {social}, {social}}}),
            (Ids{{2, 2, 2, 2, 2}}));
  EXPECT_EQ(chosen({{{lonely}, {social}, {lonely, social}, {}, {}}}), (Ids{{1, 1, 1, 1, 1}}))
      << "of equals, the one offered first";
}

}  // namespace
}  // namespace tandem::kernels::cuda
