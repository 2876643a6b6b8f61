// Parses a command line by the table of verbs. Users of this header do not see CLI11. Pure: no file
// is opened.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "actors/cli/verb.h"
#include "runtime/base/result.h"

namespace tandem::cli {

// A verb whose options have their values, with the options that every verb takes.
struct Invocation {
  Verb verb;
  std::optional<std::string> address;  // --address
  bool verbose = false;                // -v: debug lines on stderr
};

// Parses `arguments`, which are without the program's name. `tandem`, `--help` and `--version` are
// answered by a verb that prints the help or the version. Errors are kInvalid (exit 64), with the
// nearest verb or option as help.
Result<Invocation> parse_command_line(std::span<const char* const> arguments,
                                      const VerbTable& verbs);

}  // namespace tandem::cli
