#include "actors/main/pool_plan.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "scheduler/fleet/device_split.h"
#include "scheduler/fleet/staleness.h"

namespace tandem::app {
namespace {

// The number that is the whole text; nullopt for anything else.
std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<PoolPlan> plan_of(const runs::JobKeys& keys, const std::string& where) {
  const std::map<std::string, std::string, std::less<>> values(keys.begin(), keys.end());
  // Values are as print_value() writes them: a text may be quoted.
  const auto text = [&values](std::string_view key) -> std::string {
    const auto it = values.find(key);
    if (it == values.end()) return "";
    const std::string& value = it->second;
    return value.size() > 1 && value.front() == '"' ? value.substr(1, value.size() - 2) : value;
  };
  const auto number = [&text](std::string_view key) { return number_in(text(key)); };
  const auto whole = [&number](std::string_view key) -> std::optional<std::int64_t> {
    const auto value = number(key);
    return value ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
  };
  if (!whole("learner.ranks"))
    return Error{ErrorCode::kInvalid, "a job of actors alone has no trainer to match", where,
                 "`tandem scale` changes how many actors its roles have"};
  PoolPlan plan{
      .replicas = whole("rollout.replicas"),
      .ranks = whole("learner.ranks").value_or(1),
      .completions_per_prompt = whole("rollout.n").value_or(1),
      .prompts_per_step = whole("data.train_batch_size").value_or(0),
      .max_staleness = whole("async.max_staleness").value_or(1),
      .group_prompt_shared = text("rollout.name").empty() || text("rollout.name") == "native",
      .devices_per_rollout =
          scheduler::devices_of(number("pools.rollout.gpus_per_actor").value_or(0)),
      .devices_per_rank = scheduler::devices_of(number("pools.learner.gpus_per_actor").value_or(0)),
      .threads_per_rollout = number("pools.rollout.threads_per_actor").value_or(1),
      .threads_per_rank = number("pools.learner.threads_per_actor").value_or(1),
      .prices = {},
      .limits = {}};
  plan.limits = {
      .sequences_max = whole("rollout.max_num_seqs").value_or(0),
      .held_max = whole("async.max_concurrent_rollouts"),
      .completions_per_prompt = std::max<std::int64_t>(1, plan.completions_per_prompt),
      .prompts_per_step = plan.prompts_per_step,
      .lookahead =
          whole("async.lookahead").value_or(scheduler::default_lookahead(plan.max_staleness)),
      .max_staleness = plan.max_staleness};
  if (const auto rollout = number("pricing.rollout"), learner = number("pricing.learner");
      rollout && learner)
    plan.prices = {.rollout = *rollout, .learner = *learner, .currency = text("pricing.currency")};
  return plan;
}

Result<scheduler::Pricing> prices_of_file(std::string_view text, const std::string& where) {
  std::string pairs;
  bool comment = false;
  for (const char c : text) {
    if (c == '\n') {
      comment = false;
      if (!pairs.empty() && pairs.back() != ',') pairs += ',';
    } else if (c == '#') {
      comment = true;
    } else if (!comment && c != ' ' && c != '\t' && c != '\r') {
      pairs += c == ':' ? '=' : c;
    }
  }
  if (pairs.ends_with(',')) pairs.pop_back();
  auto prices = scheduler::parse_pricing(pairs);
  if (prices) return prices;
  Error error = prices.error();
  error.where = where;
  return error;
}

scheduler::FleetRates replanned(const scheduler::FleetRates& rates, const PoolPlan& measured,
                                const PoolPlan& planned) {
  scheduler::FleetRates now = rates;
  const auto before = static_cast<double>(measured.completions_per_step());
  const auto after = static_cast<double>(planned.completions_per_step());
  const double ratio = before > 0 && after > 0 ? after / before : 1;
  now.step_tokens *= ratio;
  now.completions_per_step *= ratio;
  now.step_seconds = scheduler::scaled_step_seconds({.seconds = rates.step_seconds * ratio,
                                                     .measured_ranks = measured.ranks,
                                                     .ranks = planned.ranks,
                                                     .efficiency = 1});
  return now;
}

}  // namespace tandem::app
