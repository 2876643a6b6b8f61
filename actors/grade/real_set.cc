// A set is collected as intervals in any order, then brought into order by the approximate place of
// their ends and merged. Whether two ends are equal is decided exactly, like any expression.
#include "actors/grade/real_set.h"

#include <algorithm>
#include <limits>

namespace tandem::grade {
namespace {

constexpr std::size_t kIntervalsMax = 16;

bool is_end(const Expr& expr) {
  return has_value(expr) && !any_part(expr, [](const Node& node) {
           return node.op == Op::kSymbol || node.op == Op::kImaginary;
         });
}

// ±∞ as -1 or 1, 0 for anything else.
int infinity_of(const Expr& expr) {
  if (is(expr, Op::kInfinity)) return 1;
  const bool negated = is(expr, Op::kProduct) && expr->parts.size() == 2 &&
                       is(expr->parts[1], Op::kInfinity) && expr->parts[0]->name == "-1";
  return negated ? -1 : 0;
}

class Collector {
 public:
  explicit Collector(Budget& budget) : budget_(budget) {}
  RealSet set;

  bool collect(const Expr& expr) {
    switch (expr->op) {
      case Op::kReals:
        return add({});
      case Op::kBracket:
        return interval(expr);
      case Op::kSet:
        return std::ranges::all_of(expr->parts, [&](const Expr& part) { return point(part); });
      case Op::kUnion:
        return std::ranges::all_of(expr->parts, [&](const Expr& part) { return collect(part); });
      case Op::kList:
        if (expr->name == "and") return intersection(expr->parts);
        return expr->name == "or" &&
               std::ranges::all_of(expr->parts, [&](const Expr& part) { return collect(part); });
      case Op::kWithout:
        return without(expr);
      case Op::kRelation:
        return expr->name == "e" ? named(expr->parts[0]) && collect(expr->parts[1])
                                 : relation(expr);
      case Op::kChain:
        return chain(expr);
      default:
        return false;
    }
  }

  // Sorts and merges; false where the place of an end is not known.
  bool order() {
    struct Placed {
      double low, high;
      RealInterval interval;
    };
    std::vector<Placed> placed;
    for (const RealInterval& part : set.parts) {
      const auto low = place(part.low, -1), high = place(part.high, 1);
      if (!low || !high) return false;
      if (*low > *high) return false;
      placed.push_back({*low, *high, part});
    }
    std::ranges::stable_sort(placed, {}, &Placed::low);
    std::vector<Placed> merged;
    for (const Placed& next : placed) {
      if (!merged.empty()) {
        Placed& last = merged.back();
        const bool touch = last.interval.high && next.interval.low &&
                           same_expression(last.interval.high, next.interval.low, budget_);
        const bool joined = touch ? last.interval.high_closed || next.interval.low_closed
                                  : !last.interval.high || last.high > next.low;
        if (joined) {
          join(last.interval, next.interval, last.high, next.high);
          last.high = std::max(last.high, next.high);
          continue;
        }
      }
      merged.push_back(next);
    }
    set.parts.clear();
    for (const Placed& each : merged) set.parts.push_back(each.interval);
    return true;
  }

 private:
  bool add(RealInterval interval) {
    set.parts.push_back(std::move(interval));
    return set.parts.size() <= kIntervalsMax;
  }
  bool point(const Expr& at) { return is_end(at) && add({at, at, true, true}); }

  bool named(const Expr& name) {
    if (!is(name, Op::kSymbol) || (!set.name.empty() && set.name != name->name)) return false;
    set.name = name->name;
    return true;
  }

  bool interval(const Expr& expr) {
    if (expr->parts.size() != 2) return false;
    RealInterval interval{.low_closed = expr->name[0] == '[', .high_closed = expr->name[1] == ']'};
    const int low = infinity_of(expr->parts[0]), high = infinity_of(expr->parts[1]);
    if (low > 0 || high < 0) return false;
    if (low == 0) interval.low = expr->parts[0];
    if (high == 0) interval.high = expr->parts[1];
    if ((interval.low && !is_end(interval.low)) || (interval.high && !is_end(interval.high)))
      return false;
    interval.low_closed = interval.low_closed && interval.low;
    interval.high_closed = interval.high_closed && interval.high;
    return add(interval);
  }

  bool hole(const Expr& at) {  // all but one number
    return is_end(at) && add({.low = nullptr, .high = at}) && add({.low = at, .high = nullptr});
  }

  bool without(const Expr& expr) {  // \mathbb{R} \setminus \{2\}
    const Expr& taken = expr->parts[1];
    if (!is(expr->parts[0], Op::kReals) || !is(taken, Op::kSet) || taken->parts.empty())
      return false;
    std::vector<std::pair<double, Expr>> ends;
    for (const Expr& part : taken->parts) {
      const auto at = is_end(part) ? approximate(part, budget_) : std::nullopt;
      if (!at) return false;
      ends.emplace_back(*at, part);
    }
    std::ranges::sort(ends, {}, [](const auto& end) { return end.first; });
    Expr low;
    for (const auto& [at, end] : ends) {
      if (!add({.low = low, .high = end})) return false;
      low = end;
    }
    return add({.low = low, .high = nullptr});
  }

