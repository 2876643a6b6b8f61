// `tandem score`: a job's reward, or one of a given type, over completions that lie in files,
// before anything is trained: how much each would be paid, and why. Needs no model, no run and no
// controller.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/kinds.h"
#include "actors/cli/verb.h"

namespace tandem::app {

// The exit code is 0 if every completion was scored, 1 if one failed, 130 after Ctrl-C. The verb
// blocks until the files have ended; SIGINT and SIGTERM are blocked from then on (signals.h).
struct ScoreCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::optional<std::filesystem::path> job;  // with `type`: a file more
  std::vector<std::string> files;            // "-": standard input
  std::optional<std::string> type;           // a reward without a job
  std::vector<std::string> sets;
  bool summary = false;  // without the single completions
  cli::OutputForm output = cli::OutputForm::kTable;
};

}  // namespace tandem::app
