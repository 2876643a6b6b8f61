#include "actors/exchange/fleet_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tandem::exchange {

using nlohmann::json;

namespace {

struct RateSpread {
  double mean = 0, min = 0, max = 0;  // tokens/s of a rollout
};

RateSpread spread_of(const std::vector<scheduler::RolloutRate>& rollouts) {
  double sum = 0;
  for (const scheduler::RolloutRate& rollout : rollouts) sum += rollout.tokens_per_s;
  const auto [least, most] =
      std::ranges::minmax(rollouts, {}, &scheduler::RolloutRate::tokens_per_s);
  return {sum / static_cast<double>(rollouts.size()), least.tokens_per_s, most.tokens_per_s};
}

json spread_json(const std::vector<scheduler::RolloutRate>& rollouts) {
  if (rollouts.empty()) return {};
  const RateSpread spread = spread_of(rollouts);
  return {{"rollouts", rollouts.size()},
          {"mean", spread.mean},
          {"min", spread.min},
          {"max", spread.max}};
}

// By the wait's name; without those that there were none of.
json waits_json(const scheduler::WaitSeconds& waits) {
  json object = json::object();
  for (std::size_t i = 0; i < waits.size(); ++i)
    if (const auto wait = static_cast<scheduler::TrainerWait>(i);
        wait != scheduler::TrainerWait::kNone && waits[i] > 0)
      object[spelling(wait)] = waits[i];
  return object;
}

}  // namespace

json rates_json(const scheduler::FleetRates& rates) {
  json rollouts = json::array();
  for (const scheduler::RolloutRate& rollout : rates.rollouts)
    rollouts.push_back({{"actor", rollout.actor},
                        {"tokens_per_s", rollout.tokens_per_s},
                        {"busy_fraction", rollout.busy_fraction},
                        {"install_fraction", rollout.install_fraction},
                        {"sequences", rollout.sequences}});
  return {{"steps", rates.steps},
          {"seconds", rates.seconds},
          {"rollouts", std::move(rollouts)},
          {"rollout_tokens_per_s", spread_json(rates.rollouts)},
          {"step_seconds", rates.step_seconds},
          {"step_tokens", rates.step_tokens},
          {"completions_per_step", rates.completions_per_step},
          {"generated_per_trained", rates.generated_per_trained},
          {"engine",
           {{"step_s", rates.engine.step_s},
            {"sequence_s", rates.engine.sequence_s},
            {"prompt_token_s", rates.engine.prompt_token_s}}},
          {"install_seconds", rates.install_seconds},
          {"install_bytes", rates.install_bytes},
          {"fetch_seconds", rates.fetch_seconds},
          {"score_seconds", rates.score_seconds},
          {"turnaround_seconds", rates.turnaround_seconds},
          {"prefix_hit_ratio", rates.prefix_hit_ratio ? json(*rates.prefix_hit_ratio) : json()},
          {"trainer_idle_fraction", rates.trainer_idle_fraction},
          {"rollout_idle_fraction", rates.rollout_idle_fraction},
          {"rollout_deaths", rates.rollout_deaths},
          {"rollout_returns", rates.rollout_returns},
          {"waits", waits_json(rates.waits)},
          {"since_resize", rates.since_resize}};
}

json predicted_json(const scheduler::FleetGap& gap) {
  return {{"trainer_idle_fraction", gap.trainer_idle_fraction},
          {"rollout_idle_fraction", gap.rollout_idle_fraction},
          {"rollouts_matched", gap.rollouts_matched},
          {"rollouts", gap.rollouts}};
}

double install_fraction(const scheduler::FleetRates& rates) {
  double sum = 0;
  for (const scheduler::RolloutRate& rollout : rates.rollouts) sum += rollout.install_fraction;
  return rates.rollouts.empty() ? 0 : sum / static_cast<double>(rates.rollouts.size());
}

void add_metrics(json& line, const scheduler::FleetRates& rates) {
  line["tandem/recent/trainer_idle_fraction"] = rates.trainer_idle_fraction;
  line["tandem/recent/tokens_generated_per_trained"] = rates.generated_per_trained;
  line["tandem/install_pause_s"] = rates.install_seconds;
  line["tandem/install_bytes"] = rates.install_bytes;
  if (rates.prefix_hit_ratio) line["tandem/prefix_hit_ratio"] = *rates.prefix_hit_ratio;
  const json waits = waits_json(rates.waits);
  for (const auto& [wait, seconds] : waits.items()) line["tandem/recent/wait_s/" + wait] = seconds;
  if (rates.rollouts.empty()) return;
  line["tandem/install_pause_fraction"] = install_fraction(rates);
  const RateSpread spread = spread_of(rates.rollouts);
  line["tandem/rollout_tokens_per_s/mean"] = spread.mean;
  line["tandem/rollout_tokens_per_s/min"] = spread.min;
  line["tandem/rollout_tokens_per_s/max"] = spread.max;
  double sequences = 0;
  for (const scheduler::RolloutRate& rollout : rates.rollouts) sequences += rollout.sequences;
  line["tandem/recent/sequences"] = sequences / static_cast<double>(rates.rollouts.size());
}

}  // namespace tandem::exchange
