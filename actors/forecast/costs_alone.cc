#include "actors/forecast/costs_alone.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tandem::forecast {
namespace {

// The mean of min(1, cores / (threads + each · N)), where N of `count` rollouts are at work, each
// for the share `busy` of the time.
double mean_rate(double cores, double threads, double each, std::size_t count, double busy) {
  double mean = 0;
  const auto all = static_cast<double>(count);
  for (std::size_t i = 0; i <= count; ++i) {
    const auto working = static_cast<double>(i);
    double likely = 0;
    if (busy <= 0 || busy >= 1)
      likely = working == (busy <= 0 ? 0 : all) ? 1 : 0;
    else
      likely = std::exp(std::lgamma(all + 1) - std::lgamma(working + 1) -
                        std::lgamma(all - working + 1) + working * std::log(busy) +
                        (all - working) * std::log1p(-busy));
    mean += likely * std::min(1.0, cores / (threads + each * working));
  }
  return mean;
}

}  // namespace

scheduler::FleetRates rates_alone(scheduler::FleetRates rates, const SharedHost& host) {
  if (host.cores <= 0 || rates.rollouts.empty()) return rates;
  const std::size_t count = rates.rollouts.size();
  double busy = 0;
  for (const scheduler::RolloutRate& rollout : rates.rollouts)
    busy += rollout.busy_fraction + rollout.install_fraction;
  busy = std::clamp(busy / static_cast<double>(count), 0.0, 1.0);
  double training = std::clamp(1 - rates.trainer_idle_fraction, 0.0, 1.0);
  double beside = busy;  // the share of the learner's time for which a rollout is at work
  if (!host.overlaps) {
    busy = training < 1 ? std::min(1.0, busy / (1 - training)) : 0;
    training = beside = 0;
  }
  const double learner =
      mean_rate(host.cores, host.learner_threads, host.rollout_threads, count, beside);
  const auto rollout_beside = [&](double others) {
    return mean_rate(host.cores, others + host.rollout_threads, host.rollout_threads, count - 1,
                     busy);
  };
  const double rollout =
      training * rollout_beside(host.learner_threads) + (1 - training) * rollout_beside(0);
  rates.step_seconds *= learner;
  rates.install_seconds *= rollout;
  rates.engine.step_s *= rollout;
  rates.engine.sequence_s *= rollout;
  rates.engine.prompt_token_s *= rollout;
  for (scheduler::RolloutRate& of : rates.rollouts) of.tokens_per_s /= rollout;
  return rates;
}

}  // namespace tandem::forecast
