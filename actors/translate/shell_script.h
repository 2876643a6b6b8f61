// The commands that a shell script would run, with the values of its variables: assignments,
// defaults, arrays and arithmetic are carried out, and nothing else. A value that only a run could
// know (the output of a command, an unset variable, an assignment within `if`) is unknown, and the
// word says why; it is never guessed. Pure: no program is started and no environment is read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::translate {

struct ScriptWord {
  std::string text;          // an unknown part is "…"
  int line = 0;              // from 1
  std::string unknown = {};  // why a part is not known; empty: all of it is
};

struct ScriptCommand {
  std::vector<ScriptWord> words;  // without the variables that are set in front of the command
  int line = 0;
  bool conditional = false;  // it stands within `if`, a loop or a function
};

// The commands in their order. HOME stays as `$HOME`, which a job file takes at the beginning of a
// path, and the script has no arguments: `$@` is nothing. Errors are those of shell_commands().
Result<std::vector<ScriptCommand>> script_commands(std::string_view text,
                                                   const std::string& origin);

}  // namespace tandem::translate
