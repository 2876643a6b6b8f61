// `tandem replay`: trains a recorded run again, offline, and says whether it gives the same weights
// or which step is the first to differ.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "actors/cli/kinds.h"
#include "actors/cli/verb.h"

namespace tandem::app {

// The exit code is 0 where all is equal, 1 where a step differs, 130 after Ctrl-C; else that of the
// error. The verb blocks until the last step; SIGINT is blocked from then on (signals.h).
struct ReplayCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::filesystem::path named;  // a run directory, or a run's id
  std::optional<std::int64_t> from_step, to_step, dump_step;
  std::optional<std::filesystem::path> dump_file;  // nullopt: RUN-step-N.json
  cli::OutputForm output = cli::OutputForm::kTable;
};

}  // namespace tandem::app
