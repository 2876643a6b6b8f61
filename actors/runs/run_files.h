// The run directory (docs/design/contract.md) as a RunRecord:
//
//   journal.sqlite  the exchange's events (run_journal.h)
//   metrics.jsonl   one line per step, and one per evaluation; thinned beyond its limit
//   samples.jsonl   one line per sample, the newest up to its limit
//   dropped.json    how many lines of these two have gone (bounded_lines.h)
//   job.yaml        the job file; earlier ones stay as job.yaml.1, …
//   result.json     written whole when this incarnation of the run has ended; earlier ones stay as
//                   result.json.1, …
//   resume.json     removed when the run goes on (result_json.h)
//   tensorboard/    event files, if the job asks for them
//   wandb/          an offline run of Weights & Biases, likewise
//   checkpoints/best  a link to the best checkpoint, if the job names a key for it
//
// The files of trackers are an extra. If they cannot be written, or have as many bytes as they may,
// the log and take_warnings() say so once, no more of that tracker's are written until the run is
// resumed, and the run goes on. They may have more by one long line, and by the lines that a resume
// has to write first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/exchange/file_limits.h"
#include "actors/exchange/run_record.h"
#include "actors/runs/bounded_lines.h"
#include "actors/runs/run_journal.h"
#include "actors/runs/tracker.h"
#include "actors/runs/wandb_records.h"

namespace tandem::runs {

// In a run directory: the outcome of a job that was to resume the run and ended before (see
// controller/result_json.h).
inline constexpr const char* kResumeFile = "resume.json";

// The run goes on with the job file `yaml`: the former job.yaml and result.json get a number, and
// resume.json goes.
Result<void> take_up_run(const std::string& run_dir, const std::string& yaml);

// The trackers that a job asks for.
struct Trackers {
  bool tensorboard = false;
  std::optional<WandbRun> wandb = {};
};

// Owned by one exchange. The members keep the contracts of RunRecord.
class RunFiles final : public exchange::RunRecord {
 public:
  // `run_dir` exists. Files that are there are continued.
  static Result<std::unique_ptr<RunFiles>> open(const std::string& run_dir,
                                                const Trackers& trackers = {},
                                                const exchange::FileLimits& limits = {});

  Result<void> journal(std::span<const exchange::JournalEvent> events,
                       sqlite::Durability durability) override;
  void keep_image(const exchange::RunImage& image) override;
  Result<bool> metrics(const std::string& json_line) override;
  Result<void> take_up(const std::string& yaml) override;
  Result<void> rewind_metrics(StepId checkpoint) override;
  Result<bool> sample(const std::string& json_line) override;
  std::vector<std::string> take_warnings() override { return std::exchange(warnings_, {}); }
  Result<void> name_best(StepId step) override;
  Result<void> result(const std::string& json) override;
  bool has_result() const override;
  Result<exchange::GroupHistory> history() override;

 private:
  // Why the trackers are called: there is a new line of metrics.jsonl, or of samples.jsonl, or the
  // run has ended.
  enum class Told { kMetrics, kSample, kEnd };
  struct KeptTracker {
    std::unique_ptr<Tracker> tracker;
    std::optional<std::uint64_t> unseen = {};  // bytes of lines since its folder was looked at
    bool begun = false;
    bool full = false;  // it is told the end alone
  };

  RunFiles(std::string run_dir, RunJournal journal, BoundedLines metrics, BoundedLines samples,
           std::uint64_t tracker_bytes);
  // Calls `tell` with each tracker that has room for `bytes` more. The log says so where one has
  // none any more, and where one fails, which is given up.
  void tell_trackers(Told what, std::size_t bytes,
                     const std::function<Result<void>(Tracker&)>& tell);
  Result<void> has_room(KeptTracker& kept, std::size_t bytes) const;
  void warn_of(const Tracker& tracker, const Error& error, const std::string& help);

  const std::string run_dir_;
  RunJournal journal_;
  BoundedLines metrics_, samples_;
  const std::uint64_t tracker_bytes_;
  std::vector<KeptTracker> trackers_;  // each until its files are written no more
  bool trackers_ended_ = false;
  std::vector<std::string> warnings_;  // of trackers that were given up, until they are taken
};

}  // namespace tandem::runs
