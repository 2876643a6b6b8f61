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

}  // namespace tandem::app
