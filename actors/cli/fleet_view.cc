#include "actors/cli/fleet_view.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "actors/cli/cells.h"
#include "actors/cli/table.h"
#include "runtime/base/json.h"

namespace tandem::cli {
namespace {

using cells::at;
using cells::kNone;
using cells::percent;
using nlohmann::json;

std::string formatted(const json& value, const char* format) {
  if (!value.is_number()) return kNone;
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, format, value.get<double>());
  return buffer;
}

// "1.2k (1.1k to 1.3k)": the mean rollout's, and the slowest and fastest where there are several.
std::string rollout_rates(const json& rollouts) {
  std::vector<double> rates;
  if (rollouts.is_array())
    for (const json& rollout : rollouts)
      if (const json& rate = at(rollout, {"tokens_per_s"}); rate.is_number())
        rates.push_back(rate.get<double>());
  if (rates.empty()) return kNone;
  double sum = 0;
  for (const double rate : rates) sum += rate;
  std::string text = short_count(sum / static_cast<double>(rates.size()));
  const auto [least, most] = std::ranges::minmax(rates);
  if (rates.size() > 1) text += " (" + short_count(least) + " to " + short_count(most) + ")";
  return text;
}

}  // namespace

std::string fleet_lines(const json& item, int width) {
  const json& rates = at(item, {"rates"});
  if (!rates.is_object()) return "";
  const json& predicted = at(item, {"predicted"});
  const auto counted = [](const json& count, const char* what) {
    return count.is_number() ? cells::text(count) + what : kNone;
  };
  const std::vector<Row> rows{
      {"trainer idle", percent(at(rates, {"trainer_idle_fraction"})),
       percent(at(predicted, {"trainer_idle_fraction"}))},
      {"rollouts idle", percent(at(rates, {"rollout_idle_fraction"})),
       percent(at(predicted, {"rollout_idle_fraction"}))},
      {"rollouts", counted(at(predicted, {"rollouts"}), " up"),
       counted(at(predicted, {"rollouts_matched"}), " match")},
      {"tokens/s of a rollout", rollout_rates(at(rates, {"rollouts"}))},
      {"trainer's step", formatted(at(rates, {"step_seconds"}), "%.3g s")},
      {"tokens of a step", cells::count(at(rates, {"step_tokens"}))},
      {"generated per trained", formatted(at(rates, {"generated_per_trained"}), "%.2f")},
      {"pause of an install", formatted(at(rates, {"install_seconds"}), "%.2g s")},
      {"prefix hits", percent(at(rates, {"prefix_hit_ratio"}))},
      {"rollout deaths", cells::text(at(rates, {"rollout_deaths"}))},
      {"over steps", cells::text(at(rates, {"steps"}))}};
  return render_table(
      {{"", Align::kLeft, 12}, {"MEASURED", Align::kRight, 8}, {"PREDICTED", Align::kRight, 9}},
      rows, width);
}

std::string idle_of(const json& job) {
  const std::string measured = percent(at(job, {"rates", "trainer_idle_fraction"})),
                    predicted = percent(at(job, {"predicted", "trainer_idle_fraction"}));
  if (measured == kNone || predicted == kNone) return kNone;
  return measured.substr(0, measured.size() - 1) + "/" + predicted;
}

}  // namespace tandem::cli
