// How many of its steps a verb has done, on stderr while it works: in place where the output is a
// terminal, else a line every five seconds. A verb that is done sooner shows nothing there.
#pragma once

#include <cstdint>
#include <string>

#include "actors/cli/console.h"
#include "runtime/base/clock.h"

namespace tandem::app {

class StepNotice {
 public:
  // `what` stands before the step; may be empty. `console` outlives the notice.
  explicit StepNotice(const cli::Console& console, std::string what = {});

  // Where it is time to.
  void show(std::int64_t done, std::int64_t of);
  // The first step is about to begin: what comes before is no measure of the rate.
  void begin(std::int64_t done);
  void erase() const;

 private:
  const cli::Console& console_;
  const std::string what_;
  Time began_, shown_;
  std::int64_t first_ = 0;
};

// "K = 2: step 12 of 50, 3s left"; without the time that is left where no rate is known.
std::string step_notice(const std::string& what, std::int64_t done, std::int64_t of,
                        double seconds_per_step);

}  // namespace tandem::app
