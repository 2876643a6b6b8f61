// Objects of the API for tests of what people are shown, and the check that it fits a screen.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "actors/cli/table.h"
#include "runtime/base/json.h"

namespace tandem::cli {

inline constexpr std::int64_t kNow = 1'700'000'000'000;

inline nlohmann::json a_job() {
  return {{"id", "arith-1"},
          {"name", "arith"},
          {"state", "Running"},
          {"reason", ""},
          {"step", 420},
          {"total_steps", 1500},
          {"policy_version", 420},
          {"actors", {{"rollout", {{"desired", 2}, {"ready", 1}}}}},
          {"reward_mean", 0.8125},
          {"staleness", {{"bound", 2}, {"max", 2}, {"mean", 1.25}}},
          {"queue_depth", 132},
          {"trainer_idle_fraction", 0.125},
          {"tokens_per_second", {{"generated", 120345.0}, {"trained", 60100.0}}},
          {"run_dir", "/home/u/.tandem/runs/arith-1"},
          {"since", kNow - 192'000}};
}

inline nlohmann::json a_wait() {
  return {{"who", "arith-1/learner/0"},
          {"waits_for", "64 scored groups"},
          {"since_s", 3.2},
          {"deadline_s", nullptr},
          {"detail", "31 of 64 are scored"}};
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline void expect_fits(const std::string& text, int width) {
  for (const std::string& line : lines_of(text)) EXPECT_LE(display_width(line), width) << line;
}

}  // namespace tandem::cli
