// `tandem timeline`: a run's journal as a trace for Chromium's tracing and Perfetto. Reads the run
// directory, also of a run that is going on, and writes nothing there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "actors/cli/verb.h"
#include "actors/timeline/run_survey.h"

namespace tandem::app {

// The exit code is 0, also where the trace had to end early, which stderr says; 130 after Ctrl-C;
// else that of the error. SIGINT is blocked from then on (signals.h).
struct TimelineCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::filesystem::path named;        // a run directory, or a run's id
  std::optional<std::string> output;  // nullopt: RUN-trace.json; "-": standard output
  timeline::TraceBound from, to;
};

// "40": a step; "90s", "10m", "2h": a time since the run's first entry. kInvalid for anything else.
Result<timeline::TraceBound> parse_trace_bound(const std::string& option, const std::string& text);

}  // namespace tandem::app
