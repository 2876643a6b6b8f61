// Evaluation keeps each value as a ball, real and imaginary part, and notes the largest and
// smallest size of any value on the way (`range`): the sum of 1 and e^{-1000} cannot be told from 1
// with the digits there are, and must not be taken for equal to it.
#include "actors/grade/evaluate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "actors/grade/fixed_point.h"

namespace tandem::grade {
namespace {

constexpr int kPointsWanted = 6, kPointsLeast = 3, kPointsTried = 30;
constexpr double kSpareBits = 64;      // by which equal values agree beyond the digits of the texts
constexpr double kBitsPerDigit = 3.4;  // a little over log2(10)
constexpr int kPowerMax = 4096;

enum Cost {
  kTimes = 1,
  kDivide = 8,
  kSquareRoot = 10,
  kSeries = 60,
  kArcTangent = 150,
  kLog = 220
};

struct Complex {
  Ball re, im;
  bool real() const { return is_zero(im); }
};
using MaybeComplex = std::optional<Complex>;
using Point = std::map<std::string, Ball>;

MaybeComplex real_value(const MaybeBall& re) {
  return re ? MaybeComplex(Complex{.re = *re, .im = {}}) : std::nullopt;
}

class Evaluation {
 public:
  Evaluation(const Point& point, Budget& budget) : point_(point), budget_(budget) {}

  MaybeComplex value(const Expr& expr) {
    MaybeComplex result = computed(expr);
    if (result) {
      note(result->re);
      note(result->im);
    }
    return result;
  }
  // The largest binary logarithm of a value's size, or of its inverse.
  double range() const { return range_; }

 private:
  void note(const Ball& ball) {
    if (!may_be_zero(ball)) range_ = std::max(range_, std::fabs(magnitude(ball)));
  }
  bool spend(int cost) { return (budget_.evaluation_left -= cost) >= 0; }

  MaybeComplex computed(const Expr& expr) {
    if (!spend(kTimes)) return std::nullopt;
    switch (expr->op) {
      case Op::kNumber:
        return literal(expr->name);
      case Op::kSymbol: {
        const auto at = point_.find(expr->name);
        return at == point_.end() ? std::nullopt : real_value(at->second);
      }
      case Op::kPi:
        return real_value(pi());
      case Op::kEuler:
        return spend(kSeries) ? real_value(exponential(*ball_of(1))) : std::nullopt;
      case Op::kImaginary:
        return Complex{.re = {}, .im = *ball_of(1)};
      case Op::kSum:
      case Op::kProduct: {
        const bool sum = is(expr, Op::kSum);
        Complex total{.re = sum ? zero() : *ball_of(1), .im = {}};
        for (const Expr& part : expr->parts) {
          const MaybeComplex next = value(part);
          const MaybeComplex joined = !next ? std::nullopt
                                      : sum ? added(total, *next)
                                            : multiplied(total, *next);
          if (!joined) return std::nullopt;
          total = *joined;
        }
        return total;
      }
      case Op::kPower:
        return raised(expr->parts[0], expr->parts[1]);
      case Op::kRoot: {
        const MaybeRational index = rational_value(expr->parts[1], budget_.algebra);
        const auto whole = index ? small_whole(*index) : std::nullopt;
        const MaybeComplex radicand = value(expr->parts[0]);
        if (!radicand || whole.value_or(0) < 2 || *whole > kPowerMax) return std::nullopt;
        return rational_power(*radicand, {1, *whole});
      }
      case Op::kFunction:
        return applied(expr);
      default:
        return std::nullopt;
    }
  }

  static MaybeComplex literal(std::string_view digits) {
    const bool minus = digits.starts_with('-');
    if (minus) digits.remove_prefix(1);
    const MaybeBall size = ball_of_digits(digits.data(), digits.data() + digits.size());
    return size ? real_value(minus ? negated(*size) : *size) : std::nullopt;
  }

