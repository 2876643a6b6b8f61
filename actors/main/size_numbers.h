// Numbers as `tandem size` and `tandem simulate` print them. Pure.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "actors/cli/table.h"

namespace tandem::app {

// "39,321.6": so many digits behind the point, none of them where the rest is 0.
std::string grouped(double value, int decimals = 1);
// "18.6%" of 0.186.
inline std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", 100 * share);
  return text;
}

// "1 step", "1,000 steps".
inline std::string steps_word(std::int64_t steps) {
  return grouped(static_cast<double>(steps), 0) + (steps == 1 ? " step" : " steps");
}
inline std::string rollouts_word(std::int64_t rollouts) {
  return std::to_string(rollouts) + (rollouts == 1 ? " rollout" : " rollouts");
}

// "24.576", "0.0103": three digits below a second.
inline std::string short_seconds(double seconds) {
  char text[32];
  if (seconds >= 1) return grouped(seconds, 3);
  std::snprintf(text, sizeof text, "%.3g", seconds);
  return text;
}

// "31.30", "0.000445": steps of small models cost parts of a cent.
inline std::string money(double amount) {
  char text[64];
  std::snprintf(text, sizeof text, amount != 0 && std::abs(amount) < 0.1 ? "%.3g" : "%.2f", amount);
  return text;
}

}  // namespace tandem::app
