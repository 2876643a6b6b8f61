// `tandem import`: reads a configuration of another framework, writes a job file with comments, and
// tells what has no counterpart and what that would change. Needs no model, no data and no
// controller; starts nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "actors/cli/verb.h"

namespace tandem::app {

// The exit code where something that is learned differs, or could: the job file is written.
inline constexpr int kLearnsSomethingElse = 6;

// The exit code is 0 if the job learns what the other framework's run would, as far as is known,
// else kLearnsSomethingElse; or that of the error where the file cannot be read or understood.
struct ImportCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::filesystem::path file;
  std::optional<std::filesystem::path> output;  // nullopt: standard output
  bool force = false;                           // replaces the file that `output` names
  std::optional<std::string> from;              // nullopt: the framework is known by its keys
};

}  // namespace tandem::app
