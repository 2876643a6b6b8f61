// The runs below TANDEM_HOME/runs as their files show them, for the command line where no
// controller runs: by the same answers as the HTTP API's (actors/api/runs_api.h), in this
// process.
#pragma once

#include "actors/runs/run_catalogue.h"
#include "runtime/http/http_server.h"

namespace tandem::app {

// The facts of a run's job file and its keys. May be called from any thread.
runs::JobReaders job_readers();

// Answers a GET about the runs of this TANDEM_HOME. There are no jobs, actors, nodes or groups.
http::HttpHandler answers_of_home();

}  // namespace tandem::app
