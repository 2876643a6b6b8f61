#include "actors/exchange/cost_json.h"

#include <nlohmann/json.hpp>

namespace tandem::exchange {

nlohmann::json cost_json(const messages::CostStatus& cost) {
  nlohmann::json shown{
      {"goodput_tokens_per_device_second", cost.goodput},
      {"device_seconds",
       {{"rollout", cost.rollout_device_seconds}, {"learner", cost.learner_device_seconds}}}};
  if (cost.per_step) shown["per_step"] = *cost.per_step;
  if (cost.total) shown["total"] = *cost.total;
  if (!cost.currency.empty()) shown["currency"] = cost.currency;
  return shown;
}

}  // namespace tandem::exchange
