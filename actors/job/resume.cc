// A run directory is recognised by its journal, which exists once the job has begun; that of a job
// of actors alone, which keeps no journal, by its job file. Checkpoints are recognised by their
// names alone: a checkpoint gets its final name when it is complete, so that no content has to be
// read.
#include "actors/job/resume.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <system_error>

#include "actors/job/print_job.h"
#include "runtime/base/file.h"
#include "runtime/base/shell_word.h"
#include "runtime/base/text.h"

namespace tandem::job {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kCheckpointPrefix = "step-";
constexpr const char* kJournal = "journal.sqlite";  // exists once the run has begun
constexpr const char* kJobFile = "job.yaml";

constexpr std::size_t kChangesShown = 10;
constexpr std::size_t kValueBytes = 60;

// Whether the key says which prompt has which place in the order of prompts: the place is all that
// a journal keeps. (Another `seed` is refused, by the checkpoint.)
bool gives_the_order(const JobSpec& job, std::string_view key) {
  constexpr std::string_view kAlways[] = {"data.train_files", "data.shuffle",
                                          "data.filter_overlong_prompts", "data.max_samples",
                                          "data.mixture"};
  // A filter counts the tokens of what these make of a record.
  constexpr std::string_view kWithFilter[] = {"data.max_prompt_length", "data.prompt_key",
                                              "data.prompt_is",         "data.system_prompt",
                                              "data.chat_template",     "data.chat_template_kwargs",
                                              "data.enable_thinking",   "data.chat_date"};
  const auto is_in = [key](const auto& keys) { return std::ranges::count(keys, key) > 0; };
  return is_in(kAlways) || (job.data.filter_overlong_prompts && is_in(kWithFilter)) ||
         (!job.data.mixture.empty() && key == "data.data_source_key");
}

}  // namespace

// A checkpoint that is still being written has another name.
std::vector<std::int64_t> checkpoints_of(const fs::path& run) {
  std::vector<std::int64_t> steps;
  std::error_code failure;
  for (fs::directory_iterator entry(run / "checkpoints", failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(kCheckpointPrefix)) continue;
    std::int64_t step = 0;
    const char* const last = name.data() + name.size();
    const auto read = std::from_chars(name.data() + kCheckpointPrefix.size(), last, step);
    if (read.ec == std::errc() && read.ptr == last && step >= 0) steps.push_back(step);
  }
  std::ranges::sort(steps);
  return steps;
}

std::optional<std::int64_t> newest_checkpoint(const fs::path& run) {
  const std::vector<std::int64_t> steps = checkpoints_of(run);
  return steps.empty() ? std::nullopt : std::optional(steps.back());
}

Result<fs::path> find_run(const fs::path& named, const fs::path& runs) {
  std::error_code failure;
  // A path is tried before an id, so that a directory in the current folder wins over a run.
  for (const fs::path& candidate : {named, runs / named}) {
    const fs::path run = fs::canonical(candidate, failure);
    if (!failure && (has_begun(run) || is_of_actors_alone(run))) return run;
  }
  return Error{ErrorCode::kFailed, "this is not a run directory that can be resumed",
               named.string(), "give TANDEM_HOME/runs/<job id>, or the job's id"};
}

bool has_begun(const fs::path& run) {
  std::error_code failure;
  return fs::exists(run / kJournal, failure);
}

bool is_of_actors_alone(const fs::path& run) {
  const auto yaml = read_file(run / kJobFile, kJobFileBytesMax);
  if (!yaml) return false;
  const auto job = parse_job_of_run(*yaml, run);
  return job && !trains(*job);
}

Result<LoadedJob> load_job_of(const std::optional<fs::path>& job,
                              const std::optional<fs::path>& resume,
                              const std::vector<std::string>& sets) {
  if (job) return load_job(*job, sets);
  if (resume) return load_job(*resume / kJobFile, sets);
  return Error{ErrorCode::kInvalid, "JOB.yaml is required", "",
               "name a job file; only with --resume RUN_DIR the run's own job.yaml will do"};
}

Result<void> check_resumable(const JobSpec& job, const fs::path& run) {
  if (has_begun(run) != trains(job))
    return Error{ErrorCode::kInvalid,
                 trains(job) ? "the run is one of actors alone, and this job trains"
                             : "the run has trained, and this job is one of actors alone",
                 run.string(),
                 "resume it with its own job.yaml, or begin a new run without --resume"};
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

std::vector<std::string> changes_of_resume(const JobSpec& before, const JobSpec& now) {
  std::map<std::string, std::string> values;
  for (PrintedKey& key : printed_keys(before)) values.emplace(key.path, std::move(key.value));
  std::vector<std::string> changed;
  std::string of_order;
  const auto note = [&](const std::string& path, std::string_view old, std::string_view value) {
    changed.push_back("`" + path + "` " + cut_utf8(old, kValueBytes) + " → " +
                      cut_utf8(value, kValueBytes));
    if (gives_the_order(now, path)) of_order += (of_order.empty() ? "`" : ", `") + path + "`";
  };
  for (const PrintedKey& key : printed_keys(now)) {
    const auto old = values.extract(key.path);
    if (old.empty()) {
      note(key.path, "absent", key.value);
    } else if (old.mapped() != key.value) {
      note(key.path, old.mapped(), key.value);
    }
  }
  for (const auto& [path, value] : values) note(path, value, "absent");
  if (changed.empty()) return {};
  std::string list;
  for (std::size_t i = 0; i < std::min(changed.size(), kChangesShown); ++i)
    list += (i == 0 ? "" : ", ") + changed[i];
  if (changed.size() > kChangesShown)
    list += " and " + std::to_string(changed.size() - kChangesShown) + " more";
  std::vector<std::string> sentences = {"the run goes on with other keys than before: " + list};
  if (!of_order.empty())
    sentences.push_back(
        "another " + of_order +
        " gives the prompts another order: those that come next do not follow those "
        "that were drawn, so some come twice and others not at all in this epoch");
  return sentences;
}

std::string resume_command(const std::string& verb, const fs::path& run) {
  return "tandem " + verb + " --resume " + shell_word(run.string());
}

std::string resume_hint(const std::string& verb, const fs::path& run) {
  if (!has_begun(run) && !is_of_actors_alone(run)) return "";
  return "resume with: " + resume_command(verb, run) + "\n";
}

}  // namespace tandem::job
