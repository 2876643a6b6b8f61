// One field of each of some events, to compare with what a test expects.
#pragma once

#include <string>
#include <vector>

#include "actors/runs/cluster_event.h"

namespace tandem::runs {

using Messages = std::vector<std::string>;

inline Messages texts(const std::vector<ClusterEvent>& events) {
  Messages texts;
  for (const ClusterEvent& event : events) texts.push_back(event.message);
  return texts;
}

inline Messages levels(const std::vector<ClusterEvent>& events) {
  Messages names;
  for (const ClusterEvent& event : events) names.emplace_back(name(event.level));
  return names;
}

}  // namespace tandem::runs
