// Run directories and --resume: which run a name means, which job it continues as, and whether that
// job can begin where the run stopped. Looks at names and at job.yaml only; the journal and the
// checkpoints are judged by the exchange and the learner, which load them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/job/load_job.h"

namespace tandem::job {

// The run directory that `named` means: a path, or the id of a run below `runs`. The result is
// absolute and has no symbolic links. kFailed where neither is a run that has begun, that is, has a
// journal or is one of actors alone.
Result<std::filesystem::path> find_run(const std::filesystem::path& named,
                                       const std::filesystem::path& runs);

// Whether the run has a journal, from which it can go on.
bool has_begun(const std::filesystem::path& run);
// Whether the run's job.yaml is that of a job of actors alone: it has no journal, and all of its
// actors start again where it is resumed.
bool is_of_actors_alone(const std::filesystem::path& run);

// The job of `tandem run` and `tandem submit`: the file `job`, else the job.yaml of the run
// `resume`. `sets` are applied to either. kInvalid where both are absent; else the errors of
// load_job().
Result<LoadedJob> load_job_of(const std::optional<std::filesystem::path>& job,
                              const std::optional<std::filesystem::path>& resume,
                              const std::vector<std::string>& sets);

// The steps of the run's complete checkpoints, the lowest first.
std::vector<std::int64_t> checkpoints_of(const std::filesystem::path& run);
// The greatest step of a complete checkpoint of the run; nullopt where it has none.
std::optional<std::int64_t> newest_checkpoint(const std::filesystem::path& run);

// kInvalid where `job` has resume_mode: disable, ends before the newest checkpoint of `run`, or
// trains where the run did not, or the reverse.
Result<void> check_resumable(const JobSpec& job, const std::filesystem::path& run);

// The differences between going on as `before` and as `now`, in one sentence each for the user:
// which keys have another value, at most ten by name, and whether the prompts that come next no
// longer follow those that were drawn before. Empty where every key has the same value.
std::vector<std::string> changes_of_resume(const JobSpec& before, const JobSpec& now);

// The command that continues the run, quoted for a shell: "tandem run --resume '/a b/c-1'".
std::string resume_command(const std::string& verb, const std::filesystem::path& run);
// "resume with: ..." and a newline, for the user who stopped the run; empty for a run that
// find_run() would not find.
std::string resume_hint(const std::string& verb, const std::filesystem::path& run);

}  // namespace tandem::job
