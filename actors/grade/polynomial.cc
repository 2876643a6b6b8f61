#include "actors/grade/polynomial.h"

#include <algorithm>

namespace tandem::grade {
namespace {

constexpr SmallRational kOne{1, 1};

std::string digits_of(Int128 value) {
  if (value == 0) return "0";
  std::string text;
  const bool minus = value < 0;
  for (Int128 rest = minus ? -value : value; rest > 0; rest /= 10)
    text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  return minus ? "-" + text : text;
}

std::string spelled_rational(const SmallRational& value) {
  return digits_of(value.above) + (value.whole() ? "" : "/" + digits_of(value.below));
}

std::string spelled_polynomial(const Polynomial& a) {
  std::string text;
  for (const auto& [monomial, coefficient] : a) {
    text += "+" + spelled_rational(coefficient);
    for (const auto& [atom, exponent] : monomial.factors)
      text += "*" + std::to_string(atom) + "^" + spelled_rational(exponent);
  }
  return text;
}

bool too_large(const SmallRational& exponent) {
  return exponent.above > kWholeExponentMax * exponent.below ||
         exponent.above < -kWholeExponentMax * exponent.below;
}

// Applies the rule of an atom to its exponent: moves what it can into the coefficient. False where
// that is too large.
bool reduce(Atom atom, SmallRational& exponent, SmallRational& coefficient) {
  if (too_large(exponent)) return false;
  if (atom == kImaginaryAtom) {
    if (!exponent.whole()) return false;
    const auto turns = static_cast<int>((exponent.above % 4 + 4) % 4);
    if (turns >= 2) coefficient.above = -coefficient.above;
    exponent = {turns % 2, 1};
  } else if (atom < 0) {
    const auto whole = static_cast<std::int64_t>(floor_of(exponent));
    if (whole == 0) return true;
    const MaybeRational moved = power({-static_cast<Int128>(atom), 1}, whole);
    const MaybeRational product = moved ? multiply(coefficient, *moved) : std::nullopt;
    if (!product) return false;
    coefficient = *product;
    exponent.above -= whole * exponent.below;
  }
  return true;
}

// The product of two terms, with its coefficient.
std::optional<std::pair<Monomial, SmallRational>> term_product(const Polynomial::value_type& a,
                                                               const Polynomial::value_type& b) {
  MaybeRational coefficient = multiply(a.second, b.second);
  if (!coefficient) return std::nullopt;
  Monomial product;
  auto left = a.first.factors.begin(), right = b.first.factors.begin();
  const auto left_end = a.first.factors.end(), right_end = b.first.factors.end();
  while (left != left_end || right != right_end) {
    if (right == right_end || (left != left_end && left->first < right->first)) {
      product.factors.push_back(*left++);
    } else if (left == left_end || right->first < left->first) {
      product.factors.push_back(*right++);
    } else {
      MaybeRational exponent = add(left->second, right->second);
      if (!exponent || !reduce(left->first, *exponent, *coefficient)) return std::nullopt;
      if (exponent->above != 0) product.factors.emplace_back(left->first, *exponent);
      ++left;
      ++right;
    }
  }
  return std::pair(std::move(product), *coefficient);
}

bool add_term(Polynomial& to, const Monomial& monomial, const SmallRational& coefficient) {
  const auto [at, fresh] = to.try_emplace(monomial, coefficient);
  if (!fresh) {
    const MaybeRational sum = add(at->second, coefficient);
    if (!sum) return false;
    at->second = *sum;
  }
  if (at->second.above == 0) to.erase(at);
  return to.size() <= kTermsMax;
}

// Moves a denominator of one term above the line.
MaybeFraction simplified(Fraction value, Work& work) {
  if (value.below.empty()) return std::nullopt;
  if (value.below.size() != 1 || value.below == one()) return value;
  const auto& [monomial, coefficient] = *value.below.begin();
  MaybeRational over = divide(kOne, coefficient);
  if (!over) return std::nullopt;
  Monomial inverted;
  for (const auto& [atom, exponent] : monomial.factors) {
    SmallRational negated{-exponent.above, exponent.below};
    if (!reduce(atom, negated, *over)) return std::nullopt;
    if (negated.above != 0) inverted.factors.emplace_back(atom, negated);
  }
  MaybePolynomial above = multiply(value.above, Polynomial{{inverted, *over}}, work);
  return above ? MaybeFraction(Fraction{.above = *std::move(above)}) : std::nullopt;
}

}  // namespace

bool Monomial::operator<(const Monomial& other) const {
  return std::ranges::lexicographical_compare(factors, other.factors,
                                              [](const auto& a, const auto& b) {
                                                if (a.first != b.first) return a.first < b.first;
                                                if (a.second.above != b.second.above)
                                                  return a.second.above < b.second.above;
                                                return a.second.below < b.second.below;
                                              });
}

Polynomial constant(const SmallRational& value) {
  Polynomial result;
  if (value.above != 0) result.emplace(Monomial{}, value);
  return result;
}

Polynomial one() { return constant(kOne); }

MaybePolynomial atom_power(Atom atom, const SmallRational& exponent) {
  SmallRational reduced = exponent, coefficient = kOne;
  if (!reduce(atom, reduced, coefficient)) return std::nullopt;
  Monomial monomial;
  if (reduced.above != 0) monomial.factors.emplace_back(atom, reduced);
  return Polynomial{{std::move(monomial), coefficient}};
}

MaybePolynomial add(const Polynomial& a, const Polynomial& b) {
  Polynomial sum = a;
  for (const auto& [monomial, coefficient] : b)
    if (!add_term(sum, monomial, coefficient)) return std::nullopt;
  return sum;
}

MaybePolynomial multiply(const Polynomial& a, const Polynomial& b, Work& work) {
  Polynomial product;
  for (const auto& left : a)
    for (const auto& right : b) {
      // Long monomials cost more.
      work.products_left -=
          1 + static_cast<int>(left.first.factors.size() + right.first.factors.size()) / 8;
      if (work.products_left < 0) return std::nullopt;
      const auto term = term_product(left, right);
      if (!term || !add_term(product, term->first, term->second)) return std::nullopt;
    }
  return product;
}

MaybePolynomial scaled(const Polynomial& a, const SmallRational& by) {
  Polynomial result;
  for (const auto& [monomial, coefficient] : a) {
    const MaybeRational product = multiply(coefficient, by);
    if (!product || !add_term(result, monomial, *product)) return std::nullopt;
  }
  return result;
}

MaybeRational constant_value(const Polynomial& a) {
  if (a.empty()) return SmallRational{};
  if (a.size() != 1 || !a.begin()->first.factors.empty()) return std::nullopt;
  return a.begin()->second;
}

MaybeFraction add(const Fraction& a, const Fraction& b, Work& work) {
  if (a.below == b.below) {
    MaybePolynomial above = add(a.above, b.above);
    return above ? MaybeFraction(Fraction{*std::move(above), a.below}) : std::nullopt;
  }
  const MaybePolynomial left = multiply(a.above, b.below, work);
  const MaybePolynomial right = multiply(b.above, a.below, work);
  MaybePolynomial above = left && right ? add(*left, *right) : std::nullopt;
  MaybePolynomial below = multiply(a.below, b.below, work);
  if (!above || !below) return std::nullopt;
  return simplified({*std::move(above), *std::move(below)}, work);
}

MaybeFraction multiply(const Fraction& a, const Fraction& b, Work& work) {
  MaybePolynomial above = multiply(a.above, b.above, work);
  MaybePolynomial below = multiply(a.below, b.below, work);
  if (!above || !below) return std::nullopt;
  return simplified({*std::move(above), *std::move(below)}, work);
}

MaybeFraction inverse(const Fraction& a, Work& work) {
  if (a.above.empty()) return std::nullopt;
  return simplified({a.below, a.above}, work);
}

MaybeFraction whole_power(const Fraction& base, std::int64_t exponent, Work& work) {
  if (exponent > kWholeExponentMax || exponent < -kWholeExponentMax) return std::nullopt;
  if (exponent < 0) {
    const MaybeFraction over = inverse(base, work);
    return over ? whole_power(*over, -exponent, work) : std::nullopt;
  }
  if (exponent == 0 && base.above.empty()) return std::nullopt;
  Fraction total{.above = one()}, square = base;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) {
      MaybeFraction next = multiply(total, square, work);
      if (!next) return std::nullopt;
      total = *std::move(next);
    }
    if (exponent == 1) break;
    MaybeFraction next = multiply(square, square, work);
    if (!next) return std::nullopt;
    square = *std::move(next);
  }
  return total;
}

MaybeRational constant_value(const Fraction& a) {
  return a.below == one() ? constant_value(a.above) : std::nullopt;
}

std::string spelled(const Fraction& a) {
  const SmallRational leading = a.below.begin()->second;
  const MaybeRational over = divide(kOne, leading);
  const MaybePolynomial above = over ? scaled(a.above, *over) : std::nullopt;
  const MaybePolynomial below = over ? scaled(a.below, *over) : std::nullopt;
  if (!above || !below) return spelled_polynomial(a.above) + "/" + spelled_polynomial(a.below);
  return spelled_polynomial(*above) + "/" + spelled_polynomial(*below);
}

}  // namespace tandem::grade
