// One log line per event, `key=value`, to stderr by spdlog. The agent redirects the stderr of a
// rank to the rank's log file. kernels/ and scheduler/ never log. Control characters in a line are
// shown as escapes (text.h), so that foreign text neither starts a line of its own nor steers a
// terminal.
//
// Lines are formatted in log.cc and not by spdlog's own templates, which compile all of fmt again
// in each source that logs (six seconds each). Every function here may be called from any thread.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace tandem {

// The least severe lines that are written; those below are dropped.
enum class LogLevel { kWarnings, kInfo, kDebug };

// `process` stands in each line behind the time and the severity: "controller", "node/vm",
// "arith-1/rollout/0#3". Call once, from main, before other threads exist.
void init_logging(std::string_view process, LogLevel level);

// Logs as after init_logging() for as long as the object lives, and as before it from then on. It
// is for tests that read what is logged; no other thread logs when it is made and when it goes.
class ScopedLogging {
 public:
  ScopedLogging(std::string_view process, LogLevel level);
  ~ScopedLogging();
  ScopedLogging(const ScopedLogging&) = delete;
  ScopedLogging& operator=(const ScopedLogging&) = delete;

 private:
  std::shared_ptr<void> before_;  // the logger, whose type only log.cc knows
};

namespace log {

enum class Severity { kDebug, kInfo, kWarning, kError, kCritical };

// The functions below call this one; a format error is a compile error there.
void write(Severity severity, fmt::string_view format, fmt::format_args values);
// Whether an event that comes often is worth a line: the first one is, then every kOneIn-th.
// `count` is the number of the event, from 1.
inline constexpr std::uint64_t kOneIn = 100;
constexpr bool worth_a_line(std::uint64_t count) { return count == 1 || count % kOneIn == 0; }

// No line at all is written after this call, which is for tests of code that is bound to fail.
void mute();

template <class... T>
void debug(fmt::format_string<T...> format, const T&... values) {
  write(Severity::kDebug, format, fmt::make_format_args(values...));
}
template <class... T>
void info(fmt::format_string<T...> format, const T&... values) {
  write(Severity::kInfo, format, fmt::make_format_args(values...));
}
template <class... T>
void warn(fmt::format_string<T...> format, const T&... values) {
  write(Severity::kWarning, format, fmt::make_format_args(values...));
}
template <class... T>
void error(fmt::format_string<T...> format, const T&... values) {
  write(Severity::kError, format, fmt::make_format_args(values...));
}
template <class... T>
void critical(fmt::format_string<T...> format, const T&... values) {
  write(Severity::kCritical, format, fmt::make_format_args(values...));
}

}  // namespace log
}  // namespace tandem
