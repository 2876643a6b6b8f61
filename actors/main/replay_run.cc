// The journal says what each step was trained on and what came of it, the record has the tokens.
// Where the job file of the record changes from one step to the next, the run was resumed with
// other settings: then a checkpoint is written and loaded by a trainer with the new ones, as in the
// run.
#include "actors/main/replay_run.h"

#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include "actors/job/load_job.h"
#include "actors/job/resume.h"
#include "actors/learner/train_batch.h"
#include "actors/main/replay_gang.h"
#include "actors/replay/difference.h"
#include "actors/replay/journal_steps.h"
#include "actors/replay/step_dump.h"
#include "actors/runs/batch_log.h"
#include "actors/runs/run_journal.h"
#include "runtime/base/digest.h"
#include "runtime/base/file.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using replay::JournalSteps;

constexpr const char* kRecordHelp =
    "`record: replay` in the job file, or `--set record=replay`, makes a run keep its batches";

// A folder for the checkpoints of a replay, removed with the object.
class Scratch {
 public:
  static Result<std::unique_ptr<Scratch>> make() {
    std::error_code failed;
    std::string path = (fs::temp_directory_path(failed) / "tandem-replay-XXXXXX").string();
    if (failed || ::mkdtemp(path.data()) == nullptr) return file_error("make a folder", path);
    return std::make_unique<Scratch>(path);
  }
  explicit Scratch(fs::path path) : path_(std::move(path)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code unused;
    fs::remove_all(path_, unused);
  }
  const fs::path& path() const { return path_; }

 private:
  const fs::path path_;
};

std::string step_text(std::int64_t step) { return "step " + std::to_string(step); }

class Replay {
 public:
  Replay(const ReplayRequest& request, JournalSteps journal, runs::BatchLogReader log,
         std::unique_ptr<Scratch> scratch)
      : request_(request),
        journal_(std::move(journal)),
        log_(std::move(log)),
        scratch_(std::move(scratch)) {}

  using GoesOn = std::function<bool(std::int64_t done, std::int64_t of)>;
  Result<ReplayOutcome> run(const GoesOn& goes_on) {
    if (auto range = find_range(); !range) return range.error();
    if (auto begun = begin(goes_on); !begun) return begun.error();
    while (!ended() && outcome_.done < to_) {
      if (!goes_on(outcome_.done, to_)) {
        outcome_.interrupted = true;
        break;
      }
      if (auto trained = step(); !trained) return trained.error();
    }
    goes_on(outcome_.done, to_);
    outcome_.weights_sha256 = gang_->leader().weights_sha256();
    if (const auto kept = journal_.digests().find(StepId{outcome_.done});
        kept != journal_.digests().end())
      outcome_.expected_sha256 = kept->second;
    return std::move(outcome_);
  }

 private:
  bool ended() const { return outcome_.difference.has_value() || outcome_.interrupted; }

  std::int64_t steps_of_run() const {
    return journal_.steps().empty() ? 0 : journal_.steps().rbegin()->first.value + 1;
  }

  Error invalid(std::string message, std::string help = "") const {
    return {ErrorCode::kInvalid, std::move(message), request_.run_dir.string(), std::move(help)};
  }

