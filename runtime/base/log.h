// One log line per event, `key=value`, to stderr by spdlog; the agent redirects a rank's stderr to
// its log file. kernels/ and scheduler/ never log. Foreign text in a line is made visible (text.h):
// it neither starts a line of its own nor steers a terminal.
//
// Lines are formatted here and not by spdlog's own templates, which compile all of fmt again in
// each source that logs (six seconds each).
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string_view>

namespace tandem {

enum class LogLevel { kWarnings, kInfo, kDebug };

// `process` leads each line: "controller", "node/vm", "arith-1/rollout/0#3". Call once, from main.
void init_logging(std::string_view process, LogLevel level);

namespace log {

enum class Severity { kDebug, kInfo, kWarning, kError, kCritical };

void write(Severity severity, fmt::string_view format, fmt::format_args values);
// Of events that come often the first is worth a line, then one in kOneIn; `count` is from 1.
inline constexpr std::uint64_t kOneIn = 100;
constexpr bool worth_a_line(std::uint64_t count) { return count == 1 || count % kOneIn == 0; }

void mute();  // no line at all from now on: for tests of what is bound to fail

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