  // x > 2 and x < 5: of several intervals, what is in all of them.
  bool intersection(const std::vector<Expr>& parts) {
    RealInterval all;
    for (const Expr& part : parts) {
      Collector one(budget_);
      const bool interval = one.collect(part) && one.set.parts.size() == 1 &&
                            !one.set.name.empty() && named(symbol(one.set.name));
      if (!interval || !raise(all, one.set.parts[0]) || !lower(all, one.set.parts[0])) return false;
    }
    return add(all);
  }
  // Moves the lower end of `all` up to that of `by`; false where the place of an end is not known.
  bool raise(RealInterval& all, const RealInterval& by) {
    const std::optional<int> side = order_of(by.low, all.low, -1);
    if (side && *side > 0) all.low = by.low, all.low_closed = by.low_closed;
    if (side && *side == 0) all.low_closed = all.low_closed && by.low_closed;
    return side.has_value();
  }
  bool lower(RealInterval& all, const RealInterval& by) {
    const std::optional<int> side = order_of(by.high, all.high, 1);
    if (side && *side < 0) all.high = by.high, all.high_closed = by.high_closed;
    if (side && *side == 0) all.high_closed = all.high_closed && by.high_closed;
    return side.has_value();
  }
  // -1 where `a` is below `b`, 0 where they are equal, else 1; an end that is null is at
  // `infinity`.
  std::optional<int> order_of(const Expr& a, const Expr& b, int infinity) {
    const auto left = place(a, infinity), right = place(b, infinity);
    if (!left || !right) return std::nullopt;
    if (a && b && same_expression(a, b, budget_)) return 0;
    return *left < *right ? -1 : *left > *right ? 1 : 0;
  }

  // |x| < 2 and |x - 1| >= 2; none where the left side is no such distance.
  std::optional<bool> distance(const Expr& expr) {
    const Expr& left = expr->parts[0];
    if (!is(left, Op::kFunction) || left->name != "abs") return std::nullopt;
    const Expr &inside = left->parts[0], &radius = expr->parts[1];
    Expr center = number("0"), name = inside;
    if (is(inside, Op::kSum) && inside->parts.size() == 2) {
      name = inside->parts[0];
      center = negative(inside->parts[1]);
    }
    const auto size = is_end(radius) ? approximate(radius, budget_) : std::nullopt;
    if (!size || *size <= 0 || !is_end(center) || !named(name)) return false;
    const Expr low = difference(center, radius), high = grade::sum(center, radius);
    const bool closed = expr->name == "l" || expr->name == "g";
    if (expr->name == "<" || expr->name == "l") return add({low, high, closed, closed});
    if (expr->name != ">" && expr->name != "g") return false;
    return add({.low = nullptr, .high = low, .high_closed = closed}) &&
           add({.low = high, .high = nullptr, .low_closed = closed});
  }

  bool relation(const Expr& expr) {
    if (const std::optional<bool> done = distance(expr)) return *done;
    const bool turned = is(expr->parts[1], Op::kSymbol);
    const Expr& name = expr->parts[turned ? 1 : 0];
    const Expr& end = expr->parts[turned ? 0 : 1];
    if (!is_end(end) || !named(name)) return false;
    switch (expr->name[0]) {
      case '=':
        return point(end);
      case '!':
        return hole(end);
      case '<':
      case 'l':
        return ray(end, !turned, expr->name == "l");
      default:
        return ray(end, turned, expr->name == "g");
    }
  }
  bool ray(const Expr& end, bool downward, bool closed) {
    return downward ? add({.low = nullptr, .high = end, .high_closed = closed})
                    : add({.low = end, .high = nullptr, .low_closed = closed});
  }

  bool chain(const Expr& expr) {  // 1 < x <= 3
    if (expr->parts.size() != 2) return false;
    const Expr &first = expr->parts[0], &second = expr->parts[1];
    const auto upward = [](const std::string& sign) { return sign == "<" || sign == "l"; };
    const auto downward = [](const std::string& sign) { return sign == ">" || sign == "g"; };
    const bool up = upward(first->name) && upward(second->name);
    if (!up && !(downward(first->name) && downward(second->name))) return false;
    const Expr &left = first->parts[0], &right = second->parts[1];
    if (!is_end(left) || !is_end(right) || !named(first->parts[1])) return false;
    const bool left_closed = first->name == "l" || first->name == "g";
    const bool right_closed = second->name == "l" || second->name == "g";
    return up ? add({left, right, left_closed, right_closed})
              : add({right, left, right_closed, left_closed});
  }

  std::optional<double> place(const Expr& end, int infinity) {
    if (!end) return infinity * std::numeric_limits<double>::infinity();
    return approximate(end, budget_);
  }

  void join(RealInterval& last, const RealInterval& next, double last_high, double next_high) {
    const bool same_low = last.low == next.low ||
                          (last.low && next.low && same_expression(last.low, next.low, budget_));
    if (same_low) last.low_closed = last.low_closed || next.low_closed;
    if (next_high > last_high) {
      last.high = next.high;
      last.high_closed = next.high_closed;
    } else if (next_high == last_high) {
      last.high_closed = last.high_closed || next.high_closed;
    }
  }

  Budget& budget_;
};

}  // namespace

std::optional<RealSet> real_set(const Expr& expr, Budget& budget) {
  Collector collector(budget);
  if (!collector.collect(expr) || !collector.order()) return std::nullopt;
  return std::move(collector.set);
}

bool same_set(const RealSet& a, const RealSet& b, Budget& budget) {
  if (!a.name.empty() && !b.name.empty() && a.name != b.name) return false;
  const auto same_end = [&](const Expr& left, const Expr& right) {
    return !left || !right ? !left && !right : same_expression(left, right, budget);
  };
  return std::ranges::equal(a.parts, b.parts, [&](const RealInterval& x, const RealInterval& y) {
    return x.low_closed == y.low_closed && x.high_closed == y.high_closed &&
           same_end(x.low, y.low) && same_end(x.high, y.high);
  });
}

}  // namespace tandem::grade
