// Numbers as `tandem size` prints them. Pure.
#pragma once

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

// "24.576", "0.0103": three digits below a second.
inline std::string short_seconds(double seconds) {
  char text[32];
  if (seconds >= 1) return grouped(seconds, 3);
  std::snprintf(text, sizeof text, "%.3g", seconds);
  return text;
}

}  // namespace tandem::app
