// Time as actors see it: nanoseconds since an arbitrary start, monotonic. Real code reads it from
// its Context; only runtime/ reads the operating system's clocks.
#pragma once

#include <chrono>
#include <cstdint>

namespace tandem {

using Duration = std::chrono::nanoseconds;

struct Time {
  std::int64_t ns = 0;
  auto operator<=>(const Time&) const = default;
};

constexpr Time operator+(Time t, Duration d) { return {t.ns + d.count()}; }
constexpr Duration operator-(Time a, Time b) { return Duration(a.ns - b.ns); }
constexpr double seconds(Duration d) { return static_cast<double>(d.count()) * 1e-9; }

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
