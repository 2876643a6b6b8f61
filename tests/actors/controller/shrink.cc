#include "tests/actors/controller/shrink.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tandem::controller {

namespace {

// The plan without the faults [from, to).
FaultPlan without(const FaultPlan& plan, std::size_t from, std::size_t to) {
  FaultPlan rest(plan.begin(), plan.begin() + static_cast<std::ptrdiff_t>(from));
  rest.insert(rest.end(), plan.begin() + static_cast<std::ptrdiff_t>(to), plan.end());
  return rest;
}

}  // namespace

FaultPlan shrink(FaultPlan plan, const std::function<bool(const FaultPlan&)>& fails) {
  std::map<FaultPlan, bool> known;
  const auto still_fails = [&](const FaultPlan& tried) {
    const auto found = known.find(tried);
    if (found != known.end()) return found->second;
    return known.emplace(tried, fails(tried)).first->second;
  };
  // Parts of half the plan are left out first, then ever smaller ones, down to single faults.
  for (std::size_t part = plan.size(); part > 0;) {
    bool smaller = false;
    for (std::size_t from = 0; from < plan.size() && !smaller; from += part) {
      FaultPlan rest = without(plan, from, std::min(from + part, plan.size()));
      smaller = still_fails(rest);
      if (smaller) plan = std::move(rest);
    }
    if (!smaller) part /= 2;
    part = std::min(part, plan.size());
  }
  for (Fault& fault : plan)
    for (bool shorter = fault.lasts_ms > 0; shorter && fault.lasts_ms > 0;) {
      const std::uint64_t before = std::exchange(fault.lasts_ms, fault.lasts_ms / 2);
      shorter = still_fails(plan);
      if (!shorter) fault.lasts_ms = before;
    }
  return plan;
}

}  // namespace tandem::controller
