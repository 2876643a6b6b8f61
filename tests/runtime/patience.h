// Waits for tests that look at the end of a time limit. How long other threads take to reach the
// point that a test needs depends on the machine, and a machine may not run a thread for seconds.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "runtime/base/clock.h"

namespace tandem {

inline constexpr std::chrono::seconds kPatience(100);  // ends a hang; never measured

// Runs `trial` with one patience after another, 60 ms to 15 s, each four times the last, until it
// finds no fault. Returns the last fault, "" for none: a fault that shows with every patience is
// one.
inline std::string with_growing_patience(const std::function<std::string(Duration)>& trial) {
  std::string complaint;
  for (Duration patience = std::chrono::milliseconds(60); patience < std::chrono::seconds(16);
       patience *= 4) {
    complaint = trial(patience);
    if (complaint.empty()) break;
    GTEST_LOG_(INFO) << "with " << seconds(patience) << " s: " << complaint;
  }
  return complaint;
}

}  // namespace tandem
