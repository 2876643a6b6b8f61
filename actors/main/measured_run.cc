// The run has a TANDEM_HOME of its own below the folder for temporary files, so that its directory,
// its cluster and its token lie together and are gone at once.
#include "actors/main/measured_run.h"

#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <system_error>
#include <utility>

#include "actors/job/load_job.h"
#include "actors/main/local_run.h"
#include "runtime/base/file.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

// A folder that TANDEM_HOME names as long as the object is there.
class OwnHome {
 public:
  static Result<OwnHome> make() {
    std::error_code failure;
    const fs::path below = fs::temp_directory_path(failure);
    if (failure)
      return file_error("find the folder for temporary files", "TMPDIR", failure.value());
    std::string made = (below / "tandem-size-XXXXXX").string();
    if (::mkdtemp(made.data()) == nullptr) return file_error("make a folder", made);
    return OwnHome(made);
  }
  OwnHome(OwnHome&& other) noexcept
      : path_(std::exchange(other.path_, {})), before_(std::move(other.before_)) {}
  OwnHome& operator=(OwnHome&&) = delete;
  ~OwnHome() {
    if (path_.empty()) return;
    before_ ? ::setenv(kName, before_->c_str(), 1) : ::unsetenv(kName);
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  const fs::path& path() const { return path_; }
  // The directory of its only run; nullopt where none has begun.
  std::optional<fs::path> run() const {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(path_ / "runs", ignored))
      if (fs::exists(entry.path() / "job.yaml", ignored)) return entry.path();
    return std::nullopt;
  }

 private:
  static constexpr const char* kName = "TANDEM_HOME";
  explicit OwnHome(fs::path path) : path_(std::move(path)) {
    if (const char* const home = std::getenv(kName)) before_ = home;
    ::setenv(kName, path_.c_str(), 1);
  }

  fs::path path_;
  std::optional<std::string> before_;
};

}  // namespace

std::vector<std::string> sets_to_measure(const job::JobSpec& job, std::vector<std::string> sets) {
  for (const char* const set :
       {"data.val_files=[]", "learner.val_before_train=false", "learner.test_freq=0",
        "learner.save_freq=0", "learner.save_every_epochs=null", "learner.save_every_minutes=null",
        "learner.keep_best=null", "save_on_cancel=false", "trackers=[]", "tensorboard=false",
        "record=none"})
    sets.emplace_back(set);
  // A key of an absent section would make it present.
  if (job.warm_start)
    sets.push_back("warm_start.max_steps=" +
                   std::to_string(std::min(job.warm_start->max_steps, kMeasuredWarmStartSteps)));
  if (job.pools.rollout.autoscale) sets.emplace_back("pools.rollout.autoscale=null");
  return sets;
}

Result<MeasuredRun> measure(const MeasureRequest& request, const cli::VerbContext& context) {
  const auto loaded = job::load_job(request.job, request.sets);
  if (!loaded) return loaded.error();
  auto home = OwnHome::make();
  if (!home) return home.error();
  std::ostream nowhere(nullptr);  // for the summary of a run that is about to be removed
  const cli::Console chatter{.out = nowhere, .err = context.console.err, .width = {}};
  chatter.err << "measuring: the job runs here for at most " << request.seconds << " s or "
              << kMeasuredSteps << " steps, without evaluations and checkpoints"
              << (loaded->spec.warm_start ? ", after a short warm start" : "") << "; its files in "
              << home->path().string() << " are removed then" << std::endl;
  RunCommand run{
      .job = request.job,
      .sets = sets_to_measure(loaded->spec, request.sets),
      .bounds = RunBounds{.time = std::chrono::seconds(request.seconds), .steps = kMeasuredSteps}};
  const auto code = run.run({.console = chatter, .verbose = context.verbose});
  if (!code) return code.error();
  if (*code != 0) return MeasuredRun{.code = *code, .rates = {}};
  const auto directory = home->run();
  auto rates = directory ? read_run_rates(context, directory->string())
                         : Result<RunRates>(Error{ErrorCode::kInvalid, "no run was made"});
  if (rates) return MeasuredRun{.rates = *std::move(rates)};
  return Error{ErrorCode::kTimedOut,
               "nothing could be measured within " + std::to_string(request.seconds) +
                   " s: " + rates.error().message,
               request.job.string(), "give it more time by --measure-seconds"};
}

}  // namespace tandem::app