  MaybeComplex added(const Complex& a, const Complex& b) {
    const MaybeBall re = add(a.re, b.re), im = add(a.im, b.im);
    return re && im && spend(kTimes) ? MaybeComplex(Complex{*re, *im}) : std::nullopt;
  }
  MaybeComplex multiplied(const Complex& a, const Complex& b) {
    if (!spend(kTimes)) return std::nullopt;
    if (a.real() && b.real()) return real_value(multiply(a.re, b.re));
    const MaybeBall both = multiply(a.re, b.re), neither = multiply(a.im, b.im);
    const MaybeBall left = multiply(a.re, b.im), right = multiply(a.im, b.re);
    if (!both || !neither || !left || !right || !spend(3 * kTimes)) return std::nullopt;
    const MaybeBall re = add(*both, negated(*neither)), im = add(*left, *right);
    return re && im ? MaybeComplex(Complex{*re, *im}) : std::nullopt;
  }
  MaybeComplex inverted(const Complex& a) {
    if (!spend(2 * kDivide)) return std::nullopt;
    const Ball one = *ball_of(1);
    if (a.real()) return real_value(divide(one, a.re));
    const MaybeBall re2 = multiply(a.re, a.re), im2 = multiply(a.im, a.im);
    const MaybeBall size = re2 && im2 ? add(*re2, *im2) : std::nullopt;
    const MaybeBall re = size ? divide(a.re, *size) : std::nullopt;
    const MaybeBall im = size ? divide(negated(a.im), *size) : std::nullopt;
    return re && im ? MaybeComplex(Complex{*re, *im}) : std::nullopt;
  }

  // powers

  MaybeComplex whole_power(const Complex& base, int exponent) {
    if (std::abs(exponent) > kPowerMax) return std::nullopt;
    if (exponent == 0 && is_zero(base.re) && base.real()) return std::nullopt;
    Complex total{.re = *ball_of(1), .im = {}}, square = base;
    for (int left = std::abs(exponent); left > 0; left /= 2) {
      if (left % 2 == 1) {
        const MaybeComplex next = multiplied(total, square);
        if (!next) return std::nullopt;
        total = *next;
      }
      if (left == 1) break;
      const MaybeComplex next = multiplied(square, square);
      if (!next) return std::nullopt;
      square = *next;
    }
    return exponent < 0 ? inverted(total) : total;
  }

  MaybeComplex natural_power(const Complex& exponent) {  // e^exponent
    if (!spend(2 * kSeries)) return std::nullopt;
    const MaybeBall size = exponential(exponent.re);
    if (!size || exponent.real()) return real_value(size);
    const auto turn = sine_cosine(exponent.im);
    if (!turn) return std::nullopt;
    const MaybeBall re = multiply(*size, turn->cosine), im = multiply(*size, turn->sine);
    return re && im ? MaybeComplex(Complex{*re, *im}) : std::nullopt;
  }

  MaybeComplex positive_power(const Ball& base, const Complex& exponent) {
    const MaybeBall log = spend(kLog) ? logarithm(base) : std::nullopt;
    const MaybeComplex power = log ? multiplied({.re = *log, .im = {}}, exponent) : std::nullopt;
    return power ? natural_power(*power) : std::nullopt;
  }

  MaybeComplex rational_power(const Complex& base, const SmallRational& exponent) {
    if (const auto whole = small_whole(exponent))
      return std::abs(*whole) <= kPowerMax ? whole_power(base, static_cast<int>(*whole))
                                           : std::nullopt;
    if (exponent.below == 2) {
      const MaybeComplex root = root_of(base);
      return root && exponent.above <= kPowerMax && exponent.above >= -kPowerMax
                 ? whole_power(*root, static_cast<int>(exponent.above))
                 : std::nullopt;
    }
    if (!base.real()) return std::nullopt;
    if (is_zero(base.re)) return exponent.above > 0 ? MaybeComplex(base) : std::nullopt;
    const MaybeBall power = ball_of(exponent);
    if (may_be_zero(base.re) || !power) return std::nullopt;
    const bool minus = base.re.middle.minus;
    if (minus && exponent.below % 2 == 0) return std::nullopt;
    const MaybeComplex size =
        positive_power(minus ? negated(base.re) : base.re, {.re = *power, .im = {}});
    return size && minus && exponent.above % 2 != 0 ? real_value(negated(size->re)) : size;
  }

