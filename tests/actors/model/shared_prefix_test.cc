#include "actors/model/shared_prefix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tandem::model {
namespace {

using Tokens = std::vector<std::int32_t>;

TEST(SharedPrefix, FindsWhoSharesOne) {
  constexpr std::int32_t kPage = 128;  // two to a split
  const Tokens token{5};
  const Tokens a{1, 2, 3, 4, 10}, b{1, 2, 3, 4, 11}, c{1, 2, 9, 9, 9}, d{7, 8, 6}, e{7, 8, 5};
  const auto slice = [&](const Tokens& pages, std::int32_t position) {
    return PagedSlice{.tokens = token, .position = position, .pages = pages, .logits_last = 1};
  };
  using Found = std::vector<std::pair<std::int32_t, std::int32_t>>;
  const auto found = [&](const std::vector<PagedSlice>& slices) {
    std::vector<kernels::SharedPrefix> shared(slices.size(), {77, 77});
    Found out;
    const bool any = find_shared(slices, kPage, shared);
    for (const auto& [leader, positions] : shared) out.emplace_back(leader, positions);
    EXPECT_EQ(any, std::ranges::any_of(out, [](const auto& of) { return of.second > 0; }));
    return out;
  };
  EXPECT_EQ(found({}), Found{});
  EXPECT_EQ(found({slice(a, 520)}), (Found{{0, 0}}));
  EXPECT_EQ(found({slice(a, 520), slice(b, 530), slice(a, 512)}),
            (Found{{0, 512}, {0, 512}, {0, 512}}));
  EXPECT_EQ(found({slice(a, 520), slice(c, 530), slice(b, 520)}),
            (Found{{0, 256}, {0, 256}, {0, 256}}))
      << "the first follower says how much";
  EXPECT_EQ(found({slice(a, 520), slice(b, 520), slice(c, 530), slice(d, 300), slice(e, 260)}),
            (Found{{0, 512}, {0, 512}, {2, 0}, {3, 256}, {3, 256}}));
  EXPECT_EQ(found({slice(a, 511), slice(b, 520)}), (Found{{0, 256}, {0, 256}}))
      << "of a page that is being written nothing is shared";
  EXPECT_EQ(found({slice(d, 255), slice(e, 300)}), (Found{{0, 0}, {1, 0}}));
}

}  // namespace
}  // namespace tandem::model
