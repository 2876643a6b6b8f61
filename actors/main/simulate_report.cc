#include "actors/main/simulate_report.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "actors/cli/table.h"
#include "actors/forecast/plot_svg.h"
#include "actors/main/size_numbers.h"

namespace tandem::app {
namespace {

using nlohmann::json;

constexpr std::size_t kSeriesPoints = 500;
constexpr std::int64_t kStalenessLast = 9;  // steps: the last column of the table

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : value < 1000 ? "%.1f" : "%.0f", value);
  return text;
}

double ratio(double of, double to) { return to > 0 ? of / to : 0; }

double steps_per_hour(const forecast::Forecast& of) {
  return 3600 * ratio(static_cast<double>(of.steps.size()), of.seconds);
}

double steps_per_hour(const forecast::SteadyPart& of) {
  return 3600 * ratio(static_cast<double>(of.steps()), of.seconds);
}

double tokens_per_s(const forecast::Forecast& of) {
  return ratio(static_cast<double>(of.tokens_trained), of.seconds);
}

std::int64_t groups_discarded(const forecast::Forecast& of) {
  std::int64_t sum = 0;
  for (const auto& [reason, count] : of.groups_discarded) sum += count;
  return sum;
}

double queue_mean(const forecast::Forecast& of) {
  double sum = 0;
  for (const forecast::ForecastStep& step : of.steps) sum += static_cast<double>(step.queue_depth);
  return of.steps.empty() ? 0 : sum / static_cast<double>(of.steps.size());
}

std::int64_t oldest_most(const forecast::Forecast& of) {
  std::int64_t most = 0;
  for (const forecast::ForecastStep& step : of.steps) most = std::max(most, step.oldest_age_steps);
  return most;
}

json steady_json(const forecast::Forecast& of) {
  if (!of.steady) return {};
  return {{"first_step", of.steady->first},
          {"last_step", of.steady->last},
          {"seconds", of.steady->seconds},
          {"seconds_per_step", of.steady->seconds / static_cast<double>(of.steady->steps())},
          {"steps_per_hour", steps_per_hour(*of.steady)},
          {"tokens_trained_per_s", of.steady->tokens_trained_per_s},
          {"trainer_idle_fraction", of.steady->trainer_idle_fraction},
          {"rollout_idle_fraction", of.steady->rollout_idle_fraction}};
}

// "0", "12 zero_variance", "3 prompt_too_long, 12 zero_variance".
std::string discarded_text(const forecast::Forecast& of) {
  std::string text;
  for (const auto& [reason, count] : of.groups_discarded)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + reason;
  return text.empty() ? "0" : text;
}

std::string whole_runs(const std::vector<SimulatedVariant>& variants, int width) {
  using cli::Align;
  const std::vector<cli::Column> columns{{"VARIANT"},
                                         {"S/STEP", Align::kRight},
                                         {"STEPS/H", Align::kRight},
                                         {"TRAINER IDLE", Align::kRight},
                                         {"ROLLOUT IDLE", Align::kRight},
                                         {"TOKENS/S", Align::kRight, 4, {}, 4},
                                         {"STALENESS", Align::kRight, 4, {}, 3},
                                         {"QUEUE", Align::kRight, 4, {}, 2},
                                         {"OLDEST", Align::kRight, 4, {}, 1},
                                         {"DISCARDED", Align::kRight, 4, {}, 5},
                                         {"COST/STEP", Align::kRight, 4, {}, 6}};
  std::vector<cli::Row> rows;
  for (const SimulatedVariant& variant : variants) {
    const forecast::Forecast& of = variant.forecast;
    const auto steps = static_cast<double>(std::max<std::size_t>(of.steps.size(), 1));
    const std::int64_t stalest = of.staleness.empty() ? 0 : of.staleness.back().first;
    rows.push_back(
        {variant.name, number(of.seconds / steps), number(steps_per_hour(of)),
         percent(of.trainer_idle_fraction), percent(of.rollout_idle_fraction),
         cli::short_count(tokens_per_s(of)),
         number(of.staleness_mean) + ", most " + std::to_string(stalest), number(queue_mean(of)),
         std::to_string(oldest_most(of)), discarded_text(of),
         variant.cost_per_step ? money(*variant.cost_per_step) + " " + variant.currency : "-"});
  }
  return cli::render_table(columns, rows, width);
}

std::string steady_parts(const std::vector<SimulatedVariant>& variants, int width) {
  using cli::Align;
  const std::vector<cli::Column> columns{{"STEADY PART"},
                                         {"STEPS", Align::kRight, 4, {}, 1},
                                         {"S/STEP", Align::kRight},
                                         {"STEPS/H", Align::kRight},
                                         {"TRAINER IDLE", Align::kRight},
                                         {"ROLLOUT IDLE", Align::kRight},
                                         {"TOKENS/S", Align::kRight, 4, {}, 2}};
  std::vector<cli::Row> rows;
  for (const SimulatedVariant& variant : variants) {
    if (!variant.forecast.steady) continue;
    const forecast::SteadyPart& of = *variant.forecast.steady;
    rows.push_back({variant.name,
                    std::to_string(of.first) + " to " + std::to_string(of.last) + " of " +
                        std::to_string(variant.forecast.steps.size()),
                    number(of.seconds / static_cast<double>(of.steps())),
                    number(steps_per_hour(of)), percent(of.trainer_idle_fraction),
                    percent(of.rollout_idle_fraction), cli::short_count(of.tokens_trained_per_s)});
  }
  return rows.empty() ? "" : "\n" + cli::render_table(columns, rows, width);
}

