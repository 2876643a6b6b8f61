// Exact rational numbers of any size, for comparison alone, as people write them: 1,234.50, 3/4, 12
// %.
//
// The digits are decimal text. That is slow for arithmetic, but parsing is a copy, and there is no
// loss: 0.1 is 1/10.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem::reward {

inline constexpr std::size_t kRationalDigitsMax = 1024;  // a longer text is not a number

struct Rational {
  bool negative = false;          // false for zero
  std::string numerator = "0";    // decimal digits without leading zeros
  std::string denominator = "1";  // not zero; the fraction need not be reduced
};

// Compares by cross multiplication, so neither side needs to be reduced.
bool operator==(const Rational& a, const Rational& b);

// Reads "12", "-0.5", ".5", "3." or "1.5e-3": digits with at most one point, a sign and an
// exponent, without separators. nullopt for any other text, and for more than kRationalDigitsMax
// digits.
std::optional<Rational> parse_decimal(std::string_view text);

std::optional<Rational> divide(const Rational& a, const Rational& b);  // none if b is zero
Rational add_magnitude(const Rational& whole, const Rational& part);   // with the sign of `whole`

}  // namespace tandem::reward
