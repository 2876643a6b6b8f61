// The command line where no controller runs: the files below TANDEM_HOME/runs answer, in this
// process and as the HTTP API would (actors/api/runs_api.h).
#pragma once

#include "runtime/http/http_server.h"

namespace tandem::app {

// Answers a GET about the runs of this TANDEM_HOME. There are no jobs, actors, nodes or groups.
http::HttpHandler offline_answers();

}  // namespace tandem::app
