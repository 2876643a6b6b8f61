// One NormalForms holds the atoms that both sides of a comparison share. form() walks a tree; each
// case returns none where a bound is met, and an atom of its own where algebra ends.
#include "actors/grade/normal_form.h"

#include <algorithm>
#include <map>
#include <string>

#include "actors/grade/polynomial.h"

namespace tandem::grade {
namespace {

constexpr std::int64_t kTrialDivisorMax = 10'000;
constexpr std::int64_t kBinomialMax = 1000;
constexpr SmallRational kWholeOne{1, 1};

struct PrimePower {
  std::int64_t prime = 0;
  int exponent = 0;
};

// The prime factors of a positive number; none if a factor is left that could be composite.
std::optional<std::vector<PrimePower>> prime_factors(Int128 number) {
  std::vector<PrimePower> factors;
  if (number > (static_cast<Int128>(1) << 62)) return std::nullopt;
  auto rest = static_cast<std::int64_t>(number);
  for (std::int64_t prime = 2; prime <= kTrialDivisorMax && prime * prime <= rest; ++prime) {
    int exponent = 0;
    for (; rest % prime == 0; rest /= prime) ++exponent;
    if (exponent > 0) factors.push_back({prime, exponent});
  }
  if (rest > kTrialDivisorMax * kTrialDivisorMax) return std::nullopt;
  if (rest > 1) factors.push_back({rest, 1});
  return factors;
}

class NormalForms {
 public:
  explicit NormalForms(Work& work) : work_(work) {}

  MaybeFraction form(const Expr& expr) {
    switch (expr->op) {
      case Op::kNumber: {
        const MaybeRational value = read_rational(expr->name);
        return value ? of(*value) : std::nullopt;
      }
      case Op::kSymbol:
        return of(atom("name " + expr->name, Kind::kVariable));
      case Op::kPi:
        return of(atom("pi", Kind::kTranscendental));
      case Op::kEuler:
        return of(atom("e", Kind::kTranscendental));
      case Op::kImaginary:
        return of(kImaginaryAtom);
      case Op::kSum:
      case Op::kProduct:
        return joined(expr);
      case Op::kPower:
        return raised(form(expr->parts[0]), form(expr->parts[1]));
      case Op::kRoot: {
        const MaybeFraction index = form(expr->parts[1]);
        const MaybeRational value = index ? constant_value(*index) : std::nullopt;
        const auto whole = value ? small_whole(*value) : std::nullopt;
        const MaybeFraction radicand = form(expr->parts[0]);
        if (!radicand || whole.value_or(0) < 2 || *whole > kWholeExponentMax) return std::nullopt;
        return root_power(*radicand, {1, *whole});
      }
      case Op::kFunction:
        return applied(expr);
      default:
        return std::nullopt;
    }
  }

  // Whether a polynomial that is not 0 in normal form has another value than 0.
  bool independent() const { return independent_ && transcendental_ <= 1; }

 private:
  enum class Kind { kVariable, kTranscendental, kOpaque };

  static MaybeFraction of(const SmallRational& value) {
    Fraction result;
    result.above = constant(value);
    return result;
  }
  static MaybeFraction of(Atom atom) { return of(atom_power(atom, kWholeOne)); }
  static MaybeFraction of(MaybePolynomial above) {
    return above ? MaybeFraction(Fraction{.above = *std::move(above)}) : std::nullopt;
  }

  Atom atom(const std::string& name, Kind kind) {
    const auto [at, fresh] =
        atoms_.try_emplace(name, kFirstFreeAtom + static_cast<Atom>(atoms_.size()));
    if (fresh && kind == Kind::kTranscendental) {
      ++transcendental_;
      positive_.push_back(at->second);
    }
    if (kind == Kind::kOpaque) independent_ = false;
    return at->second;
  }
  MaybeFraction opaque(const std::string& name) {
    work_.products_left -= static_cast<int>(name.size()) / 16;
    if (work_.products_left < 0) return std::nullopt;
    return of(atom(name, Kind::kOpaque));
  }

