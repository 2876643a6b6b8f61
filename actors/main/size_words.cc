// The sentences of a size report. Each figure stands beside its threshold, and each fault beside
// the command or the keys that mend it.
#include <algorithm>
#include <cmath>
#include <string>

#include "actors/main/size_command.h"
#include "actors/main/size_numbers.h"
#include "actors/main/size_report.h"
#include "scheduler/fleet/fleet_gap.h"

namespace tandem::app {
namespace {

using scheduler::Advice;
using scheduler::AdviceKind;
using scheduler::FleetVerdict;
using scheduler::SteadyState;

constexpr double kBacklogSeconds = 600;

std::string job_word(const SizeReport& report) {
  return report.input.job.empty() ? "JOB" : report.input.job;
}

AdviceWords spread_words(const Advice& advice, const SizeReport& report) {
  const auto& all = report.input.rates.rollouts;
  const auto [slowest, fastest] = std::ranges::minmax_element(
      all, {}, [](const scheduler::RolloutRate& one) { return one.tokens_per_s; });
  const std::string actor = advice.actor.empty() ? "the slowest rollout" : advice.actor;
  const std::string named = advice.actor.empty() ? job_word(report) + "/rollout/N" : advice.actor;
  return {"the rollouts' rates spread by " + percent(advice.seen) + " of their mean (at most " +
              percent(advice.threshold) + "): " + actor + " generates " +
              grouped(slowest->tokens_per_s) + " tok/s, the fastest " +
              grouped(fastest->tokens_per_s),
          "a straggler or its place, not the size: tandem describe actor/" + named +
              "; its node, its threads (pools.rollout)"};
}

AdviceWords slack_words(const Advice& advice, const SizeReport& report) {
  if (report.input.plan.max_staleness == 0)
    return {"rollouts and trainer take turns, since no sample may be stale",
            "async.max_staleness: 1 or more, if the recipe bears it, lets both work at once"};
  return {"samples are " + grouped(*report.input.staleness_mean, 2) + " steps old on average, of " +
              std::to_string(report.input.plan.max_staleness) + " allowed (at least " +
              percent(advice.threshold) + " of it is used where the trainer waits)",
          "async.lookahead: " + std::to_string(report.input.plan.max_staleness) +
              ", and a higher async.max_concurrent_rollouts, let rollouts work further ahead"};
}

// The first kind of words for a fleet that is too small.
std::string idle_now(const SizeReport& report, const SteadyState& present) {
  const std::string predicted = percent(present.trainer_idle_fraction);
  if (!report.input.as_it_ran) return "trainer idle " + predicted + " of every cycle";
  return "trainer idle " + percent(report.input.rates.trainer_idle_fraction) + " (predicted " +
         predicted + ")";
}

std::string resize(const SizeReport& report, std::int64_t count) {
  const std::string key = "rollout.replicas: " + std::to_string(count);
  if (!report.input.live) return key;
  if (report.input.autoscaled)
    return "autoscale decides, within pools.rollout.autoscale: tandem describe jobs/" +
           job_word(report);
  return "tandem scale " + job_word(report) + " rollout=" + std::to_string(count) + " (or " + key +
         ")";
}

// The way to the fleet that matches, as far as there is room for it.
std::string grow(const SizeReport& report) {
  const auto& room = report.input.room;
  if (!room || room->rollouts >= report.matched) return resize(report, report.matched);
  // A job file may be of another machine than this one.
  if (!report.input.live)
    return resize(report, report.matched) + "; " + room->where + " has room for " +
           rollouts_word(room->rollouts) + " in all";
  const std::string most =
      "room on " + room->where + " for " + rollouts_word(room->rollouts) + " in all: ";
  if (room->rollouts <= *report.input.plan.replicas)
    return most + "add a node, or let each rollout take less (pools.rollout)";
  return most + resize(report, room->rollouts);
}

std::string raised(const scheduler::LimitRaise& raise) {
  return std::string(spelling(raise.limit)) + ": " + std::to_string(raise.raised);
}

// The key to raise, with the one that would be in its way then.
std::string raise_words(const scheduler::LimitRaise& raise, const SizeReport& report) {
  using enum scheduler::WorkLimit;
  const scheduler::WorkLimits& limits = report.input.plan.limits;
  if (raise.limit == kStaleness) return raised(raise) + ", if the recipe bears it";
  if (raise.limit == kLookahead) return raised(raise);
  std::string text = "about " + raised(raise);
  if (raise.limit == kHeld && limits.sequences_max < raise.raised)
    text += " and rollout.max_num_seqs likewise";
  if (raise.limit == kSequences && limits.held_max && *limits.held_max < raise.raised)
    text += " and async.max_concurrent_rollouts likewise";
  return text + ", then measure again";
}

AdviceWords limit_words(const Advice& advice, const SizeReport& report) {
  const std::string mend = raise_words(*advice.raise, report);
  if (advice.kind == AdviceKind::kWorkLimit && report.gap && report.gap->cause)
    return {cause_words(*report.gap).what, mend};
  return {"engines decode " + grouped(advice.seen) + " sequences at once, of " +
              std::to_string(advice.raise->now) + " that " +
              std::string(spelling(advice.raise->limit)) + " allows (full from " +
              grouped(advice.threshold) + "); more at once cost less each",
          mend};
}

// Says what a user can do where the trainer waits and more rollouts would not help.
std::string mend_of_cause(const SizeReport& report) {
  const std::string job = job_word(report);
  const auto& gap = report.gap;
  if (gap && gap->cause && gap->cause->raise) return raise_words(*gap->cause->raise, report);
  const std::string mend = gap && gap->cause ? cause_words(*gap).mend : "";
  if (!mend.empty()) return mend;
  return "before any rollout is added: " +
         (report.input.live
              ? "tandem why " + job + " names what the trainer waits for now"
              : "tandem timeline " + job + " -o trace.json shows what the trainer waited for");
}

AdviceWords uncertain_words(const SizeReport& report) {
  const SizeInput& input = report.input;
  const scheduler::FleetRates& rates = input.rates;
  const std::string match = "by these rates " + rollouts_word(report.matched) + " would match";
  const std::string again = "tandem size --from " + job_word(report);
  if (!input.unsettled.empty())
    return {
        "uncertain: " + input.unsettled + "; " + match,
        "wait until all generate (tandem describe jobs/" + job_word(report) + "), then " + again};
  const std::string seen =
      "uncertain: " + steps_word(rates.steps) + " measured" +
      (rates.since_resize ? " since the rollouts last changed in number" : "") +
      ", and a verdict takes " + std::to_string(scheduler::kStepsJudged) + "; " + match;
  const double each = rates.seconds / static_cast<double>(rates.steps);
  if (input.live)
    return {seen, "in about " +
                      grouped(std::ceil(each *
                                        static_cast<double>(scheduler::kStepsJudged - rates.steps)),
                              0) +
                      " s: " + again};
  if (input.from == RatesFrom::kMeasured)
    return {seen,
            "measure for longer: --measure-seconds " +
                std::to_string(std::min<std::int64_t>(
                    kMeasureSecondsMax,
                    std::llround(std::ceil(
                        input.measure_seconds +
                        each * static_cast<double>(2 * scheduler::kStepsJudged - rates.steps)))))};
  return {seen, "a run of more steps, or a measurement: tandem size JOB.yaml --measure"};
}

// More rollouts end the part of the idle time that their rates explain, not the rest.
std::string rest_of_gap(const SizeReport& report) {
  if (!report.gap || !report.gap->cause) return "";
  return "; beside that, " + cause_words(*report.gap).what;
}

}  // namespace

AdviceWords words_of(const Advice& advice, const SizeReport& report) {
  const std::string job = job_word(report);
  switch (advice.kind) {
    case AdviceKind::kDeaths:
      return {
          grouped(advice.seen) + " deaths of rollouts in " +
              grouped(static_cast<double>(report.input.rates.steps)) + " steps (at most 0)",
          "tandem events -j " + job + " says why; tandem logs " + job + "/rollout/N --previous"};
    case AdviceKind::kSpread:
      return spread_words(advice, report);
    case AdviceKind::kWorkLimit:
    case AdviceKind::kFullBatch:
      return limit_words(advice, report);
    case AdviceKind::kPrefixHits:
      return {percent(advice.seen) + " of the prompt tokens need no computation (at least " +
                  percent(advice.threshold) + ", where " +
                  std::to_string(report.input.plan.completions_per_prompt) +
                  " completions share a prompt)",
              "rollout.enable_prefix_caching: true, and room for prompts by "
              "rollout.gpu_memory_utilization"};
    case AdviceKind::kInstallPause:
      return {"installs of weights take " + percent(advice.seen) +
                  " of the rollouts' time (at most " + percent(advice.threshold) + "), " +
                  short_seconds(report.input.rates.install_seconds) + " s each",
              "another weight_broadcast.type, or a higher "
              "async.trigger_parameter_sync_step"};
    case AdviceKind::kStalenessSlack:
      return slack_words(advice, report);
    case AdviceKind::kWaste:
      return {grouped(advice.seen, 2) + " tokens are generated per token trained (at most " +
                  grouped(advice.threshold, 2) + ")",
              "tandem describe run/" + job +
                  " counts the discarded groups by reason; algorithm.filter_groups, "
                  "reward.on_failure"};
  }
  CHECK(false);
}

AdviceWords words_of_verdict(const SizeReport& report) {
  const std::int64_t present = *report.input.plan.replicas;
  const auto at = std::ranges::find(report.fleets, present, &SteadyState::rollouts);
  CHECK(at != report.fleets.end());
  const std::string begin = std::string(spelling(*report.verdict)) + ": " + rollouts_word(present);
  const std::string match = std::to_string(report.matched) + " would match";
  switch (*report.verdict) {
    case FleetVerdict::kUndersized: {
      const bool first = report.gap && report.gap->cause && report.gap->cause->raise;
      return {begin + ", " + match + ": " + idle_now(report, *at) + rest_of_gap(report),
              (first ? "first " + raise_words(*report.gap->cause->raise, report) + "; else " : "") +
                  grow(report)};
    }
    case FleetVerdict::kMatched:
      return {begin + ": " + idle_now(report, *at) +
                  (report.input.plan.overlaps()
                       ? "; the target is " + percent(report.input.trainer_idle_target)
                       : ", and one more would shorten a cycle by less than 5.0%") +
                  rest_of_gap(report),
              ""};
    case FleetVerdict::kOversized:
      if (!report.input.plan.overlaps())
        return {begin + ", " + match + ": one more hardly shortens a cycle",
                resize(report, report.matched)};
      return {begin + ", " + match + ": a queue without a bound would grow by " +
                  grouped(at->backlog_per_s, 1) + " tok/s, " +
                  cli::short_count(at->backlog_per_s * kBacklogSeconds) +
                  " tokens after 10 min; within async.max_staleness they are idle " +
                  percent(at->rollout_idle_fraction) + " instead",
              resize(report, report.matched) + ", or a larger data.train_batch_size"};
    case FleetVerdict::kUnexplained:
      return {"unexplained: " + idle_now(report, *at) + ", and not for want of rollouts (" +
                  rollouts_word(present) + ")" +
                  (report.gap && report.gap->cause ? ": " + cause_words(*report.gap).what : ""),
              mend_of_cause(report)};
    case FleetVerdict::kUncertain:
      return uncertain_words(report);
  }
  CHECK(false);
}

}  // namespace tandem::app
