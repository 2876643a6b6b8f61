// School arithmetic on decimal digits, most significant first. Results are never reduced: a
// comparison multiplies crosswise, and the parsers bound the number of digits (kRationalDigitsMax),
// so the quadratic product stays cheap.
#include "actors/reward/rational.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

namespace tandem::reward {
namespace {

std::string without_leading_zeros(std::string digits) {
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  return digits;
}

std::string product(std::string_view a, std::string_view b) {
  std::vector<int> columns(a.size() + b.size(), 0);
  for (std::size_t i = a.size(); i-- > 0;) {
    int carry = 0;
    for (std::size_t j = b.size(); j-- > 0;) {
      const int sum = columns[i + j + 1] + (a[i] - '0') * (b[j] - '0') + carry;
      columns[i + j + 1] = sum % 10;
      carry = sum / 10;
    }
    columns[i] += carry;
  }
  std::string digits;
  for (const int column : columns) digits += static_cast<char>('0' + column);
  return without_leading_zeros(std::move(digits));
}

std::string sum(std::string a, std::string b) {
  if (a.size() < b.size()) std::swap(a, b);
  b.insert(0, a.size() - b.size(), '0');
  int carry = 0;
  for (std::size_t i = a.size(); i-- > 0;) {
    const int column = (a[i] - '0') + (b[i] - '0') + carry;
    a[i] = static_cast<char>('0' + column % 10);
    carry = column / 10;
  }
  if (carry > 0) a.insert(a.begin(), '1');
  return a;
}

bool all_digits(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Moves the point of a parsed number by a power of ten.
bool scale(Rational& number, int exponent) {
  if (static_cast<std::size_t>(std::abs(exponent)) > kRationalDigitsMax) return false;
  (exponent >= 0 ? number.numerator : number.denominator)
      .append(static_cast<std::size_t>(std::abs(exponent)), '0');
  number.numerator = without_leading_zeros(std::move(number.numerator));
  return true;
}

}  // namespace

bool operator==(const Rational& a, const Rational& b) {
  return a.negative == b.negative &&
         product(a.numerator, b.denominator) == product(b.numerator, a.denominator);
}

std::optional<Rational> parse_decimal(std::string_view text) {
  Rational number;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    number.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  int exponent = 0;
  if (const auto e = text.find_first_of("eE"); e != std::string_view::npos) {
    std::string_view power = text.substr(e + 1);
    if (!power.empty() && power.front() == '+') power.remove_prefix(1);
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), exponent);
    if (error != std::errc() || end != power.data() + power.size()) return std::nullopt;
    text = text.substr(0, e);
  }
  const auto point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = point < text.size() ? text.substr(point + 1) : std::string_view();
  if (whole.size() + part.size() == 0 || whole.size() + part.size() > kRationalDigitsMax ||
      !all_digits(whole) || !all_digits(part))
    return std::nullopt;
  number.numerator = without_leading_zeros(std::string(whole) + std::string(part));
  number.denominator.append(part.size(), '0');
  if (!scale(number, exponent)) return std::nullopt;
  if (number.numerator == "0") number.negative = false;
  return number;
}

std::optional<Rational> divide(const Rational& a, const Rational& b) {
  if (b.numerator == "0") return std::nullopt;
  Rational quotient{.negative = a.negative != b.negative && a.numerator != "0",
                    .numerator = product(a.numerator, b.denominator),
                    .denominator = product(a.denominator, b.numerator)};
  return quotient;
}

Rational add_magnitude(const Rational& whole, const Rational& part) {
  Rational total{.negative = whole.negative,
                 .numerator = sum(product(whole.numerator, part.denominator),
                                  product(part.numerator, whole.denominator)),
                 .denominator = product(whole.denominator, part.denominator)};
  return total;
}

}  // namespace tandem::reward