  MaybeFraction joined(const Expr& expr) {
    const bool sum = is(expr, Op::kSum);
    MaybeFraction total = of(SmallRational{sum ? 0 : 1, 1});
    for (const Expr& part : expr->parts) {
      const MaybeFraction next = form(part);
      if (!next) return std::nullopt;
      total = sum ? add(*total, *next, work_) : multiply(*total, *next, work_);
      if (!total) return std::nullopt;
    }
    return total;
  }

  // powers

  MaybeFraction raised(const MaybeFraction& base, const MaybeFraction& exponent) {
    if (!base || !exponent) return std::nullopt;
    const MaybeRational constant_exponent = constant_value(*exponent);
    if (!constant_exponent) return raised_to_names(*base, *exponent);
    if (const auto whole = small_whole(*constant_exponent))
      return whole_power(*base, *whole, work_);
    return root_power(*base, *constant_exponent);
  }

  // The base to a broken exponent. A product is taken apart only where its factors are positive.
  MaybeFraction root_power(const Fraction& base, const SmallRational& exponent) {
    if (base.above.empty()) return exponent.above > 0 ? MaybeFraction(base) : std::nullopt;
    if (base.above.size() != 1 || base.below != one()) return opaque_power(base, exponent);
    auto [monomial, coefficient] = *base.above.begin();
    const bool alone = coefficient.above > 0 && monomial.factors.size() == 1 &&
                       monomial.factors[0].second == kWholeOne;
    MaybeFraction total = of(kWholeOne);
    if (coefficient.above < 0) {
      coefficient.above = -coefficient.above;
      const auto turns = static_cast<std::int64_t>(exponent.above % 4);
      if (exponent.below == 2)
        total = whole_power(*of(kImaginaryAtom), turns, work_);
      else if (exponent.below % 2 == 1)
        total = whole_power(*of(SmallRational{-1, 1}), turns, work_);
      else
        return std::nullopt;
    }
    for (const auto& [name, power_of_name] : monomial.factors) {
      if (!positive(name) && !alone) return opaque_power(base, exponent);
      const MaybeRational next = multiply(power_of_name, exponent);
      total = next ? times(total, of(atom_power(name, *next))) : std::nullopt;
    }
    return times(total, rational_power(coefficient, exponent));
  }

  MaybeFraction opaque_power(const Fraction& base, const SmallRational& exponent) {
    return opaque("power " + spelled(base) + " to " + spelled(*of(exponent)));
  }
  MaybeFraction times(const MaybeFraction& a, const MaybeFraction& b) {
    return a && b ? multiply(*a, *b, work_) : std::nullopt;
  }
  bool positive(Atom name) const {
    return name < 0 || std::ranges::any_of(positive_, [&](Atom known) { return known == name; });
  }

  // A positive number to a broken exponent: the product of roots of primes.
  MaybeFraction rational_power(const SmallRational& base, const SmallRational& exponent) {
    MaybeFraction total = of(kWholeOne);
    for (const bool below : {false, true}) {
      const auto factors = prime_factors(below ? base.below : base.above);
      if (!factors) return opaque_power(*of(base), exponent);
      for (const auto& [prime, times_in] : *factors) {
        const MaybeRational power = multiply(exponent, {below ? -times_in : times_in, 1});
        total = power ? times(total, of(atom_power(prime_atom(prime), *power))) : std::nullopt;
      }
    }
    return total;
  }

