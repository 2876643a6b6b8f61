// How a job's two pools match over its newest steps, measured and predicted, as `describe` and
// `top` show it. `width` is in columns. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tandem::cli {

// A table of item["rates"] beside item["predicted"]. Empty where nothing is measured.
std::string fleet_lines(const nlohmann::json& item, int width);

// "31/29%": the trainer's idle time, measured and predicted; "-" where either is unknown.
std::string idle_of(const nlohmann::json& job);

}  // namespace tandem::cli
