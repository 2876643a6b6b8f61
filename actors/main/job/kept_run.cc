// A run directory is recognised by its journal, which exists once the job has begun. Checkpoints
// are recognised by their names alone: a checkpoint gets its final name when it is complete, so
// that no content has to be read.
#include "actors/main/job/kept_run.h"

#include <charconv>
#include <system_error>

namespace tandem::app {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kCheckpointPrefix = "step-";
constexpr const char* kJournal = "journal.sqlite";  // of a run that has begun

}  // namespace

// A checkpoint that is still being written has another name.
std::optional<std::int64_t> newest_checkpoint(const fs::path& run) {
  std::optional<std::int64_t> newest;
  std::error_code failure;
  for (fs::directory_iterator entry(run / "checkpoints", failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(kCheckpointPrefix)) continue;
    std::int64_t step = 0;
    const char* const last = name.data() + name.size();
    const auto read = std::from_chars(name.data() + kCheckpointPrefix.size(), last, step);
    if (read.ec == std::errc() && read.ptr == last && step >= newest.value_or(0)) newest = step;
  }
  return newest;
}

Result<fs::path> find_run(const fs::path& named, const fs::path& runs) {
  std::error_code failure;
  // A path is tried before an id, so that a directory in the current folder wins over a run.
  for (const fs::path& candidate : {named, runs / named}) {
    const fs::path run = fs::canonical(candidate, failure);
    if (!failure && fs::exists(run / kJournal, failure)) return run;
  }
  return Error{ErrorCode::kFailed, "this is not a run directory that can be resumed",
               named.string(), "give TANDEM_HOME/runs/<job id>, or the job's id"};
}

Result<LoadedJob> load_job_of(const std::optional<fs::path>& job,
                              const std::optional<fs::path>& resume,
                              const std::vector<std::string>& sets) {
  if (job) return load_job(*job, sets);
  if (resume) return load_job(*resume / "job.yaml", sets);
  return Error{ErrorCode::kInvalid, "JOB.yaml is required", "",
               "name a job file; only with --resume RUN_DIR the run's own job.yaml will do"};
}

Result<void> check_resumable(const JobSpec& job, const fs::path& run) {
  if (job.learner.resume_mode == ResumeMode::kDisable)
    return Error{ErrorCode::kInvalid, "learner.resume_mode: disable leaves nothing to resume from",
                 run.string(),
                 "without --resume the job begins anew, in a run directory of its own; --set "
                 "learner.resume_mode=auto resumes"};
  const auto newest = newest_checkpoint(run);
  const std::int64_t end = job.learner.total_training_steps;
  if (!newest || *newest <= end) return {};
  return Error{ErrorCode::kInvalid,
               "the run has a checkpoint of step " + std::to_string(*newest) +
                   ", and the job ends at step " + std::to_string(end) +
                   " (learner.total_training_steps)",
               run.string(),
               "resume it with --set learner.total_training_steps=N of at least " +
                   std::to_string(*newest) + ", or begin a new run without --resume"};
}

std::string resume_command(const std::string& verb, const fs::path& run) {
  // Characters that no shell gives a meaning; any other path is quoted.
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%=";
  std::string path = run.string();
  if (path.find_first_not_of(kPlain) != std::string::npos) {
    std::string quoted = "'";
    for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    path = quoted + "'";
  }
  return "tandem " + verb + " --resume " + path;
}

std::string resume_hint(const std::string& verb, const fs::path& run) {
  std::error_code failure;
  if (!fs::exists(run / kJournal, failure)) return "";
  return "resume with: " + resume_command(verb, run) + "\n";
}

}  // namespace tandem::app
