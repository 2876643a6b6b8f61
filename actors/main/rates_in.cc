#include "actors/main/rates_in.h"

#include <string>
#include <utility>

namespace tandem::app {
namespace {

using nlohmann::json;

template <class Number>
void read(const json& object, const char* name, Number& number) {
  if (const auto it = object.find(name); it != object.end() && it->is_number())
    number = it->template get<Number>();
}

}  // namespace

std::optional<scheduler::FleetRates> rates_in(const json& value) {
  if (!value.is_object()) return std::nullopt;
  scheduler::FleetRates rates{.rollouts = {}, .prefix_hit_ratio = {}};
  read(value, "steps", rates.steps);
  read(value, "seconds", rates.seconds);
  read(value, "step_seconds", rates.step_seconds);
  read(value, "step_tokens", rates.step_tokens);
  read(value, "completions_per_step", rates.completions_per_step);
  read(value, "generated_per_trained", rates.generated_per_trained);
  read(value, "install_seconds", rates.install_seconds);
  read(value, "install_bytes", rates.install_bytes);
  read(value, "fetch_seconds", rates.fetch_seconds);
  read(value, "score_seconds", rates.score_seconds);
  read(value, "turnaround_seconds", rates.turnaround_seconds);
  read(value, "trainer_idle_fraction", rates.trainer_idle_fraction);
  read(value, "rollout_idle_fraction", rates.rollout_idle_fraction);
  read(value, "rollout_deaths", rates.rollout_deaths);
  read(value, "rollout_returns", rates.rollout_returns);
  if (const auto it = value.find("engine"); it != value.end() && it->is_object()) {
    read(*it, "step_s", rates.engine.step_s);
    read(*it, "sequence_s", rates.engine.sequence_s);
    read(*it, "prompt_token_s", rates.engine.prompt_token_s);
  }
  if (const auto it = value.find("prefix_hit_ratio"); it != value.end() && it->is_number())
    rates.prefix_hit_ratio = it->get<double>();
  if (const auto it = value.find("waits"); it != value.end() && it->is_object())
    for (const auto& [name, seconds] : it->items())
      if (const auto wait = spelt<scheduler::TrainerWait>(name); wait && seconds.is_number())
        rates.waits[static_cast<std::size_t>(*wait)] = seconds.get<double>();
  if (const auto it = value.find("since_resize"); it != value.end() && it->is_boolean())
    rates.since_resize = it->get<bool>();
  const json rollouts = value.value("rollouts", json::array());
  if (!rollouts.is_array()) return std::nullopt;
  for (const json& one : rollouts) {
    if (!one.is_object()) return std::nullopt;
    scheduler::RolloutRate rollout;
    if (const auto it = one.find("actor"); it != one.end() && it->is_string())
      rollout.actor = it->get<std::string>();
    read(one, "tokens_per_s", rollout.tokens_per_s);
    read(one, "busy_fraction", rollout.busy_fraction);
    read(one, "install_fraction", rollout.install_fraction);
    read(one, "sequences", rollout.sequences);
    rates.rollouts.push_back(std::move(rollout));
  }
  if (rates.steps <= 0 || rates.rollouts.empty()) return std::nullopt;
  return rates;
}

}  // namespace tandem::app
