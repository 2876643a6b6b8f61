#include "runtime/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

#include "runtime/base/text.h"

namespace tandem {
namespace {

spdlog::level::level_enum least(LogLevel level) {
  switch (level) {
    case LogLevel::kWarnings:
      return spdlog::level::warn;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kDebug:
      return spdlog::level::debug;
  }
  return spdlog::level::off;
}

spdlog::level::level_enum level_of(log::Severity severity) {
  switch (severity) {
    case log::Severity::kDebug:
      return spdlog::level::debug;
    case log::Severity::kInfo:
      return spdlog::level::info;
    case log::Severity::kWarning:
      return spdlog::level::warn;
    case log::Severity::kError:
      return spdlog::level::err;
    case log::Severity::kCritical:
      return spdlog::level::critical;
  }
  return spdlog::level::off;
}

}  // namespace

void init_logging(std::string_view process, LogLevel level) {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>(std::string(process), std::move(sink));
  // "2026-11-24T09:30:00.123Z I controller event=…": line_time_ms (runtime/node/log_files.h) reads
  // the time at the start.
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %L %n %v", spdlog::pattern_time_type::utc);
  logger->set_level(least(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

ScopedLogging::ScopedLogging(std::string_view process, LogLevel level)
    : before_(spdlog::default_logger()) {
  init_logging(process, level);
}

ScopedLogging::~ScopedLogging() {
  spdlog::set_default_logger(std::static_pointer_cast<spdlog::logger>(before_));
}

namespace log {

void write(Severity severity, fmt::string_view format, fmt::format_args values) {
  // Dropped lines are not formatted. The finished line is passed as one string, in which spdlog
  // does not look for braces.
  const auto level = level_of(severity);
  if (spdlog::should_log(level))
    spdlog::log(level, visible(fmt::vformat(format, values), Lines::kOne));
}

void mute() { spdlog::set_level(spdlog::level::off); }

}  // namespace log
}  // namespace tandem
