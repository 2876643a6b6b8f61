// Appended files are flushed line by line, so that at most the last line can be torn. Files that
// are replaced are written under another name and renamed. A former file gets a second name before
// its first one is taken away, so that a crash at any point loses no file.
#include "actors/runs/run_files.h"

#include <filesystem>
#include <functional>
#include <utility>

#include "actors/runs/metrics_line.h"
#include "actors/runs/tensorboard.h"
#include "actors/runs/wandb.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"

namespace tandem::runs {
namespace {

Error with_help(Error error) {
  error.help = "is the disk full, or the folder not writable?";
  return error;
}

// Gives a file of an earlier incarnation of the run a second name with the first free number,
// before another file takes its place: a crash between the two loses neither.
Result<void> number_former(const std::string& path) {
  std::error_code failure;
  for (int n = 1;; ++n) {
    std::filesystem::create_hard_link(path, path + "." + std::to_string(n), failure);
    if (!failure) return {};
    if (failure != std::errc::file_exists)
      return Error{ErrorCode::kFailed, "cannot keep the former file: " + failure.message(), path,
                   "is the disk full, or the folder not writable?"};
  }
}

// Keeps the result of an earlier incarnation under a number only. It must not be read as the result
// of this one, which may be killed before it has any. The outcome of a resume that led to nothing
// goes, since the run goes on now.
Result<void> set_result_aside(const std::string& run_dir) {
  const std::string path = run_dir + "/result.json";
  std::error_code failure;
  std::filesystem::remove(run_dir + "/" + kResumeFile, failure);
  if (failure)
    return Error{ErrorCode::kFailed, "cannot remove the outcome of a resume: " + failure.message(),
                 run_dir + "/" + kResumeFile, "is the folder writable?"};
  if (!std::filesystem::exists(path, failure)) return {};
  if (const auto numbered = number_former(path); !numbered) return numbered;
  if (std::filesystem::remove(path, failure)) return {};
  return Error{ErrorCode::kFailed, "cannot remove the former file: " + failure.message(), path, {}};
}

}  // namespace

Result<std::unique_ptr<RunFiles>> RunFiles::open(const std::string& run_dir,
                                                 const Trackers& trackers,
                                                 const exchange::FileLimits& limits) {
  auto journal = RunJournal::open(run_dir, limits);
  if (!journal) return journal.error();
  auto metrics =
      BoundedLines::open(run_dir + "/metrics.jsonl", Retention::kThin, limits.metrics_bytes);
  if (!metrics) return with_help(metrics.error());
  auto samples =
      BoundedLines::open(run_dir + "/samples.jsonl", Retention::kDropOldest, limits.samples_bytes);
  if (!samples) return with_help(samples.error());
  auto files =
      std::unique_ptr<RunFiles>(new RunFiles(run_dir, *std::move(journal), *std::move(metrics),
                                             *std::move(samples), limits.tracker_bytes));
  if (trackers.tensorboard)
    files->trackers_.push_back({std::make_unique<TensorboardWriter>(run_dir)});
  if (trackers.wandb)
    files->trackers_.push_back({std::make_unique<WandbWriter>(run_dir, *trackers.wandb)});
  return files;
}

RunFiles::RunFiles(std::string run_dir, RunJournal journal, BoundedLines metrics,
                   BoundedLines samples, std::uint64_t tracker_bytes)
    : run_dir_(std::move(run_dir)),
      journal_(std::move(journal)),
      metrics_(std::move(metrics)),
      samples_(std::move(samples)),
      tracker_bytes_(tracker_bytes) {}

Result<void> RunFiles::journal(std::span<const exchange::JournalEvent> events,
                               sqlite::Durability durability) {
  return journal_.append(events, unix_ms(), durability);
}

void RunFiles::keep_image(const exchange::RunImage& image) {
  const auto kept = journal_.keep_image(image);
  if (kept) return;
  const Error& error = kept.error();
  log::warn("event=image_not_kept file=\"{}\" message=\"{}\"", error.where, error.message);
}

Result<bool> RunFiles::metrics(const std::string& json_line) {
  const auto kept = metrics_.append(json_line);
  if (!kept) return with_help(kept.error());
  tell_trackers(Told::kMetrics, json_line.size(),
                [&](Tracker& tracker) { return tracker.add(json_line); });
  return *kept;
}

// A line takes about as many bytes in a tracker's files as it has itself. So the folder is measured
// only now and then, and a tracker is full while there is still room for the lines until the next
// time.
Result<void> RunFiles::has_room(KeptTracker& kept, std::size_t bytes) const {
  const std::uint64_t between = tracker_bytes_ / 64;
  if (kept.unseen && (*kept.unseen += bytes) < between) return {};
  kept.unseen = 0;
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(run_dir_) / kept.tracker->name();
  std::uint64_t taken = 0;
  std::error_code ignored;  // a folder that cannot be read fails in the tracker itself
  for (fs::recursive_directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    std::error_code no_file;
    const auto size = at->is_regular_file(no_file) ? at->file_size(no_file) : 0;
    if (!no_file) taken += size;
  }
  if (taken + between <= tracker_bytes_) return {};
  return Error{
      ErrorCode::kFailed,
      "they have reached " + std::to_string(tracker_bytes_) + " bytes (retention.tracker_bytes)",
      folder.string(), ""};
}

void RunFiles::tell_trackers(Told what, std::size_t bytes,
                             const std::function<Result<void>(Tracker&)>& tell) {
  std::erase_if(trackers_, [&](KeptTracker& kept) {
    if (what != Told::kEnd) {
      if (kept.full) return false;
      if (const auto room = has_room(kept, bytes); !room) {
        kept.full = true;
        warn_of(*kept.tracker, room.error(),
                "metrics.jsonl goes on; a resume with a larger limit writes the lines of it that "
                "are missing");
        return false;
      }
    }
    const auto told = tell(*kept.tracker);
    if (told) {
      // The first line brought those along that earlier incarnations did not write.
      if (what == Told::kMetrics && !std::exchange(kept.begun, true)) kept.unseen.reset();
      return false;
    }
    const Error& error = told.error();
    warn_of(*kept.tracker, error,
            (error.help.empty() ? "" : error.help + "; ") +
                "metrics.jsonl goes on, and a resumed run writes what is missing");
    return true;
  });
}

void RunFiles::warn_of(const Tracker& tracker, const Error& error, const std::string& help) {
  const std::string name(tracker.name());
  log::warn(
      "event={}_stopped file=\"{}\" message=\"the files of {} are written no more: {}\" "
      "help=\"{}\"",
      name, error.where, name, error.message, help);
  warnings_.push_back("the files of the tracker " + name +
                      " are written no more: " + error.message + " (" + error.where + "); " + help);
}

Result<void> RunFiles::take_up(const std::string& yaml) { return take_up_run(run_dir_, yaml); }

Result<void> take_up_run(const std::string& run_dir, const std::string& yaml) {
  if (const auto aside = set_result_aside(run_dir); !aside) return aside;
  const std::string path = run_dir + "/job.yaml";
  const auto former = read_file(path);
  // The same job file again needs no number.
  if (former && *former == yaml) return {};
  if (former)
    if (const auto numbered = number_former(path); !numbered) return numbered;
  return write_file_atomic(path, yaml);
}

// A line of step s is written when s steps are committed, so that of the checkpoint's step stays.
Result<void> RunFiles::rewind_metrics(StepId checkpoint) {
  MetricsLine read;
  return metrics_.rewrite([&](std::uint64_t, std::string_view line) {
    return read_metrics_line(line, read) && read.step <= checkpoint.value;
  });
}

Result<bool> RunFiles::sample(const std::string& json_line) {
  const auto kept = samples_.append(json_line);
  if (!kept) return with_help(kept.error());
  tell_trackers(Told::kSample, json_line.size(),
                [&](Tracker& tracker) { return tracker.sample(json_line); });
  return *kept;
}

// The link is made aside and renamed, so that a reader finds the former or the new one. A
// checkpoint that is not there was removed under another key; the link would lead nowhere.
Result<void> RunFiles::name_best(StepId step) {
  namespace fs = std::filesystem;
  const fs::path link = fs::path(run_dir_) / "checkpoints" / "best";
  const fs::path aside = fs::path(run_dir_) / "checkpoints" / "best.new";
  const std::string name = "step-" + std::to_string(step.value);
  std::error_code failed;
  fs::remove(aside, failed);
  if (!fs::is_directory(link.parent_path() / name, failed)) {
    log::warn(
        "event=best_checkpoint_gone step={} message=\"it was removed before it was the best "
        "by learner.keep_best\"",
        step.value);
    fs::remove(link, failed);
    return {};
  }
  fs::create_directory_symlink(name, aside, failed);
  if (!failed) fs::rename(aside, link, failed);
  if (!failed) return {};
  return Error{ErrorCode::kFailed, "cannot name the best checkpoint: " + failed.message(),
               link.string(), "is the folder writable?", failed.value()};
}

Result<void> RunFiles::result(const std::string& text) {
  if (!std::exchange(trackers_ended_, true))
    tell_trackers(Told::kEnd, 0, [&](Tracker& tracker) { return tracker.end(text); });
  return write_file_atomic(run_dir_ + "/result.json", text + "\n");
}

// One of an attempt before is set aside once the run is taken up.
bool RunFiles::has_result() const {
  std::error_code none;
  return std::filesystem::exists(run_dir_ + "/result.json", none);
}

Result<exchange::GroupHistory> RunFiles::history() { return journal_.history(); }

}  // namespace tandem::runs
