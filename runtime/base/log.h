// Logging set-up: spdlog to stderr, one line per event, `key=value`. Use spdlog::info/warn/error
// directly; kernels/ and scheduler/ never log. The agent redirects a rank's stderr to its log file.
#pragma once

#include <string_view>

namespace tandem {

enum class LogLevel { kWarnings, kInfo, kDebug };

// `process` leads each line: "controller", "node/vm", "arith-1/rollout/0#3". Call once, from main.
void init_logging(std::string_view process, LogLevel level);

}  // namespace tandem