  MaybeComplex root_of(const Complex& square) {
    if (!spend(4 * kSquareRoot)) return std::nullopt;
    if (square.real()) {
      if (!square.re.middle.minus) return real_value(square_root(square.re));
      const MaybeBall size = square_root(negated(square.re));
      return size ? MaybeComplex(Complex{.re = {}, .im = *size}) : std::nullopt;
    }
    // √(x + iy) = √((r + x)/2) + i·sign(y)·√((r - x)/2)
    const MaybeBall size = size_of(square);
    if (!size || may_be_zero(square.im)) return std::nullopt;
    const Ball half = *divide(*ball_of(1), *ball_of(2));
    const MaybeBall sum = add(*size, square.re), rest = add(*size, negated(square.re));
    const MaybeBall re = sum ? square_root(*multiply(*sum, half)) : std::nullopt;
    const MaybeBall im = rest ? square_root(*multiply(*rest, half)) : std::nullopt;
    if (!re || !im) return std::nullopt;
    return Complex{.re = *re, .im = square.im.middle.minus ? negated(*im) : *im};
  }

  MaybeBall size_of(const Complex& value) {
    if (value.real()) return value.re.middle.minus ? negated(value.re) : value.re;
    const MaybeBall re2 = multiply(value.re, value.re), im2 = multiply(value.im, value.im);
    const MaybeBall sum = re2 && im2 ? add(*re2, *im2) : std::nullopt;
    return sum && spend(kSquareRoot) ? square_root(*sum) : std::nullopt;
  }

  MaybeComplex raised(const Expr& base, const Expr& exponent) {
    const MaybeRational exact = rational_value(exponent, budget_.algebra);
    if (is(base, Op::kEuler)) {
      const MaybeComplex power = value(exponent);
      return power ? natural_power(*power) : std::nullopt;
    }
    const MaybeComplex below = value(base);
    if (!below) return std::nullopt;
    if (exact) return rational_power(*below, *exact);
    const MaybeComplex power = value(exponent);
    if (!power) return std::nullopt;
    if (const auto whole = power->real() ? whole_of(power->re) : std::nullopt)
      return whole_power(*below, *whole);
    if (!below->real() || may_be_zero(below->re) || below->re.middle.minus) return std::nullopt;
    return positive_power(below->re, *power);
  }

  // functions of real numbers

  MaybeComplex applied(const Expr& expr) {
    const std::string& name = expr->name;
    std::vector<Ball> of;
    for (const Expr& part : expr->parts) {
      const MaybeComplex argument = value(part);
      if (!argument) return std::nullopt;
      if (name == "abs") return real_value(size_of(*argument));
      if (!argument->real()) return std::nullopt;
      of.push_back(argument->re);
    }
    if (name == "floor" || name == "ceil") return real_value(rounded(of[0], name == "ceil"));
    if (name == "factorial") return real_value(factorial(of[0]));
    if (name == "binomial") return real_value(binomial(of[0], of[1]));
    if (name == "ln") return spend(kLog) ? real_value(logarithm(of[0])) : std::nullopt;
    if (name == "log") {
      if (!spend(2 * kLog)) return std::nullopt;
      const MaybeBall above = logarithm(of[0]), below = logarithm(of[1]);
      return above && below ? real_value(divide(*above, *below)) : std::nullopt;
    }
    if (name.starts_with("arc")) return real_value(inverse_circular(name, of[0]));
    if (name.ends_with("h")) return real_value(hyperbolic(name, of[0]));
    return real_value(circular(name, of[0]));
  }

