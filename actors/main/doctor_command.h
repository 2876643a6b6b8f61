// `tandem doctor`: this machine, or with --engine a server of an inference engine, and what would
// stop Tandem there.
#pragma once

#include <optional>
#include <string>

#include "actors/cli/kinds.h"
#include "actors/cli/verb.h"

namespace tandem::app {

struct DoctorCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::optional<std::string> engine;  // a server's URL; nullopt: this machine
  cli::OutputForm output = cli::OutputForm::kTable;
};

}  // namespace tandem::app