  // b^x: 4^{x+1} is 4 · (2^x)^2, e^{x+1} is e · e^x, x^{n+1} is x · x^n.
  MaybeFraction raised_to_names(const Fraction& base, const Fraction& exponent) {
    if (exponent.below != one() || base.below != one() || base.above.size() != 1)
      return opaque("power " + spelled(base) + " to " + spelled(exponent));
    const auto& [monomial, coefficient] = *base.above.begin();
    if (coefficient.above <= 0)
      return opaque("power " + spelled(base) + " to " + spelled(exponent));
    MaybeFraction total = of(kWholeOne);
    for (const auto& [of_exponent, times_of] : exponent.above) {
      if (of_exponent.factors.empty()) {
        total = times(total, raised(base, of(times_of)));
        continue;
      }
      const Fraction name{.above = Polynomial{{of_exponent, kWholeOne}}};
      for (const auto& [in_base, power_in_base] : monomial.factors) {
        const MaybeRational power = multiply(times_of, power_in_base);
        total = power ? times(total, name_to_name(in_base, name, *power)) : std::nullopt;
      }
      total = times(total, number_to_name(coefficient, name, times_of));
    }
    return total;
  }

  MaybeFraction name_to_name(Atom base, const Fraction& exponent, const SmallRational& times_of) {
    const Fraction atom_of_base{.above = Polynomial{{Monomial{{{base, kWholeOne}}}, kWholeOne}}};
    const bool euler = spelled(atom_of_base) == spelled(*of(atom("e", Kind::kTranscendental)));
    if (euler && turns_of_circle(exponent)) return unit_circle(times_of);
    return of(atom_power(
        atom("power " + spelled(atom_of_base) + " to " + spelled(exponent), Kind::kOpaque),
        times_of));
  }

  MaybeFraction number_to_name(const SmallRational& base, const Fraction& exponent,
                               const SmallRational& times_of) {
    MaybeFraction total = of(kWholeOne);
    for (const bool below : {false, true}) {
      const auto factors = prime_factors(below ? base.below : base.above);
      if (!factors) return opaque("power " + spelled(*of(base)) + " to " + spelled(exponent));
      for (const auto& [prime, times_in] : *factors) {
        const MaybeRational power = multiply(times_of, {below ? -times_in : times_in, 1});
        const std::string name = "power " + std::to_string(prime) + " to " + spelled(exponent);
        total =
            power ? times(total, of(atom_power(atom(name, Kind::kOpaque), *power))) : std::nullopt;
      }
    }
    return total;
  }

  // angles

  // Whether the exponent of e is iπ.
  bool turns_of_circle(const Fraction& exponent) {
    const MaybeFraction half_turn =
        times(of(kImaginaryAtom), of(atom("pi", Kind::kTranscendental)));
    return half_turn && half_turn->above == exponent.above;
  }
  // e^{iπ·half_turns}
  MaybeFraction unit_circle(const SmallRational& half_turns) {
    const MaybeFraction real = cosine(half_turns);
    const MaybeRational shifted = add(half_turns, {-1, 2});
    const MaybeFraction imaginary = shifted ? cosine(*shifted) : std::nullopt;
    const MaybeFraction turned = times(imaginary, of(kImaginaryAtom));
    return real && turned ? add(*real, *turned, work_) : std::nullopt;
  }
  // The cosine of π·half_turns, where it is made of square roots that people know.
  MaybeFraction cosine(const SmallRational& half_turns) {
    const MaybeRational twelfths = multiply(half_turns, {12, 1});
    const auto whole = twelfths ? small_whole(*twelfths) : std::nullopt;
    if (!whole) return std::nullopt;
    auto at = (*whole % 24 + 24) % 24;
    if (at > 12) at = 24 - at;
    const bool minus = at > 6;
    if (minus) at = 12 - at;
    // cos(at·15°) = (a√p + b√q) / 4
    struct Row {
      int a, p, b, q;
    };
    static constexpr Row kRows[] = {{4, 1, 0, 1}, {1, 6, 1, 2},  {2, 3, 0, 1}, {2, 2, 0, 1},
                                    {2, 1, 0, 1}, {1, 6, -1, 2}, {0, 1, 0, 1}};
    const Row& row = kRows[at];
    const MaybeFraction left =
        times(of(SmallRational{row.a, 1}), rational_power({row.p, 1}, {1, 2}));
    const MaybeFraction right =
        times(of(SmallRational{row.b, 1}), rational_power({row.q, 1}, {1, 2}));
    const MaybeFraction sum = left && right ? add(*left, *right, work_) : std::nullopt;
    return times(sum, of(*make_rational(minus ? -1 : 1, 4)));
  }

