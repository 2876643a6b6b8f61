// Figures are written under a prefix, so that one function serves objects and metrics keys. A
// figure that does not exist has no key, except `mean`, which is null in objects.
#include "actors/exchange/evaluation_json.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace tandem::exchange {
namespace {

using nlohmann::json;

constexpr std::string_view kPass = "pass@", kMajority = "maj@";

// Each figure that there is, by its name behind `prefix`.
void add_figures(json& object, const std::string& prefix, const messages::RewardFigures& figures) {
  if (figures.mean) object[prefix + "mean"] = *figures.mean;
  if (figures.standard_error) object[prefix + "stderr"] = *figures.standard_error;
  if (figures.mean_with_failures)
    object[prefix + "mean_with_failures"] = *figures.mean_with_failures;
  if (figures.greedy) object[prefix + "greedy"] = *figures.greedy;
  for (const messages::FigureAt& pass : figures.pass)
    object[prefix + std::string(kPass) + std::to_string(pass.k)] = pass.value;
  for (const messages::FigureAt& majority : figures.majority)
    object[prefix + std::string(kMajority) + std::to_string(majority.k)] = majority.value;
  object[prefix + "scored"] = figures.scored;
  object[prefix + "failed"] = figures.failed;
}

json reward_json(const messages::RewardFigures& figures) {
  json object{{"mean", json()}};
  add_figures(object, "", figures);
  if (!figures.extra.empty()) object["extra"] = figures.extra;
  return object;
}

void add_reward_metrics(json& line, const std::string& prefix,
                        const messages::RewardFigures& figures) {
  add_figures(line, prefix, figures);
  for (const auto& [name, mean] : figures.extra) line[prefix + "extra/" + name + "/mean"] = mean;
}

}  // namespace

json figures_json(const messages::EvaluationFigures& figures) {
  json object = reward_json(figures.all);
  for (const auto& [name, source] : figures.sources) object["sources"][name] = reward_json(source);
  return object;
}

bool has_more_than_mean(const messages::EvaluationFigures& figures) {
  return figures.all.greedy || !figures.all.pass.empty() || !figures.sources.empty();
}

void add_metrics(json& line, const messages::EvaluationFigures& figures) {
  add_reward_metrics(line, "val/reward/", figures.all);
  for (const auto& [name, source] : figures.sources)
    add_reward_metrics(line, "val/" + name + "/reward/", source);
}

std::optional<double> figure_of(const messages::EvaluationFigures& figures,
                                const std::string& key) {
  json line;
  add_metrics(line, figures);
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

}  // namespace tandem::exchange
