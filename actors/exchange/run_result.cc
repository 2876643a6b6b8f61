// Totals are of the whole run, its earlier incarnations included; counts of groups are the
// ledger's.
#include "actors/exchange/run_result.h"

#include <algorithm>

#include "actors/exchange/checkpoints.h"
#include "actors/exchange/cost_json.h"
#include "actors/exchange/evaluation_json.h"
#include "actors/exchange/fleet_json.h"
#include "actors/exchange/run_cost.h"
#include "actors/exchange/work_totals.h"
#include "runtime/base/check.h"
#include "runtime/base/json.h"

namespace tandem::exchange {

namespace {

const char* name(messages::JobOutcome outcome) {
  switch (outcome) {
    case messages::JobOutcome::kSucceeded:
      return "Succeeded";
    case messages::JobOutcome::kFailed:
      return "Failed";
    case messages::JobOutcome::kCancelled:
      return "Cancelled";
  }
  return "";
}

nlohmann::json result_of_evaluations(const RunStatistics& statistics) {
  nlohmann::json result{{"counts", nlohmann::json::object()},
                        {"figures", nlohmann::json::object()},
                        {"failed", statistics.evaluations_failed}};
  for (const char* kind : {"before", "after_warm_start", "final"}) {
    result[kind] = nlohmann::json();
    const auto it = statistics.evaluations.find(kind);
    if (it == statistics.evaluations.end()) continue;
    const messages::RewardFigures& all = it->second.all;
    if (all.mean) result[kind] = *all.mean;
    result["counts"][kind] = {{"scored", all.scored}, {"failed", all.failed}};
    result["figures"][kind] = figures_json(it->second);
  }
  result["records"] = nlohmann::json::array();
  for (const EvaluationRecord& record : statistics.evaluation_records) {
    nlohmann::json shown = figures_json(record.figures);
    shown["kind"] = name(record.kind);
    shown["version"] = record.version.value;
    result["records"].push_back(std::move(shown));
  }
  if (!statistics.evaluation_failure.empty()) result["failure"] = statistics.evaluation_failure;
  return result;
}

nlohmann::json best_of(const RunView& view) {
  const auto best = best_saved(view);
  if (!best) return {};
  return {{"step", best->version.value},
          {"key", view.config.best.key},
          {"value", best->value},
          {"path", "checkpoints/step-" + std::to_string(best->version.value)}};
}

}  // namespace

scheduler::Reason reason_of(messages::JobOutcome outcome, const std::string& cause) {
  switch (outcome) {
    case messages::JobOutcome::kSucceeded:
      return scheduler::Completed{};
    case messages::JobOutcome::kFailed:
      return scheduler::JobFailed{cause};
    case messages::JobOutcome::kCancelled:
      return scheduler::CancelledByUser{cause};
  }
  CHECK(false);
}

std::string result_json(const RunView& view, messages::JobOutcome outcome,
                        const std::string& cause) {
  const scheduler::Reason reason = reason_of(outcome, cause);
  const auto counters = view.facts.flow.ledger.counters();
  nlohmann::json discarded = nlohmann::json::object();
  for (std::size_t i = 0; i < scheduler::kDiscardReasons; ++i)
    if (counters.discarded[i] > 0)
      discarded[scheduler::name(static_cast<scheduler::DiscardReason>(i))] = counters.discarded[i];
  nlohmann::json evaluation;
  if (!view.config.validation.empty()) evaluation = result_of_evaluations(view.seen.statistics);
  const TrainedTotals& trained = view.seen.statistics.trained;
  const WorkTotals total = work_of(view);
  const double published = static_cast<double>(std::max<std::uint64_t>(total.publish_count, 1));
  nlohmann::json result{
      {"state", name(outcome)},
      {"reason", scheduler::reason_name(reason)},
      {"message", scheduler::message(reason, view.now)},
      {"steps", view.facts.flow.ledger.next_commit().value},
      {"policy_version", view.facts.flow.ledger.next_commit().value},
      {"reward_mean", view.seen.statistics.batch.rewards.mean},
      {"eval", evaluation},
      {"staleness",
       {{"bound", view.config.budget.max_staleness},
        {"max", trained.staleness.max()},
        {"mean", trained.staleness.mean()}}},
      {"ledger",
       {{"issued", counters.issued},
        {"trained", counters.trained},
        {"discarded", discarded},
        {"live", counters.live},
        {"retrained", counters.retrained}}},
      {"tokens", {{"generated", total.tokens_generated}, {"trained", trained.tokens}}},
      {"logprob_diff",
       {{"max_at_staleness_0", trained.logprob_diff_max_at_staleness_0},
        {"tokens_at_staleness_0", trained.tokens_at_staleness_0}}},
      {"weight_publish",
       {{"count", total.publish_count},
        {"bytes_mean", static_cast<double>(total.publish_bytes) / published},
        {"seconds_p50", view.seen.statistics.publish_seconds_p50()}}},
      {"trainer_idle_fraction", trainer_idle_fraction(view)},
      {"rollout_idle_fraction", rollout_idle_fraction(view)},
      {"cost", cost_json(cost_of(view))},
      {"wall_seconds", total.wall_seconds},
      {"steps_skipped", trained.steps_skipped},
      {"steps_without_gradient", trained.steps_without_gradient},
      {"rewards_failed", trained.rewards_failed},
      {"best_checkpoint", best_of(view)},
      {"weights_sha256", view.seen.statistics.weights_sha256}};
  if (view.config.filter_groups.enable)
    result["groups_kept_by_filter"] = view.seen.statistics.groups_kept;
  result["warnings"] = view.seen.statistics.warnings.first;
  if (const auto left_out = view.seen.statistics.warnings.left_out; left_out > 0)
    result["warnings_left_out"] = left_out;
  result["lineages"] = nlohmann::json::array();
  for (const StepId step : view.seen.statistics.lineages) result["lineages"].push_back(step.value);
  if (const auto& bytes = view.seen.statistics.recorded_bytes) result["recorded_bytes"] = *bytes;
  if (const auto rates = view.seen.fleet.rates()) result["rates"] = rates_json(*rates);
  return dump_json(result, 2);
}

}  // namespace tandem::exchange