  // sin or cos of an angle
  MaybeFraction circular(bool sine, const Fraction& angle) {
    if (angle.above.empty()) return of(SmallRational{sine ? 0 : 1, 1});
    const auto& [monomial, coefficient] = *angle.above.rbegin();
    const Fraction half_turn = *of(atom("pi", Kind::kTranscendental));
    if (angle.below == one() && angle.above.size() == 1 &&
        monomial == half_turn.above.begin()->first) {
      const MaybeRational shifted = add(coefficient, {sine ? -1 : 0, 2});
      if (const MaybeFraction exact = shifted ? cosine(*shifted) : std::nullopt) return exact;
    }
    const bool minus = coefficient.above < 0;
    const MaybeFraction size = minus ? times(angle, of(SmallRational{-1, 1})) : angle;
    if (!size) return std::nullopt;
    const MaybeFraction value = opaque((sine ? "sin " : "cos ") + spelled(*size));
    return sine && minus ? times(value, of(SmallRational{-1, 1})) : value;
  }

  // functions

  MaybeFraction applied(const Expr& expr) {
    std::vector<Fraction> arguments;
    for (const Expr& part : expr->parts) {
      const MaybeFraction argument = form(part);
      if (!argument) return std::nullopt;
      arguments.push_back(*argument);
    }
    const std::string& name = expr->name;
    if (name == "sin" || name == "cos") return circular(name == "sin", arguments[0]);
    if (name == "tan") return ratio(circular(true, arguments[0]), circular(false, arguments[0]));
    if (name == "cot") return ratio(circular(false, arguments[0]), circular(true, arguments[0]));
    if (name == "sec") return ratio(of(kWholeOne), circular(false, arguments[0]));
    if (name == "csc") return ratio(of(kWholeOne), circular(true, arguments[0]));
    if (name == "ln") return logarithm(arguments[0]);
    if (name == "log") return ratio(logarithm(arguments[0]), logarithm(arguments[1]));
    if (const MaybeRational known = of_numbers(name, arguments)) return of(*known);
    std::string key = name;
    for (const Fraction& argument : arguments) key += " " + spelled(argument);
    return opaque(key);
  }

  MaybeFraction ratio(const MaybeFraction& above, const MaybeFraction& below) {
    const MaybeFraction over = below ? inverse(*below, work_) : std::nullopt;
    return times(above, over);
  }

  // The logarithm of a number is a sum of those of its primes.
  MaybeFraction logarithm(const Fraction& of_what) {
    const MaybeRational value = constant_value(of_what);
    if (spelled(of_what) == spelled(*of(atom("e", Kind::kTranscendental)))) return of(kWholeOne);
    if (!value || value->above <= 0) return opaque("ln " + spelled(of_what));
    MaybeFraction total = of(SmallRational{});
    for (const bool below : {false, true}) {
      const auto factors = prime_factors(below ? value->below : value->above);
      if (!factors) return opaque("ln " + spelled(of_what));
      for (const auto& [prime, times_in] : *factors) {
        const MaybeFraction part = times(of(SmallRational{below ? -times_in : times_in, 1}),
                                         opaque("ln " + std::to_string(prime)));
        total = total && part ? add(*total, *part, work_) : std::nullopt;
      }
    }
    return total;
  }

