// Polynomials in several names with rational coefficients and rational exponents, and fractions of
// them, in a normal form: two polynomials are equal if and only if their terms are.
//
// An "atom" is an integer that stands for a name or a term; normal_form.h says which. Two kinds
// have rules of their own, by which products are reduced: a prime p, whose exponents stay in [0, 1)
// because p^1 joins the coefficient, and the imaginary unit, i^2 = -1. An exponent may be negative,
// so that a fraction needs a denominator only where the denominator has several terms.
//
// Everything is bounded: terms, the size of coefficients (small_rational.h), exponents, and by
// `Work` the number of products of terms. Past a bound the result is none: not decided.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/grade/budget.h"
#include "actors/grade/small_rational.h"

namespace tandem::grade {

inline constexpr std::size_t kTermsMax = 256;
inline constexpr int kWholeExponentMax = 4096;

// The imaginary unit is atom 0, the prime p is atom -p; others count up from kFirstFreeAtom.
using Atom = int;
inline constexpr Atom kImaginaryAtom = 0;
inline constexpr Atom kFirstFreeAtom = 1;
constexpr Atom prime_atom(std::int64_t prime) { return static_cast<Atom>(-prime); }

// The factors of a term, by atom, none with exponent 0.
struct Monomial {
  std::vector<std::pair<Atom, SmallRational>> factors;
  bool operator==(const Monomial&) const = default;
  bool operator<(const Monomial& other) const;
};

using Polynomial = std::map<Monomial, SmallRational>;  // no coefficient is 0
using MaybePolynomial = std::optional<Polynomial>;

Polynomial constant(const SmallRational& value);
Polynomial one();
// A term of one atom; the prime and imaginary rules are applied.
MaybePolynomial atom_power(Atom atom, const SmallRational& exponent);
MaybePolynomial add(const Polynomial& a, const Polynomial& b);
MaybePolynomial multiply(const Polynomial& a, const Polynomial& b, Work& work);
MaybePolynomial scaled(const Polynomial& a, const SmallRational& by);

// The value of a polynomial without atoms.
MaybeRational constant_value(const Polynomial& a);

struct Fraction {
  Polynomial above;
  Polynomial below = one();
};
using MaybeFraction = std::optional<Fraction>;

MaybeFraction add(const Fraction& a, const Fraction& b, Work& work);
MaybeFraction multiply(const Fraction& a, const Fraction& b, Work& work);
MaybeFraction inverse(const Fraction& a, Work& work);  // none for 0
MaybeFraction whole_power(const Fraction& base, std::int64_t exponent, Work& work);
MaybeRational constant_value(const Fraction& a);

// Texts that are equal for equal polynomials; for fractions, where their denominators are equal.
std::string spelled(const Fraction& a);

}  // namespace tandem::grade
