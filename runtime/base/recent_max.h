// The largest of the values of the newest minute or two, in constant room: the largest of the
// minute under way and that of the minute before are kept. Times are the caller's; none may be
// earlier than the one before it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "runtime/base/clock.h"

namespace tandem {

class RecentMax {
 public:
  // `value` is not negative.
  void add(Time now, double value) {
    const std::int64_t minute = minute_of(now);
    if (minute != minute_) {
      before_ = minute == minute_ + 1 ? newest_ : 0;
      minute_ = minute;
      newest_ = 0;
    }
    newest_ = std::max(newest_, value);
  }
  // 0: there was none in that time.
  double most(Time now) const {
    const std::int64_t passed = minute_of(now) - minute_;
    if (passed > 1) return 0;
    return passed == 1 ? newest_ : std::max(newest_, before_);
  }

 private:
  static std::int64_t minute_of(Time time) {
    return time.ns / Duration(std::chrono::minutes(1)).count();
  }
  std::int64_t minute_ = 0;
  double newest_ = 0, before_ = 0;
};

}  // namespace tandem
