// Faults of a simulated cluster as values. A plan is a list of them: it is drawn from a seed,
// printed, parsed, run again, and made smaller (shrink.h). fault_kinds.h says what each kind does.
//
//   agent_death@t1250ms+800ms#3   at 1.25 s since the job was submitted; it lasts 800 ms; the
//                                 number 3 chooses among the agents that are there then
//   controller_death@e412+0ms#0   before the 412th effect of the controller's process since then
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace tandem::controller {

enum class FaultKind : std::uint8_t {
  kRankDeath,
  kGangRankDeath,
  kRankHang,
  kZombie,
  kAgentDeath,
  kAgentZombie,
  kNodeDeath,
  kControllerDeath,
  kControllerStall,
  kPartition,
  kOneWay,
  kLinkLoss,
  kPacketLoss,
  kFullMailbox,
  kSlowJournal,
  kJournalFails,
  kJournalFull,
  kClockJump,
  kPublishTimeout,
  kSpawnFailure,
  kDiskFull,
  kControllerZombie,
  kPayloadLoss,
  kHostEnds,
};
inline constexpr std::size_t kFaultKinds = 24;

struct Fault {
  enum class At : std::uint8_t { kTime, kEffect };
  FaultKind kind = FaultKind::kRankDeath;
  At at = At::kTime;
  std::uint64_t when = 0;  // milliseconds, or the number of an effect
  std::uint64_t lasts_ms = 0;
  std::uint64_t target = 0;
  auto operator<=>(const Fault&) const = default;
};
using FaultPlan = std::vector<Fault>;

std::string text_of(const Fault& fault);
std::string text_of(const FaultPlan& plan);  // separated by spaces
Result<FaultPlan> parse_plan(std::string_view text);

// One to kFaultsMax faults of these kinds; of all kinds where there are none.
inline constexpr std::uint64_t kFaultsMax = 6;
FaultPlan random_plan(std::uint64_t seed, const std::vector<FaultKind>& kinds = {});

}  // namespace tandem::controller
