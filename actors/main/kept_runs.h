// `tandem get runs` without a controller: the runs below TANDEM_HOME/runs as their files show them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "actors/controller/run_catalogue.h"
#include "actors/main/cli/client_program.h"
#include "actors/main/cli/command.h"
#include "runtime/base/result.h"

namespace tandem::app {

// The name and the number of steps in the job file of a run; nullopt if the text is not one. From
// any thread.
std::optional<actors::JobFacts> read_job_facts(const std::string& yaml,
                                               const std::filesystem::path& run_dir);

// Whether `invocation` lists runs, and no controller is named by it or by TANDEM_ADDRESS. The files
// here then answer where no controller runs.
bool lists_runs_of_this_home(const Invocation& invocation);

// Prints the runs of this TANDEM_HOME that `command` asks for. Errors: there is no such run, or no
// field to sort by.
Result<void> list_kept_runs(const GetCommand& command, const Console& console);

}  // namespace tandem::app
