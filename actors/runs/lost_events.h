// Says in the log that a journal takes no events: the first that it refuses, and once it takes
// events again, how many it lacks. On a full disk it refuses each, and many a second may come.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/result.h"

namespace tandem::runs {

class LostEvents {
 public:
  // The journal was given one event.
  void note(const Result<void>& kept);

 private:
  std::uint64_t count_ = 0;  // since the last one that was kept
  std::string where_;        // of the first of them
};

}  // namespace tandem::runs