  Result<void> find_range() {
    const std::int64_t last = steps_of_run();
    to_ = request_.to.value_or(request_.dump.value_or(last));
    const std::int64_t wanted = std::max(to_, request_.dump.value_or(0));
    if (wanted > last)
      return invalid("the run has trained " + std::to_string(last) + " steps, not " +
                     std::to_string(wanted));
    if (request_.from > to_ || (request_.dump && *request_.dump <= request_.from))
      return invalid("the replay begins behind " + step_text(request_.from));
    if (request_.dump && *request_.dump > to_)
      return invalid(step_text(*request_.dump) + " is not replayed: --to-step is " +
                     std::to_string(to_));
    const auto first = log_.first();
    if (!first)
      return Error{ErrorCode::kNotFound, "the run has recorded no batch", request_.run_dir.string(),
                   kRecordHelp};
    const StepId told = last > 0 ? journal_.steps().begin()->first : *first;
    const StepId begin = std::max(*first, told);
    if (request_.from < begin.value) {
      const std::vector<std::int64_t> kept = job::checkpoints_of(request_.run_dir);
      const auto checkpoint = std::ranges::lower_bound(kept, begin.value);
      const bool none = checkpoint == kept.end() || *checkpoint >= last;  // no batch comes behind
      return Error{ErrorCode::kNotFound,
                   (told > *first ? "the journal has the scores (retention.archive_bytes)"
                                  : std::string("batches are recorded")) +
                       " from " + step_text(begin.value + 1) + " on",
                   request_.run_dir.string(),
                   none ? "no checkpoint is kept from which a replay could begin"
                        : "--from-step " + std::to_string(*checkpoint) +
                              " begins with the first checkpoint from there on"};
    }
    outcome_.from = outcome_.done = request_.from;
    outcome_.recorded_bytes = log_.bytes();
    outcome_.recorded_steps = log_.steps();
    return {};
  }

  // The weights that the replay begins with, and whether they are those of the run.
  Result<void> begin(const GoesOn& goes_on) {
    const runs::RecordedJob* job =
        request_.from == 0 ? log_.first_job() : log_.job_of(StepId{request_.from});
    if (!job) return invalid("the record does not say by which job it was trained");
    std::optional<fs::path> checkpoint;
    if (request_.from > 0) {
      checkpoint = request_.run_dir / "checkpoints" / ("step-" + std::to_string(request_.from));
      std::error_code unused;
      if (!fs::is_directory(*checkpoint, unused))
        return Error{ErrorCode::kNotFound, "the run does not keep that checkpoint",
                     checkpoint->string(), "`ls " + checkpoint->parent_path().string() + "`"};
    }
    if (auto made = make_gang(*job, checkpoint); !made) return made;
    if (checkpoint) {
      const auto before = journal_.steps().find(StepId{request_.from - 1});
      if (before != journal_.steps().end())
        compare_start(before->second.checksum, "the checkpoint has other weights than the run had");
      return {};
    }
    compare_start(journal_.checksum(kInitialWeights),
                  "the model's weights are other ones than the run began with; was `model.path` "
                  "changed?");
    return warm_start(goes_on);
  }

  Result<void> warm_start(const GoesOn& goes_on) {
    for (bool done = ended(); !done;) {
      const auto slice = gang_->leader().warm_start();
      if (!slice) return slice.error();
      done = slice->done;
      if (!done && !goes_on(0, to_)) outcome_.interrupted = done = true;
    }
    if (!ended())
      compare_start(
          journal_.checksum(PolicyVersion{0}),
          "the warm start ends in other weights than in the run; were its files changed?");
    return {};
  }

  void compare_start(std::optional<std::uint64_t> expected, const char* message) {
    if (expected && checksum64(gang_->leader().weights()) != *expected)
      outcome_.difference = {request_.from, ReplayDifference::kStart, message};
  }

  // A trainer by this job, which goes on from the checkpoint.
  Result<void> make_gang(const runs::RecordedJob& job, std::optional<fs::path> checkpoint) {
    auto parsed = job::parse_job_of_run(job.yaml, request_.run_dir);
    if (!parsed) return parsed.error();
    gang_.reset();  // its memory first
    auto made = ReplayGang::make(*parsed, {scratch_->path(), std::move(checkpoint)});
    if (!made) return made.error();
    gang_ = *std::move(made);
    const auto restored = gang_->leader().restore();
    if (!restored) return restored.error();
    job_ = job;
    if (job.device != gang_->device())
      note("it was recorded on " + job.device + ", and this is " + gang_->device());
    if (job.version != TANDEM_VERSION)
      note("it was recorded by tandem " + job.version + ", and this is " + TANDEM_VERSION);
    return {};
  }

  void note(std::string text) {
    if (std::ranges::find(outcome_.notes, text) == outcome_.notes.end())
      outcome_.notes.push_back(std::move(text));
  }

