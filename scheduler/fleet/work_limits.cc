#include "scheduler/fleet/work_limits.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"

namespace tandem::scheduler {
namespace {

constexpr double kTimesMost = 64;  // an estimate from less than a 64th of the work is none

std::int64_t whole_groups(double sequences, std::int64_t completions) {
  return static_cast<std::int64_t>(std::ceil(sequences / static_cast<double>(completions))) *
         completions;
}

}  // namespace

LimitRaise sequence_limit(const WorkLimits& limits) {
  const bool held = limits.held_max && *limits.held_max <= limits.sequences_max;
  const std::int64_t now = held ? *limits.held_max : limits.sequences_max;
  return {.limit = held ? WorkLimit::kHeld : WorkLimit::kSequences, .now = now, .raised = now};
}

std::optional<LimitRaise> more_sequences(const WorkLimits& limits, const MoreWork& wanted) {
  CHECK(wanted.rollouts > 0 && wanted.headroom > 0 && limits.completions_per_prompt > 0);
  LimitRaise raise = sequence_limit(limits);
  if (raise.now <= 0) return std::nullopt;
  const auto now = static_cast<double>(raise.now);
  const double ahead = static_cast<double>(limits.lookahead + 1) *
                       static_cast<double>(limits.prompts_per_step) *
                       static_cast<double>(limits.completions_per_prompt);
  const std::int64_t useful =
      whole_groups(ahead / static_cast<double>(wanted.rollouts), limits.completions_per_prompt);
  const double needed = now * std::clamp(wanted.times, 1.0, kTimesMost) / wanted.headroom;
  raise.raised = std::min(whole_groups(needed, limits.completions_per_prompt), useful);
  if (raise.raised <= raise.now) return std::nullopt;
  return raise;
}

std::optional<LimitRaise> limit_behind(TrainerWait wait, const WorkLimits& limits,
                                       const MoreWork& wanted) {
  if (limits.sequences_max <= 0) return std::nullopt;
  if (wait == TrainerWait::kSamples) return more_sequences(limits, wanted);
  if (wait != TrainerWait::kLast) return std::nullopt;
  if (limits.lookahead < limits.max_staleness)
    return LimitRaise{
        .limit = WorkLimit::kLookahead, .now = limits.lookahead, .raised = limits.max_staleness};
  return LimitRaise{.limit = WorkLimit::kStaleness,
                    .now = limits.max_staleness,
                    .raised = limits.max_staleness + 1};
}

}  // namespace tandem::scheduler
