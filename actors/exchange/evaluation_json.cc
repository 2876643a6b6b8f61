// Figures are written under a prefix, so that one function serves objects and metrics keys. A
// figure that does not exist has no key, except `mean`, which is null in objects.
#include "actors/exchange/evaluation_json.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "runtime/base/json.h"

namespace tandem::actors {
namespace {

using nlohmann::json;

constexpr std::string_view kPass = "pass@";

// Each figure that there is, by its name behind `prefix`.
void add_figures(json& object, const std::string& prefix, const RewardFigures& figures) {
  if (figures.mean) object[prefix + "mean"] = *figures.mean;
  if (figures.greedy) object[prefix + "greedy"] = *figures.greedy;
  for (const PassAt& pass : figures.pass)
    object[prefix + std::string(kPass) + std::to_string(pass.k)] = pass.value;
  object[prefix + "scored"] = figures.scored;
  object[prefix + "failed"] = figures.failed;
}

json reward_json(const RewardFigures& figures) {
  json object{{"mean", json()}};
  add_figures(object, "", figures);
  return object;
}

RewardFigures reward_from(const json& object) {
  RewardFigures figures;
  if (!object.is_object()) return figures;
  for (const auto& [key, value] : object.items()) {
    if (!value.is_number()) continue;
    if (key == "mean") figures.mean = value.get<double>();
    if (key == "greedy") figures.greedy = value.get<double>();
    if (key == "scored") figures.scored = value.get<std::int64_t>();
    if (key == "failed") figures.failed = value.get<std::int64_t>();
    // "pass@8" has its k in the key.
    PassAt pass{.value = value.get<double>()};
    if (!key.starts_with(kPass)) continue;
    const char* const digits = key.data() + kPass.size();
    if (std::from_chars(digits, key.data() + key.size(), pass.k).ptr != digits)
      figures.pass.push_back(pass);
  }
  std::ranges::sort(figures.pass, {}, &PassAt::k);
  return figures;
}

}  // namespace

json figures_json(const EvaluationFigures& figures) {
  json object = reward_json(figures.all);
  for (const auto& [name, source] : figures.sources) object["sources"][name] = reward_json(source);
  return object;
}

EvaluationFigures figures_from(const json& object) {
  EvaluationFigures figures{.all = reward_from(object), .sources = {}};
  const auto sources = object.is_object() ? object.value("sources", json()) : json();
  if (!sources.is_object()) return figures;
  for (const auto& [name, source] : sources.items())
    figures.sources.emplace_back(name, reward_from(source));
  return figures;
}

bool has_more_than_mean(const EvaluationFigures& figures) {
  return figures.all.greedy || !figures.all.pass.empty() || !figures.sources.empty();
}

void add_metrics(json& line, const EvaluationFigures& figures) {
  add_figures(line, "val/reward/", figures.all);
  for (const auto& [name, source] : figures.sources)
    add_figures(line, "val/" + name + "/reward/", source);
}

}  // namespace tandem::actors
