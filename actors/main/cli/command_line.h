// The command line's grammar: one table of commands and options for parsing, help, completion and
// docs/cli.md. CLI11 stays inside command_line.cc. Pure; opens no file.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "actors/main/cli/command.h"
#include "runtime/base/result.h"

namespace tandem::cli {

// `arguments` without the program's name. Errors are kInvalid (exit 64), with the nearest command
// or option in the help.
Result<Invocation> parse_command_line(std::span<const char* const> arguments);

// The text of docs/cli.md.
std::string cli_reference();

// A script that completes commands, options and their values; `source <(tandem completion bash)`.
std::string completion_script(Shell shell);

// "jobs", "actors", …; also the last part of the HTTP path.
std::string_view spelling(Kind kind);

}  // namespace tandem::cli