  MaybeBall circular(const std::string& name, const Ball& angle) {
    const auto turn = spend(kSeries + kDivide) ? sine_cosine(angle) : std::nullopt;
    if (!turn) return std::nullopt;
    if (name == "sin") return turn->sine;
    if (name == "cos") return turn->cosine;
    if (name == "tan") return divide(turn->sine, turn->cosine);
    if (name == "cot") return divide(turn->cosine, turn->sine);
    if (name == "sec") return divide(*ball_of(1), turn->cosine);
    if (name == "csc") return divide(*ball_of(1), turn->sine);
    return std::nullopt;
  }

  MaybeBall inverse_circular(const std::string& name, const Ball& x) {
    if (!spend(kArcTangent)) return std::nullopt;
    if (name == "arctan") return arc_tangent(x);
    const Ball one = *ball_of(1);
    const MaybeBall half = divide(pi(), *ball_of(2));
    MaybeBall sine;
    if (x.error == kExact && (x.middle == one.middle || negated(x).middle == one.middle)) {
      sine = x.middle.minus ? negated(*half) : *half;
    } else {  // atan(x / √(1 - x²))
      const MaybeBall square = multiply(x, x);
      const MaybeBall rest = square ? add(one, negated(*square)) : std::nullopt;
      const MaybeBall root = rest ? square_root(*rest) : std::nullopt;
      const MaybeBall ratio = root ? divide(x, *root) : std::nullopt;
      sine = ratio ? arc_tangent(*ratio) : std::nullopt;
    }
    if (!sine || name == "arcsin") return sine;
    return add(*half, negated(*sine));
  }

  MaybeBall hyperbolic(const std::string& name, const Ball& x) {
    const MaybeBall up = spend(2 * kSeries) ? exponential(x) : std::nullopt;
    const MaybeBall down = up ? exponential(negated(x)) : std::nullopt;
    if (!down) return std::nullopt;
    const MaybeBall sum = add(*up, *down), rest = add(*up, negated(*down));
    if (!sum || !rest) return std::nullopt;
    if (name == "tanh") return divide(*rest, *sum);
    return divide(name == "sinh" ? *rest : *sum, *ball_of(2));
  }

  // The floor or ceiling, where the error does not leave it open.
  static MaybeBall rounded(const Ball& value, bool up) {
    if (up) {
      const MaybeBall floor = rounded(negated(value), false);
      return floor ? MaybeBall(negated(*floor)) : std::nullopt;
    }
    Ball floor = floor_of(value);
    floor.error = kExact;
    if (value.error == kExact) return floor;
    const MaybeBall above = add(value, negated(floor));
    const MaybeBall below = above ? add(*ball_of(1), negated(*above)) : std::nullopt;
    if (!below || may_be_zero(*above) || may_be_zero(*below)) return std::nullopt;
    return floor;
  }

  MaybeBall factorial(const Ball& value) {
    const auto n = whole_of(value);
    if (!n || *n < 0) return std::nullopt;
    Ball total = *ball_of(1);
    for (int factor = 2; factor <= *n; ++factor) {
      const MaybeBall next = multiply(total, *ball_of(factor));
      if (!next || !spend(kTimes)) return std::nullopt;
      total = *next;
    }
    return total;
  }
  MaybeBall binomial(const Ball& n, const Ball& chosen) {
    const auto count = whole_of(chosen);
    if (!count || *count < 0) return std::nullopt;
    Ball total = *ball_of(1);
    for (int i = 0; i < *count; ++i) {
      const MaybeBall factor = add(n, *ball_of(-i));
      const MaybeBall above = factor ? multiply(total, *factor) : std::nullopt;
      const MaybeBall next = above ? divide(*above, *ball_of(i + 1)) : std::nullopt;
      if (!next || !spend(kDivide)) return std::nullopt;
      total = *next;
    }
    return total;
  }

