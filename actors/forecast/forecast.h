// What a fleet would do: the production exchange (actors/exchange, with its ledger, leases and
// staleness budget) runs a job in virtual time, on the simulated executor, against rollouts, a
// learner and a reward actor that take as long as their costs say (rollout_model.h,
// learner_model.h). The same inputs give the same forecast.
//
// Not modelled: evaluations, the warm start, deaths of the learner, the network, and what else
// rollout_model.h names.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/exchange/exchange_config.h"
#include "actors/forecast/costs.h"
#include "actors/forecast/forecast_steps.h"
#include "actors/forecast/lengths.h"
#include "actors/forecast/rollout_model.h"

namespace tandem::forecast {

struct ForecastConfig {
  // The job's. Its prompts and validation are replaced; evaluations are left out.
  exchange::ExchangeConfig exchange;
  std::vector<EngineCosts> rollouts;  // each rollout's; at least one
  RolloutModelConfig rollout;         // `self` and `costs` are filled in for each
  LearnerCosts learner;
  double learner_threads = 1;
  RewardCosts reward;
  FailureCosts failures;
  double host_cores = 0;  // as HostLoad's
  Lengths lengths;
  std::uint64_t seed = 0;
  Duration still_most = std::chrono::hours(24 * 7);  // virtual time without a committed step
};

struct Forecast {
  std::vector<ForecastStep> steps;
  std::optional<SteadyPart> steady;
  double seconds = 0;  // until the last step was committed
  double trainer_idle_fraction = 0, rollout_idle_fraction = 0, install_fraction = 0;
  double step_seconds = 0;  // the learner's, without waits
  std::int64_t tokens_generated = 0, tokens_trained = 0;
  // Trained completions by staleness in steps.
  std::vector<std::pair<std::int64_t, std::int64_t>> staleness;
  double staleness_mean = 0;
  std::int64_t groups_trained = 0, rollout_deaths = 0;
  // Groups by the ledger's reason, without those that the job's end left over; no zeros.
  std::vector<std::pair<std::string, std::int64_t>> groups_discarded;
  nlohmann::json result;  // as result.json of a run
};

// Errors: kFailed where the job did not end well: the exchange's reason, or what it refused, which
// is a fault of this program; kTimedOut after still_most. `progress` is called after each committed
// step, and several times a second between two, and may end the forecast by returning false
// (kFailed).
Result<Forecast> forecast(const ForecastConfig& config,
                          const std::function<bool(std::int64_t step)>& progress = {});

}  // namespace tandem::forecast
