// For tests of what happens when a time is up. How long the others take to get where the test wants
// them is the machine's affair, and a machine may leave a thread alone for seconds.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "runtime/base/clock.h"

namespace tandem::runtime {

// Runs `trial` with one patience after another, 60 ms to 15 s, each four times the last, until it
// finds nothing to complain of. Returns the last complaint, "" for none: what is wrong with every
// patience is wrong.
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

}  // namespace tandem::runtime
