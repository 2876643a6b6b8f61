// The grammar of the command line: one definition of commands and options for parsing, help,
// completion and docs/cli.md. Users of this header do not see CLI11. Pure: no file is opened.
#pragma once

#include <span>
#include <string>

#include "actors/cli/command.h"
#include "actors/cli/grammar.h"
#include "runtime/base/result.h"

namespace tandem::cli {

// Parses `arguments`, which are without the program's name. Asking for help is a HelpCommand, no
// error. Errors are kInvalid (exit 64), with the nearest command or option as help.
Result<Invocation> parse_command_line(std::span<const char* const> arguments);

// The text of docs/cli.md.
std::string cli_reference();

// A script for `shell` that completes commands, options and their values: source <(tandem
// completion bash).
std::string completion_script(Shell shell);
// The NAMES of complete_command.h for an argument or an option of a command; empty if it has none.
std::string completion_names(const CommandDoc& command, const OptionDoc& option);

}  // namespace tandem::cli
