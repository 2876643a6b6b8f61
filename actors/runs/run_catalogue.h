// The runs below TANDEM_HOME/runs as their files show them, whichever process ran them: this
// controller, an earlier one, or `tandem run`. Only each job file's name and step count are kept in
// memory.
//
//   RC-1  A run whose run.lock somebody holds lives and is never deleted.
//   RC-2  Deletion moves the directory away before it removes anything: no run is ever half there.
//         The number of a deleted run is not given to another.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/guarded.h"
#include "runtime/base/result.h"

namespace tandem::runs {

struct JobFacts {  // from a run's job.yaml
  std::string name;
  std::int64_t total_steps = 0;
  bool trains = true;  // false: a job of actors alone
  // How it is labelled (section `tracking`); empty: not at all.
  std::string group = {}, run_name = {}, notes = {};
  std::vector<std::string> tags = {};
};
// Reads a job file; nullopt if the text is not one.
using ReadJobFacts = std::function<std::optional<JobFacts>(const std::string& yaml,
                                                           const std::filesystem::path& run_dir)>;
// The keys of a job file in its order, with their values as YAML: {"rollout.n", "8"}.
using JobKeys = std::vector<std::pair<std::string, std::string>>;
struct JobReaders {
  ReadJobFacts facts;
  // Error: why the text is no job file.
  std::function<Result<JobKeys>(const std::string& yaml, const std::filesystem::path& run_dir)>
      keys;
};

// A run as its files were at one look.
struct Run {
  std::string id;
  std::filesystem::path run_dir;
  JobFacts job;
  bool live = false;      // its lock is held
  nlohmann::json result;  // result.json; null without one, and while the run is live
  nlohmann::json newest;  // the last whole line of metrics.jsonl, if there is no result
  // resume.json: how the newest try to resume the run ended before the run went on. It has the form
  // of `result`.
  nlohmann::json resume;
  std::int64_t created_ms = 0;
  std::optional<std::int64_t> started_ms, ended_ms;
};

// The name of "arith-3" without its number, for a run whose job file cannot be read.
std::string name_of_run(const std::string& id);
// Whether a run of this id was deleted: its number is then not given again.
bool was_deleted(const std::filesystem::path& runs, const std::string& id);

// All members may be called on any thread; each call reads the directory anew.
class RunCatalogue {
 public:
  RunCatalogue(const std::filesystem::path& home, JobReaders read_job)
      : runs_(home / "runs"), read_job_(std::move(read_job)) {}

  // Any thread may call.
  std::vector<Run> list();  // newest first
  std::size_t count() const;
  // Finds a run by its id, or by a name that one run alone has. kNotFound, or kInvalid for a name
  // of several runs.
  Result<Run> find(const std::string& wanted);
  // The keys of the run's job file. kNotFound without a job file, else the reader's error.
  Result<JobKeys> keys_of(const Run& run) const;
  // Deletes a run. kInvalid while it is live, kNotFound, or an error of the file system.
  Result<void> remove(const std::string& id);

 private:
  std::vector<std::string> ids() const;
  // The run of this id, read from its directory now.
  Run look(const std::string& id);
  // The facts come from memory while the job file has not changed.
  JobFacts facts_of(const std::string& id);

  struct KnownFacts {
    std::int64_t changed_ms = 0;  // the job file's time of change when it was read
    JobFacts facts;
  };
  const std::filesystem::path runs_;
  const JobReaders read_job_;
  Guarded<std::map<std::string, KnownFacts>> known_;
};

// The steps that a run has committed by its files.
std::int64_t steps_in(const std::filesystem::path& run_dir);
// The message of a run that was to be resumed by a job that ended, for `why`, before the run went
// on: where the run stands, and how to resume it.
std::string unresumed_text(const std::string& why, std::int64_t step,
                           const std::filesystem::path& run_dir);

// A run as `GET /api/v1/runs` shows it, by its files alone.
nlohmann::json run_json(const Run& run, std::int64_t now_ms);

}  // namespace tandem::runs
