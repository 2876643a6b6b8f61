// The answer of `tandem size`: the arithmetic of scheduler/fleet over one fleet, as values, as a
// text for people and as JSON. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/main/pool_plan.h"
#include "actors/main/rollout_room.h"
#include "runtime/base/enum_names.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "scheduler/fleet/device_split.h"
#include "scheduler/fleet/fleet_advice.h"
#include "scheduler/fleet/fleet_cost.h"
#include "scheduler/fleet/fleet_gap.h"
#include "scheduler/fleet/fleet_rates.h"
#include "scheduler/fleet/fleet_sizes.h"

namespace tandem::app {

enum class RatesFrom { kFlags, kRun, kMeasured };
constexpr auto enum_names(RatesFrom) {
  using enum RatesFrom;
  return enum_name_rows<RatesFrom>({{kFlags, "flags"}, {kRun, "run"}, {kMeasured, "measured"}});
}

struct SizeInput {
  RatesFrom from = RatesFrom::kFlags;
  std::string of;            // where a run's rates were: "rates" or "metrics.jsonl"
  std::string job;           // the job or run, for commands; empty: none
  bool live = false;         // `tandem scale` changes that job
  bool as_it_ran = false;    // the plan is that of the run, so that its idle shares are the fleet's
  bool autoscaled = false;   // that job decides by itself how many rollouts it has
  std::size_t troubles = 0;  // that the run tells of itself
  std::string unsettled;     // as RunRates'
  double measure_seconds = 0;  // that a run made for this might take
  std::optional<RolloutRoom> room;
  std::vector<std::string> notes;  // assumptions, a sentence each
  scheduler::FleetRates rates;
  PoolPlan plan;  // the fleet that is sized; `replicas` is the present one
  std::optional<double> staleness_mean;
  double headroom = scheduler::kSizingHeadroom;
  double trainer_idle_target = scheduler::kTrainerIdleTarget;
  std::optional<std::int64_t> devices;
  double learner_efficiency = 1;
  bool efficiency_given = false;
  std::optional<scheduler::Pricing> prices;
};

struct SizeReport {
  SizeInput input;
  scheduler::FleetModel model;
  scheduler::Rates mean;  // of the model
  std::int64_t matched = 0;
  std::optional<scheduler::FleetVerdict> verdict;  // nullopt: the present fleet is not known
  std::optional<scheduler::FleetGap> gap;          // of the present fleet, as it ran
  std::vector<scheduler::SteadyState> fleets;
  std::optional<scheduler::Splits> splits;
  std::vector<scheduler::Advice> advice;
};

// kInvalid where the rates or shares are no such numbers (scheduler::check_model()).
Result<SizeReport> size_report(SizeInput input);

std::string size_text(const SizeReport& report, int width);
nlohmann::json size_json(const SizeReport& report);

// A piece of advice in words: what was seen and its threshold, and what mends it, which is a
// command or keys of the job.
struct AdviceWords {
  std::string seen, mend;
};
AdviceWords words_of(const scheduler::Advice& advice, const SizeReport& report);
// The verdict in a sentence that begins with its name, and the command or key that follows from it;
// `mend` is empty for a matched fleet. The verdict is known.
AdviceWords words_of_verdict(const SizeReport& report);

}  // namespace tandem::app
