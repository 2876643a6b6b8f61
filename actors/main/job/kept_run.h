// What a run directory keeps for a later --resume: its job file and its checkpoints' names. Which
// run is meant, which job it goes on as, and whether that job can begin where the run stopped.
// Reads names and job.yaml only; the journal and the checkpoints are the exchange's and the
// learner's to judge.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/main/job/load_job.h"

namespace tandem::cli {

// The run that `named` means: a run directory, or the id of one below `runs`. Absolute and without
// links. kFailed where there is none that has begun.
Result<std::filesystem::path> find_run(const std::filesystem::path& named,
                                       const std::filesystem::path& runs);

// The job of `run` or `submit`: the file `job`; without one, the job.yaml of the run `resume`.
// `sets` on top of either.
Result<LoadedJob> load_job_of(const std::optional<std::filesystem::path>& job,
                              const std::optional<std::filesystem::path>& resume,
                              const std::vector<std::string>& sets);

// kInvalid where `job` refuses to be resumed, or ends before the newest checkpoint of `run`.
Result<void> check_resumable(const JobSpec& job, const std::filesystem::path& run);

// The command that takes the run up again, as a shell reads it: "tandem run --resume '/a b/c-1'".
std::string resume_command(const std::string& verb, const std::filesystem::path& run);
// A line that tells it to whoever stopped the run; empty for a run that never began.
std::string resume_hint(const std::string& verb, const std::filesystem::path& run);

}  // namespace tandem::cli
