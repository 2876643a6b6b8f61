#include "tests/actors/controller/fault.h"

#include <charconv>

#include "runtime/base/rng.h"
#include "tests/actors/controller/fault_kinds.h"

namespace tandem::controller {

namespace {

constexpr std::uint64_t kWithinMs = 2500;      // the jobs of storms last about so long
constexpr std::uint64_t kWithinEffects = 500;  // the effects of that time
// The kinds from this one on are drawn apart: another kind leaves the plans of most seeds alone.
constexpr auto kKindsTogether = static_cast<std::uint64_t>(FaultKind::kControllerZombie);
constexpr std::uint64_t kApartOneIn = 8;  // one plan in so many has one of those drawn apart

// Takes `prefix` and the number behind it from the front of `text`.
bool take_number(std::string_view& text, std::string_view prefix, std::uint64_t& number) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

bool parse_fault(std::string_view text, Fault& fault) {
  const auto kind = kind_named(text.substr(0, text.find('@')));
  if (!kind) return false;
  fault.kind = *kind;
  text.remove_prefix(text.find('@'));
  if (take_number(text, "@e", fault.when)) {
    fault.at = Fault::At::kEffect;
  } else if (!take_number(text, "@t", fault.when) || !take_word(text, "ms")) {
    return false;
  }
  return take_number(text, "+", fault.lasts_ms) && take_word(text, "ms") &&
         take_number(text, "#", fault.target) && text.empty();
}

Fault random_fault(Rng& rng, FaultKind kind) {
  Fault fault{.kind = kind};
  const FaultRow& row = row_of(kind);
  // A process may die or stop between any two of its effects: most of these faults are of that
  // kind.
  const bool at_effect = row.of_controller && rng.below(4) > 0;
  fault.at = at_effect ? Fault::At::kEffect : Fault::At::kTime;
  fault.when = rng.below(at_effect ? kWithinEffects : kWithinMs);
  fault.lasts_ms = row.lasts_max_ms == 0 ? 0 : rng.below(row.lasts_max_ms);
  // Most troubles are short.
  if (rng.below(2) == 0) fault.lasts_ms /= 10;
  fault.target = rng.below(1000);
  return fault;
}

}  // namespace

std::string text_of(const Fault& fault) {
  const std::string when = std::to_string(fault.when);
  return std::string(row_of(fault.kind).name) +
         (fault.at == Fault::At::kEffect ? "@e" + when : "@t" + when + "ms") + "+" +
         std::to_string(fault.lasts_ms) + "ms#" + std::to_string(fault.target);
}

std::string text_of(const FaultPlan& plan) {
  std::string text;
  for (const Fault& fault : plan) text += (text.empty() ? "" : " ") + text_of(fault);
  return text;
}

Result<FaultPlan> parse_plan(std::string_view text) {
  FaultPlan plan;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty()) continue;
    Fault fault;
    if (word.find('@') == std::string_view::npos || !parse_fault(word, fault))
      return Error{ErrorCode::kInvalid, "not a fault: " + std::string(word)};
    plan.push_back(fault);
  }
  return plan;
}

FaultPlan random_plan(std::uint64_t seed, const std::vector<FaultKind>& kinds) {
  Rng rng(derive_seed(seed, "faults"));
  FaultPlan plan(1 + rng.below(kFaultsMax));
  for (Fault& fault : plan)
    fault = random_fault(rng, kinds.empty() ? static_cast<FaultKind>(rng.below(kKindsTogether))
                                            : kinds[rng.below(kinds.size())]);
  Rng apart(derive_seed(seed, "faults drawn apart"));
  if (kinds.empty() && apart.below(kApartOneIn) == 0) {
    const auto kind =
        static_cast<FaultKind>(kKindsTogether + apart.below(kFaultKinds - kKindsTogether));
    plan[apart.below(plan.size())] = random_fault(apart, kind);
  }
  return plan;
}

}  // namespace tandem::controller