// A column for each age; the last one has all that are older, too.
std::string staleness_shares(const std::vector<SimulatedVariant>& variants, int width) {
  std::int64_t most = -1;
  for (const SimulatedVariant& variant : variants)
    if (!variant.forecast.staleness.empty())
      most = std::max(most, variant.forecast.staleness.back().first);
  if (most < 0) return "";
  const std::int64_t last = std::min(most, kStalenessLast);
  std::vector<cli::Column> columns{{"STALENESS"}};
  for (std::int64_t steps = 0; steps <= last; ++steps)
    columns.push_back(
        {std::to_string(steps) + (steps == last && last < most ? "+" : ""), cli::Align::kRight});
  std::vector<cli::Row> rows;
  for (const SimulatedVariant& variant : variants) {
    std::vector<double> counts(static_cast<std::size_t>(last) + 1);
    double sum = 0;
    for (const auto& [steps, count] : variant.forecast.staleness) {
      counts[static_cast<std::size_t>(std::clamp<std::int64_t>(steps, 0, last))] +=
          static_cast<double>(count);
      sum += static_cast<double>(count);
    }
    cli::Row& row = rows.emplace_back(cli::Row{variant.name});
    for (const double count : counts) row.push_back(count > 0 ? percent(count / sum) : "-");
  }
  return "\n" + cli::render_table(columns, rows, width);
}

}  // namespace

std::string simulate_tables(const std::vector<SimulatedVariant>& variants, int width) {
  return whole_runs(variants, width) + steady_parts(variants, width) +
         staleness_shares(variants, width);
}

json simulate_json(const SimulatedVariant& variant) {
  const forecast::Forecast& of = variant.forecast;
  json staleness = json::object();
  for (const auto& [steps, count] : of.staleness) staleness[std::to_string(steps)] = count;
  json discarded = json::object();
  for (const auto& [reason, count] : of.groups_discarded) discarded[reason] = count;
  json series = json::array();
  const std::size_t every = of.steps.size() / kSeriesPoints + 1;
  for (std::size_t i = 0; i < of.steps.size(); i += every) {
    const forecast::ForecastStep& step = of.steps[i];
    series.push_back({{"step", i + 1},
                      {"at_s", step.at_s},
                      {"queue_depth", step.queue_depth},
                      {"oldest_sample_age_steps", step.oldest_age_steps},
                      {"trainer_idle_fraction", step.trainer_idle_fraction}});
  }
  return {{"variant", variant.name},
          {"sets", variant.sets},
          {"steps", of.steps.size()},
          {"seconds", of.seconds},
          {"steps_per_hour", steps_per_hour(of)},
          {"step_seconds", of.step_seconds},
          {"trainer_idle_fraction", of.trainer_idle_fraction},
          {"rollout_idle_fraction", of.rollout_idle_fraction},
          {"install_fraction", of.install_fraction},
          {"tokens_generated", of.tokens_generated},
          {"tokens_trained", of.tokens_trained},
          {"tokens_trained_per_s", tokens_per_s(of)},
          {"steady", steady_json(of)},
          {"staleness", {{"mean", of.staleness_mean}, {"histogram", staleness}}},
          {"queue_depth_mean", queue_mean(of)},
          {"oldest_sample_age_steps_max", oldest_most(of)},
          {"groups_trained", of.groups_trained},
          {"groups_discarded", groups_discarded(of)},
          {"groups_discarded_by_reason", discarded},
          {"rollout_deaths", of.rollout_deaths},
          {"cost_per_step", variant.cost_per_step ? json(*variant.cost_per_step) : json()},
          {"currency", variant.cost_per_step ? json(variant.currency) : json()},
          {"computed_seconds", variant.computed_s},
          {"series", series}};
}

std::string simulate_plot(const std::string& job, const std::vector<SimulatedVariant>& variants) {
  const auto panel = [&](const char* title, const auto& value) {
    forecast::PlotPanel made{title, {}};
    for (const SimulatedVariant& variant : variants) {
      forecast::PlotLine& line = made.lines.emplace_back(forecast::PlotLine{variant.name, {}});
      const auto& steps = variant.forecast.steps;
      const std::size_t every = steps.size() / kSeriesPoints + 1;
      for (std::size_t i = 0; i < steps.size(); i += every)
        line.points.emplace_back(steps[i].at_s, value(steps[i], i + 1));
    }
    return made;
  };
  using forecast::ForecastStep;
  return forecast::plot_svg(
      "tandem simulate: " + job,
      {panel("steps",
             [](const ForecastStep&, std::size_t step) { return static_cast<double>(step); }),
       panel(
           "trainer idle so far, %",
           [](const ForecastStep& step, std::size_t) { return 100 * step.trainer_idle_fraction; }),
       panel("groups that wait to be trained",
             [](const ForecastStep& step, std::size_t) {
               return static_cast<double>(step.queue_depth);
             }),
       panel("age of the oldest sample, steps", [](const ForecastStep& step, std::size_t) {
         return static_cast<double>(step.oldest_age_steps);
       })});
}

}  // namespace tandem::app