  // The run went on by another job from this step on.
  Result<void> change_job(const runs::RecordedJob& job) {
    const auto saved = gang_->leader().save();
    if (!saved) return saved.error();
    return make_gang(job, saved->directory);
  }

  Result<void> step() {
    const StepId at{outcome_.done};
    const auto told = journal_.steps().find(at);
    if (told == journal_.steps().end())
      return invalid("the journal lacks " + step_text(at.value + 1));
    auto recorded = log_.read(at);
    if (!recorded) return recorded.error();
    if (const runs::RecordedJob* job = log_.job_of(at); job && job->yaml != job_.yaml)
      if (auto changed = change_job(*job); !changed) return changed;
    const bool dumps = request_.dump == at.value + 1;
    if (auto found = replay::difference(told->second, *recorded)) {
      outcome_.difference = {at.value + 1, ReplayDifference::kBatch, *std::move(found)};
      if (!dumps) return {};
    }
    return train(told->second, *recorded, dumps);
  }

  Result<void> train(const replay::JournalStep& told, const runs::RecordedBatch& recorded,
                     bool dumps) {
    const auto batch = learner::make_train_batch(recorded.step, recorded.payloads);
    if (!batch) return batch.error();
    std::uint64_t checksum = 0;
    if (dumps) {
      const auto watched = gang_->train_watched(*batch);
      if (!watched) return watched.error();
      checksum = watched->trained.checksum;
      auto dumped =
          replay::step_json({recorded, watched->trained.report, watched->tokens, checksum});
      if (!dumped) return dumped.error();
      outcome_.dump = *std::move(dumped);
    } else {
      const auto trained = gang_->leader().train(*batch);
      if (!trained) return trained.error();
      checksum = trained->checksum;
    }
    ++outcome_.done;
    compare_weights(told, checksum);
    return {};
  }

  void compare_weights(const replay::JournalStep& told, std::uint64_t checksum) {
    if (outcome_.difference) return;
    if (checksum != told.checksum) {
      outcome_.difference = {outcome_.done, ReplayDifference::kWeights,
                             "the batch is the one that the run trained, and the weights become "
                             "other ones: checksum " +
                                 std::to_string(checksum) + ", in the journal " +
                                 std::to_string(told.checksum)};
      return;
    }
    const auto kept = journal_.digests().find(StepId{outcome_.done});
    if (kept == journal_.digests().end()) return;
    const std::string digest = gang_->leader().weights_sha256();
    if (digest != kept->second)
      outcome_.difference = {outcome_.done, ReplayDifference::kWeights,
                             "the checkpoint of this step had weights_sha256 " + kept->second +
                                 ", and here it is " + digest};
  }

  const ReplayRequest request_;
  const JournalSteps journal_;
  const runs::BatchLogReader log_;
  const std::unique_ptr<Scratch> scratch_;
  std::int64_t to_ = 0;
  runs::RecordedJob job_;  // that gang_ was made by
  std::unique_ptr<ReplayGang> gang_;
  ReplayOutcome outcome_;
};

}  // namespace

Result<ReplayOutcome> replay_run(const ReplayRequest& request,
                                 const std::function<bool(std::int64_t, std::int64_t)>& goes_on) {
  auto log = runs::BatchLogReader::open(request.run_dir);
  if (!log && log.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound, "the run has recorded no batches", request.run_dir.string(),
                 kRecordHelp};
  if (!log) return log.error();
  const auto journal = runs::RunJournal::open_to_read(request.run_dir.string());
  if (!journal) return journal.error();
  JournalSteps steps;
  const auto read =
      journal->read([&](const exchange::JournalEntry& entry) { steps.take(entry.event); });
  if (!read) return read.error();
  auto scratch = Scratch::make();
  if (!scratch) return scratch.error();
  return Replay(request, std::move(steps), *std::move(log), *std::move(scratch)).run(goes_on);
}

}  // namespace tandem::app
