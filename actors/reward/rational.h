// Exact rational numbers of any size, for comparison alone: what people write as 1,234.50, 3/4, 12
// %.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem::actors {

inline constexpr std::size_t kRationalDigitsMax = 1024;  // longer ones are not numbers to us

struct Rational {
  bool negative = false;          // false for zero
  std::string numerator = "0";    // decimal digits without leading zeros
  std::string denominator = "1";  // not zero; the fraction need not be reduced
};

bool operator==(const Rational& a, const Rational& b);

// "12", "-0.5", ".5", "3.", "1.5e-3": digits with at most one point, a sign and an exponent, no
// separators.
std::optional<Rational> parse_decimal(std::string_view text);

std::optional<Rational> divide(const Rational& a, const Rational& b);  // none: by zero
Rational add_magnitude(const Rational& whole, const Rational& part);   // the sign is whole's

}  // namespace tandem::actors