  const Point& point_;
  Budget& budget_;
  double range_ = 0;
};

// Points, by a generator whose seed is a hash of both expressions.
class Points {
 public:
  Points(const Expr& a, const Expr& b) {
    const auto collect = [&](const Node& node) {
      if (node.op == Op::kSymbol) names_.insert(node.name);
      if (node.op == Op::kImaginary) imaginary_ = true;
      if (node.op == Op::kNumber) digits_ += static_cast<double>(node.name.size());
      return false;
    };
    any_part(a, collect);
    any_part(b, collect);
    state_ = hashed(spelled(a) + " " + spelled(b), kHashStart);
  }

  bool constant() const { return names_.empty(); }
  bool complex() const { return imaginary_ || constant(); }
  // How far values must agree to count as equal: -log2 of the difference.
  double bits_wanted() const { return kSpareBits + kBitsPerDigit * digits_; }

  Point draw(int attempt, bool whole) {
    Point point;
    for (const std::string& name : names_) point[name] = place(next(), attempt, whole);
    return point;
  }
  // The same place for the same name, whatever the expressions are. All are below 0 at the second
  // point, so that x is not √x².
  Point known(int attempt, bool whole) const {
    Point point;
    for (const std::string& name : names_) {
      std::uint64_t seed = hashed(name + std::to_string(attempt), kHashStart);
      const std::uint64_t sign = attempt == 1 ? 1 : 0;
      point[name] = place(mixed(seed) | sign, attempt, whole);
    }
    return point;
  }

