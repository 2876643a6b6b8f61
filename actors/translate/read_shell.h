// A shell script, or the arguments of a training program, as a configuration: the command that
// starts the training is found, and its arguments become keys. Hydra's overrides (`a.b=1`,
// `+a.b=1`, `++a.b=1`, `~a.b`) and flags (`--a_b 1`, `--a-b=1`, `--a 1 2`, `--a`) are known; a
// flag's dashes become underscores. Pure: files that the command names are told, not read.
//
// Of a launcher in front of the program (accelerate, torchrun, deepspeed, srun) the flags are keys
// below `launcher`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/translate/foreign_config.h"
#include "runtime/base/result.h"

namespace tandem::translate {

// A configuration file that the command names, by `--config FILE` or `@ FILE`.
struct NamedFile {
  std::string path;   // as it is written
  std::string where;  // "run.sh:12"
};

struct ShellConfig {
  ForeignConfig config;
  std::vector<NamedFile> files;  // their values come before those of the command
};

// `origin` is the file's name. Errors are those of script_commands(), and a script without a
// command that has such arguments.
Result<ShellConfig> read_shell(std::string_view text, const std::string& origin);

}  // namespace tandem::translate