  static MaybeRational of_numbers(const std::string& name, const std::vector<Fraction>& arguments) {
    std::vector<SmallRational> values;
    for (const Fraction& argument : arguments) {
      const MaybeRational value = constant_value(argument);
      if (!value) return std::nullopt;
      values.push_back(*value);
    }
    const SmallRational& first = values[0];
    if (name == "abs")
      return SmallRational{first.above < 0 ? -first.above : first.above, first.below};
    if (name == "floor") return SmallRational{floor_of(first), 1};
    if (name == "ceil")
      return SmallRational{-floor_of(SmallRational{-first.above, first.below}), 1};
    const auto n = small_whole(first);
    if (name == "factorial" && n && *n >= 0) return product_from(1, *n, {1, 1});
    if (name == "binomial" && n && *n >= 0) {
      const auto chosen = small_whole(values[1]);
      return chosen ? binomial(*n, *chosen) : std::nullopt;
    }
    return std::nullopt;
  }
  static MaybeRational product_from(std::int64_t first, std::int64_t last, SmallRational total) {
    for (std::int64_t factor = first; factor <= last; ++factor) {
      const MaybeRational next = multiply(total, {factor, 1});
      if (!next) return std::nullopt;  // after some forty factors
      total = *next;
    }
    return total;
  }
  static MaybeRational binomial(std::int64_t n, std::int64_t chosen) {
    if (n > kBinomialMax) return std::nullopt;
    if (chosen < 0 || chosen > n) return SmallRational{};
    SmallRational total{1, 1};
    for (std::int64_t i = 1; i <= std::min(chosen, n - chosen); ++i) {
      const MaybeRational factor = make_rational(n - i + 1, i);
      const MaybeRational next = multiply(total, *factor);
      if (!next) return std::nullopt;
      total = *next;
    }
    return total;
  }

  std::map<std::string, Atom> atoms_;
  std::vector<Atom> positive_;
  int transcendental_ = 0;
  bool independent_ = true;
  Work& work_;
};

// What is left above the line of a - b.
MaybePolynomial difference_above(const Fraction& a, const Fraction& b, Work& work) {
  const MaybePolynomial left = multiply(a.above, b.below, work);
  const MaybePolynomial right = multiply(b.above, a.below, work);
  const MaybePolynomial taken = right ? scaled(*right, {-1, 1}) : std::nullopt;
  return left && taken ? add(*left, *taken) : std::nullopt;
}

// The polynomial times the powers of its variables that make all exponents of theirs 0 or more.
MaybePolynomial without_denominators(const Polynomial& a, Work& work) {
  std::map<Atom, SmallRational> least;
  for (const auto& [monomial, coefficient] : a)
    for (const auto& [atom, exponent] : monomial.factors)
      if (atom >= kFirstFreeAtom && exponent.above < 0 &&
          compare(exponent, least[atom]).value_or(0) < 0)
        least[atom] = exponent;
  MaybePolynomial result = a;
  for (const auto& [atom, exponent] : least) {
    if (exponent.above == 0) continue;
    const MaybePolynomial factor = atom_power(atom, {-exponent.above, exponent.below});
    result = result && factor ? multiply(*result, *factor, work) : std::nullopt;
  }
  return result;
}

}  // namespace

Verdict compare_exactly(const Expr& a, const Expr& b, Work& work) {
  NormalForms forms(work);
  const MaybeFraction left = forms.form(a), right = left ? forms.form(b) : std::nullopt;
  if (!right) return Verdict::kOpen;
  const MaybePolynomial rest = difference_above(*left, *right, work);
  if (!rest) return Verdict::kOpen;
  if (rest->empty()) return Verdict::kSame;
  return forms.independent() ? Verdict::kDifferent : Verdict::kOpen;
}

bool proportional_exactly(const Expr& a, const Expr& b, Work& work) {
  NormalForms forms(work);
  const MaybeFraction left = forms.form(a), right = left ? forms.form(b) : std::nullopt;
  if (!right || left->above.empty() || right->above.empty()) return false;
  const MaybePolynomial one_side = without_denominators(left->above, work);
  const MaybePolynomial other = without_denominators(right->above, work);
  if (!one_side || !other) return false;
  const MaybeRational factor = divide(one_side->rbegin()->second, other->rbegin()->second);
  const MaybePolynomial scaled_other = factor ? scaled(*other, *factor) : std::nullopt;
  return scaled_other && *scaled_other == *one_side;
}

MaybeRational rational_value(const Expr& expr, Work& work) {
  NormalForms forms(work);
  const MaybeFraction value = forms.form(expr);
  return value ? constant_value(*value) : std::nullopt;
}

}  // namespace tandem::grade
