// The runs below TANDEM_HOME/runs as their files show them, for the command line where no
// controller runs: by the same answers as the HTTP API's (actors/controller/runs_api.h), in this
// process.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "actors/controller/run_catalogue.h"
#include "runtime/http/http_server.h"

namespace tandem::app {

// The name and the number of steps in the job file of a run; nullopt if the text is not one. From
// any thread.
std::optional<actors::JobFacts> read_job_facts(const std::string& yaml,
                                               const std::filesystem::path& run_dir);

// Answers a GET about the runs of this TANDEM_HOME. There are no jobs, actors, nodes or groups.
runtime::HttpHandler answers_of_home();

}  // namespace tandem::app
