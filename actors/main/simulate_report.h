// The tables, JSON and picture that `tandem simulate` prints of its variants. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/forecast/forecast.h"
#include "runtime/base/json.h"

namespace tandem::app {

// A job with some of its keys replaced, and its forecast.
struct SimulatedVariant {
  std::string name;
  std::vector<std::string> sets;
  forecast::Forecast forecast = {};
  std::optional<double> cost_per_step = {};
  std::string currency = {};
  double computed_s = 0;  // here
};

// Three tables: the whole runs; their steady parts; the shares of trained completions by staleness
// in steps. A table without a row, or without a column of figures, is left out.
std::string simulate_tables(const std::vector<SimulatedVariant>& variants, int width);
nlohmann::json simulate_json(const SimulatedVariant& variant);
// An SVG file.
std::string simulate_plot(const std::string& job, const std::vector<SimulatedVariant>& variants);

}  // namespace tandem::app
