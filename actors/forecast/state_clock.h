// For how long something has been in a state that it enters and leaves. A value; pure.
#pragma once

#include <optional>

#include "runtime/base/clock.h"

namespace tandem::forecast {

class StateClock {
 public:
  void begin(Time now) { since_ = now; }
  // For how long it lasted this time, in seconds; 0 where it had not begun.
  double end(Time now) {
    const double lasted = since_ ? seconds(now - *since_) : 0;
    since_.reset();
    seconds_ += lasted;
    return lasted;
  }
  double seconds_at(Time now) const { return seconds_ + (since_ ? seconds(now - *since_) : 0); }

 private:
  double seconds_ = 0;
  std::optional<Time> since_;
};

}  // namespace tandem::forecast
