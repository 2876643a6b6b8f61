#include "scheduler/fleet/hang_timeout.h"

#include <algorithm>

namespace tandem::scheduler {
namespace {

struct PhaseRule {
  std::string_view phase;
  Duration unknown;  // the deadline while nothing is known
  Duration floor = kHungFloorOfDisks;
};
constexpr PhaseRule kRules[] = {{"load", kHungAfterInLoad, kHungFloorOfLoads},
                                {"restore", kHungAfterInLoad, kHungFloorOfLoads},
                                {"save", kHungAfterInSave},
                                {"record", kHungAfterInSave},
                                {"publish", kHungAfterInSave, kHungAfterInSave},
                                {"update", kHungAfter},
                                {kSubmitPhase, kHungAfter},
                                {"handler", kHungAfterInHandler, kHungFloorOfHandlers},
                                {"connect", kHungAfterInConnect, kHungAfterInConnect},
                                {"commit", kHungAfter},
                                {"train_gang", kHungAfter, kHungAfter},
                                {"turn", kHungAfterInLoad}};
constexpr PhaseRule kOthers = {"", kHungAfter, kHungFloor};

const PhaseRule& rule_of(std::string_view phase) {
  const auto* const found = std::ranges::find(kRules, phase, &PhaseRule::phase);
  return found == std::end(kRules) ? kOthers : *found;
}

}  // namespace

std::optional<Duration> hang_timeout(std::string_view phase) {
  if (phase == "idle") return std::nullopt;
  return rule_of(phase).unknown;
}

bool happens_once(std::string_view phase) { return phase == "load" || phase == "restore"; }

std::optional<Duration> hang_deadline(std::string_view phase, const PhaseHistory& history) {
  const std::optional<Duration> generous = hang_timeout(phase);
  if (!generous || history.pieces < kPiecesKnown) return generous;
  Duration least = rule_of(phase).floor;
  for (int hang = 0; hang < history.hangs && least < *generous; ++hang) least *= 2;
  // Compared before it is multiplied: a peer may tell any number.
  const Duration longest = std::max(history.longest, Duration{});
  if (longest >= *generous / kHungFactor) return generous;
  return std::min(*generous, std::max(least, kHungFactor * longest));
}

bool is_hung(std::string_view phase, Duration still, const PhaseHistory& history) {
  const std::optional<Duration> allowed = hang_deadline(phase, history);
  return allowed && still >= *allowed;
}

}  // namespace tandem::scheduler
