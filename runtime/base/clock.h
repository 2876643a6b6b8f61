// Time as actors see it: nanoseconds since an arbitrary start, monotonic. An actor reads the time
// from its Context, so that a simulation can give it virtual time; only runtime/ reads the clocks
// of the operating system. Times of two hosts cannot be compared.
#pragma once

#include <chrono>
#include <cstdint>

namespace tandem {

using Duration = std::chrono::nanoseconds;

// A point in time. The difference of two is a Duration; a Time is not a number by itself.
struct Time {
  std::int64_t ns = 0;
  auto operator<=>(const Time&) const = default;
};

constexpr Time operator+(Time t, Duration d) { return {t.ns + d.count()}; }
constexpr Duration operator-(Time a, Time b) { return Duration(a.ns - b.ns); }
// A duration in seconds, for rates and for people.
constexpr double seconds(Duration d) { return static_cast<double>(d.count()) * 1e-9; }

// The machine's monotonic clock, which setting the date does not change. Any thread may call it.
inline Time steady_now() {
  return {std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch())
              .count()};
}

// Wall time for people: milliseconds since 1970, in journals, logs and JSON; never in a decision.
inline std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace tandem