 private:
  static constexpr std::uint64_t kHashStart = 0xcbf29ce484222325ULL;
  static std::uint64_t hashed(std::string_view text, std::uint64_t state) {  // FNV-1a
    for (const unsigned char c : text) state = (state ^ c) * 0x100000001b3ULL;
    return state;
  }
  static std::uint64_t mixed(std::uint64_t& state) {  // SplitMix64
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  std::uint64_t next() { return mixed(state_); }

  static Ball place(std::uint64_t random, int attempt, bool whole) {
    static constexpr double kScales[] = {1, 1, 4, 0.25, 1, 16, 64, 0.03125};
    const bool minus = attempt % 3 != 0 && (random & 1) != 0 && !whole;
    double value = whole ? static_cast<double>(2 + random % 40)
                         : (0.3 + static_cast<double>(random >> 14) * 0x1p-50 * 2) *
                               kScales[attempt % std::size(kScales)];
    if (!whole) value = std::ldexp(std::floor(std::ldexp(value, 44)), -44);
    const auto scaled = static_cast<Int128>(std::ldexp(value, whole ? 0 : 44));
    const Int128 unit = whole ? 1 : static_cast<Int128>(1) << 44;
    return *ball_of(*make_rational(minus ? -scaled : scaled, unit));
  }

  std::set<std::string> names_;
  bool imaginary_ = false;
  double digits_ = 0;
  std::uint64_t state_ = kHashStart;
};

// Whether a number is 0: kSame with far more digits than the texts have.
Verdict nought(const Complex& value, double bits_wanted) {
  if (!may_be_zero(value.re) || !may_be_zero(value.im)) return Verdict::kDifferent;
  return std::max(value.re.error, value.im.error) <= -bits_wanted ? Verdict::kSame : Verdict::kOpen;
}

MaybeComplex minus(const MaybeComplex& a, const MaybeComplex& b) {
  if (!a || !b) return std::nullopt;
  const MaybeBall re = add(a->re, negated(b->re)), im = add(a->im, negated(b->im));
  return re && im ? MaybeComplex(Complex{*re, *im}) : std::nullopt;
}
MaybeComplex times(const Complex& a, const Complex& b) {
  if (a.real() && b.real()) return real_value(multiply(a.re, b.re));
  const MaybeBall both = multiply(a.re, b.re), neither = multiply(a.im, b.im);
  const MaybeBall left = multiply(a.re, b.im), right = multiply(a.im, b.re);
  if (!both || !neither || !left || !right) return std::nullopt;
  const MaybeBall re = add(*both, negated(*neither)), im = add(*left, *right);
  return re && im ? MaybeComplex(Complex{*re, *im}) : std::nullopt;
}

struct Pair {
  Complex a, b;
  double range = 0;
};

// Calls `judge` with both values at the points where both are defined, until it finds a difference.
Verdict at_points(const Expr& a, const Expr& b, Budget& budget, const auto& judge) {
  Points points(a, b);
  for (const bool whole : {false, true}) {
    int found = 0;
    for (int attempt = 0; attempt < kPointsTried && found < kPointsWanted; ++attempt) {
      const Point point = points.draw(attempt, whole);
      Evaluation evaluation(point, budget);
      const MaybeComplex left = evaluation.value(a);
      const MaybeComplex right = left ? evaluation.value(b) : std::nullopt;
      if (budget.evaluation_left < 0) return Verdict::kOpen;
      const bool defined = right && (points.complex() || (left->real() && right->real()));
      if (defined) {
        const Verdict verdict =
            judge(Pair{*left, *right, evaluation.range()}, points.bits_wanted());
        if (verdict != Verdict::kSame) return verdict;
        ++found;
      }
      if (points.constant()) return found > 0 ? Verdict::kSame : Verdict::kOpen;
    }
    if (found > 0) return found >= kPointsLeast ? Verdict::kSame : Verdict::kOpen;
  }
  return Verdict::kOpen;
}

}  // namespace

Verdict compare_by_evaluation(const Expr& a, const Expr& b, Budget& budget) {
  return at_points(a, b, budget, [](const Pair& pair, double bits) {
    const MaybeComplex rest = minus(pair.a, pair.b);
    return rest ? nought(*rest, bits + 2 * pair.range) : Verdict::kOpen;
  });
}

Verdict proportional_by_evaluation(const Expr& a, const Expr& b, bool& positive, Budget& budget) {
  std::optional<Pair> first;
  return at_points(a, b, budget, [&](const Pair& pair, double bits) {
    const bool tiny = may_be_zero(pair.a.re) && may_be_zero(pair.a.im);
    if (tiny || (may_be_zero(pair.b.re) && may_be_zero(pair.b.im))) return Verdict::kOpen;
    if (!first) {
      first = pair;
      positive = pair.a.re.middle.minus == pair.b.re.middle.minus;
      return Verdict::kSame;
    }
    const MaybeComplex left = times(pair.a, first->b), right = times(first->a, pair.b);
    const MaybeComplex rest = minus(left, right);
    return rest ? nought(*rest, bits + 2 * std::max(pair.range, first->range)) : Verdict::kOpen;
  });
}

std::vector<PointValue> values_at_known_points(const Expr& expr, std::size_t wanted,
                                               double bits_most, Budget& budget) {
  const Points points(expr, expr);
  for (const bool whole : {false, true}) {
    std::vector<PointValue> values;
    for (int attempt = 0; attempt < kPointsTried && values.size() < wanted; ++attempt) {
      const Point point = points.known(attempt, whole);
      Evaluation evaluation(point, budget);
      const MaybeComplex value = evaluation.value(expr);
      if (budget.evaluation_left < 0) return {};
      if (value && (points.complex() || value->real())) {
        if (points.bits_wanted() + 2 * evaluation.range() > bits_most) return {};
        values.push_back({value->re, value->im});
      }
      if (points.constant()) return values;
    }
    if (!values.empty()) return values.size() == wanted ? values : std::vector<PointValue>();
  }
  return {};
}

std::optional<double> approximate(const Expr& expr, Budget& budget) {
  const Point nowhere;
  const MaybeComplex value = Evaluation(nowhere, budget).value(expr);
  if (!value || !value->real() || value->re.error > -40) return std::nullopt;
  return rough_value(value->re);
}

}  // namespace tandem::grade
