// Exact rational numbers of at most 126 bits above and below the line. A function whose result
// would have more returns none, and the comparison that asked for it stays undecided.
//
// The bound spares the exact algebra (normal_form.h) an allocation per number, and bounds its time,
// whatever a completion holds. Numbers alone, of any length, are compared by
// actors/reward/rational.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem::grade {

__extension__ using Int128 = __int128;

struct SmallRational {
  Int128 above = 0;
  Int128 below = 1;  // positive; the fraction is reduced

  bool operator==(const SmallRational&) const = default;
  bool whole() const { return below == 1; }
};

using MaybeRational = std::optional<SmallRational>;

MaybeRational make_rational(Int128 above, Int128 below);  // none for below = 0
MaybeRational add(const SmallRational& a, const SmallRational& b);
MaybeRational multiply(const SmallRational& a, const SmallRational& b);
MaybeRational divide(const SmallRational& a, const SmallRational& b);
MaybeRational power(const SmallRational& base, std::int64_t exponent);

// Reads digits with at most one point, perhaps behind a minus: "12", ".5", "3.", "-1".
MaybeRational read_rational(std::string_view digits);

// The largest whole number that is not above `value`.
Int128 floor_of(const SmallRational& value);

// The whole number as 64 bits, where it is one and small enough.
std::optional<std::int64_t> small_whole(const SmallRational& value);

// -1, 0 or 1 as a is less than, equal to or greater than b; none where it takes more than 126 bits.
std::optional<int> compare(const SmallRational& a, const SmallRational& b);

}  // namespace tandem::grade
