// How many rollouts a job is to have, decided once per window of steps from what the window has
// measured (fleet_rates.h): the number that sizing.h matches to the trainer, within limits.
//
// Pure. Not responsible for carrying a change out, or for whether a place is free: the caller says
// how many more rollouts would find one.
//
// The number stays where it is within tolerance. It rises where the trainer was idle for longer
// than its target and the rates, a tenth in its favour, still say that more rollouts would match.
// It falls where two windows in a row, a tenth against it, say that fewer would do; where nothing
// overlaps and the trainer always waits, it rises by two windows as well, and with a wider
// tolerance. Rates are those of engines at work. Where the trainer waits although the rollouts
// have all the work that they take, they deliver less than their engines' rates, and these are
// lowered to what was delivered. Rollouts that are too many run few sequences each, and so are
// slow: how fast fewer of them would be follows from the costs of an engine's step, and from how
// many sequences one may decode at once.
//
//   AS-1  Within `cooldown` of a change there is none in the other direction.
//   AS-2  No change leaves [min, max], and none asks for more rollouts than find room.
//   AS-3  There is no change while the trainer is in trouble, or while weights are the stall.
//   AS-4  Rates that differ by noise alone settle: after that nothing changes.
//   AS-5  A step change of lengths is followed within two whole windows behind it, where AS-1
//         does not forbid it. A window begins anew when a rollout is added, or leaves for good.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/enum_names.h"
#include "scheduler/fleet/fleet_rates.h"
#include "scheduler/fleet/sizing.h"

namespace tandem::scheduler {

struct AutoscaleConfig {
  std::int64_t min = 1, max = 1;      // rollouts
  double target_trainer_idle = 0.05;  // in (0, 1); a trainer that is idle for less lacks nothing
  double headroom = kSizingHeadroom;  // in (0, 1]
  std::int64_t window_steps = 32;     // of one decision
  Duration cooldown = std::chrono::seconds(300);
  bool operator==(const AutoscaleConfig&) const = default;
};

// The state of the trainer that decides whether its figures can be trusted.
enum class TrainerHealth : std::uint8_t {
  kHealthy,
  kCrashLoop,
  kDown,        // it starts, or its process has ended
  kSilent,      // nothing is heard of it: it hangs, or its link is cut
  kSkipsSteps,  // the newest steps had gradients that are not finite
  kEvaluates,   // evaluations took their share of the rollouts for kEvaluationStall of the window
};
// A smaller part of a window leaves its rates as they are: jobs that evaluate every few steps are
// scaled as well.
inline constexpr double kEvaluationStall = 0.25;

// Figures of one window, and the fleet at its end.
struct AutoscaleInput {
  FleetRates rates;
  bool overlaps = true;  // FleetModel::overlaps
  // The share of the window in which the trainer waited and the rollouts had as much work as they
  // take: these waits are for want of rollouts, whatever the rates say.
  double starved_fraction = 0;
  std::int64_t wanted = 1;         // rollouts that the job is to have; > 0
  std::int64_t up = 0;             // of them at work
  std::int64_t room = 0;           // rollouts beside them that would find a place now
  std::string room_goes_to;        // the job in the queue that comes first; empty: none does
  std::int64_t sequences_max = 0;  // that one rollout decodes at once; 0: not known
  TrainerHealth trainer = TrainerHealth::kHealthy;
};

// Why nothing is changed.
enum class AutoscaleHold : std::uint8_t {
  kChanges,  // it is changed
  kWindow,   // the window has too few steps, or measured nothing
  kTrainer,  // AS-3
  kWeights,  // AS-3
  kWithinTolerance,
  kStarting,     // rollouts are wanted that are not at work yet
  kNoGain,       // the rollouts of the change before have slowed the others, and the trainer
                 // was idle as before
  kOtherCause,   // the trainer waits, although its rollouts should match
  kOneWindow,    // another number would do by this window alone
  kCoolingDown,  // AS-1
  kAtLimit,      // AS-2
};
constexpr auto enum_names(AutoscaleHold) {
  using enum AutoscaleHold;
  return enum_name_rows<AutoscaleHold>({{kChanges, "changes"},
                                        {kWindow, "window_incomplete"},
                                        {kTrainer, "trainer_unhealthy"},
                                        {kWeights, "weights_stall"},
                                        {kWithinTolerance, "within_tolerance"},
                                        {kStarting, "rollouts_start"},
                                        {kNoGain, "no_gain"},
                                        {kOtherCause, "other_cause"},
                                        {kOneWindow, "one_window"},
                                        {kCoolingDown, "cooling_down"},
                                        {kAtLimit, "at_limit"}});
}

struct AutoscaleDecision {
  AutoscaleHold hold = AutoscaleHold::kWindow;
  std::int64_t wanted = 0;              // from now on
  std::optional<std::int64_t> matched;  // would match the trainer; none: the window says nothing
  bool at_limit = false;                // more would match than max or the room allows
  std::string reason;                   // a clause with the figures, for people
};

// The figures by which the number was last raised from `rollouts`, which were too few.
struct AutoscaleRaised {
  std::int64_t rollouts = 0;
  double trainer_idle = 0, instance_per_s = 0, step_tokens = 0, consumed_per_s = 0;
  bool operator==(const AutoscaleRaised&) const = default;
};
// What rollouts deliver, per what their engines give while they are at work: measured whenever the
// trainer waits for rollouts that have all the work that they take, and kept while a step has about
// as many tokens.
struct AutoscaleDelivered {
  double share = 1;
  double step_tokens = 0;  // of the window that measured it
  bool operator==(const AutoscaleDelivered&) const = default;
};

// What one decision leaves for the next. A new one is of a job that was not scaled yet.
struct AutoscaleState {
  enum class Direction : std::uint8_t { kUp, kDown };
  struct Change {
    Time at;
    Direction direction = Direction::kUp;
  };
  std::optional<Change> change;  // the newest one
  // By the window before, where it was not within tolerance.
  std::optional<std::int64_t> matched;
  std::optional<AutoscaleRaised> raised;
  AutoscaleDelivered delivered;
};

// Whether a state that was read from outside can be decided from: its figures are finite and such
// as after_window() gives.
bool is_sound(const AutoscaleState& state);
// Whether it matters by which of them is decided.
bool differ(const AutoscaleDelivered& one, const AutoscaleDelivered& other);

AutoscaleDecision autoscale(const AutoscaleConfig& config, const AutoscaleState& state,
                            const AutoscaleInput& input, Time now);
// The state after the window. `carried_out`: the change was made; false where something refused it,
// and where there was none.
AutoscaleState after_window(const AutoscaleConfig& config, AutoscaleState state,
                            const AutoscaleInput& input, const AutoscaleDecision& decision,
                            bool carried_out, Time now);

}  // namespace tandem::scheduler
