#include <chrono>
#include <cstdint>
#include <filesystem>
#include <ostream>

#include "actors/cli/api_object.h"
#include "actors/cli/cells.h"
#include "actors/cli/job_progress.h"
#include "actors/cli/job_watch.h"
#include "actors/cli/progress_display.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/submission.h"
#include "actors/cli/sweep.h"
#include "actors/cli/verb.h"
#include "actors/cli/views.h"
#include "actors/job/load_job.h"
#include "actors/job/print_job.h"
#include "actors/job/resume.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr std::uint64_t kDataBytesLarge = 200'000'000;  // read in some seconds

struct Submit {
  static VerbHelp help() {
    return {.name = "submit",
            .group = VerbGroup::kRun,
            .description = "Submit a job to the running cluster",
            .examples = {"tandem submit configs/arithmetic.yaml",
                         "tandem submit job.yaml --set seed=3 --wait",
                         "tandem submit job.yaml --sweep seed=1,2,3",
                         "tandem submit --resume arithmetic-grpo-1"}};
  }

  void options(Options& options) {
    add_job_file(options, job, resume, sets);
    add_sweep(options, sets, sweeps, resume, given);
    options.flag("--wait", wait, "Return when the job has ended, with its exit code");
    using enum OutputForm;
    add_output(options, output, {kTable, kJson, kYaml, kName});
  }

  static AnsweredBy answered_by() { return AnsweredBy::kController; }
  Result<void> carry_out(Client& client) const;
  // Returns the answer to the submission, after it has been told.
  Result<json> submit_one(Client& client, const job::LoadedJob& loaded,
                          const std::optional<std::filesystem::path>& run) const;
  Result<void> wait_for(Client& client, const json& answer) const;

  std::optional<std::filesystem::path> job;     // nullopt: the job.yaml of the run `resume`
  std::optional<std::filesystem::path> resume;  // a run directory, or a run's id
  std::vector<std::string> sets, sweeps;        // as they are given
  Settings given;                               // what they mean
  bool wait = false;
  OutputForm output = OutputForm::kTable;
};

// An accepted job that waits for room is no failure: prints a note, and returns an empty error with
// the exit code by which a script knows.
Error queued(Client& client, const std::string& id, const std::string& message) {
  client.console.err << "note: accepted but not placed: " << message
                     << "\n  help: it starts when there is room; `tandem why " << id
                     << "` says what it needs\n";
  return {ErrorCode::kInfeasible, "", "", ""};
}

// The controller reads all data of a job before it answers. Whoever waits for that is told why.
void tell_of_large_data(const job::JobSpec& job, std::ostream& err) {
  std::uint64_t bytes = 0;
  for (const auto& file : job.data.train_files) {
    std::error_code unknown;
    const std::uint64_t size = std::filesystem::file_size(file, unknown);
    if (!unknown) bytes += size;
  }
  if (bytes >= kDataBytesLarge)
    err << "note: the controller reads " << bytes / 1'000'000 << " MB of data before it answers"
        << std::endl;
}

Result<json> Submit::submit_one(Client& client, const job::LoadedJob& loaded,
                                const std::optional<std::filesystem::path>& run) const {
  for (const std::string& warning : loaded.warnings)
    client.console.err << "warning: " << warning << "\n";
  tell_of_large_data(loaded.spec, client.console.err);
  const ApiClient patient(client.api.address(), kSubmitTimeout);
  auto answer = patient.post(submit_path(run), job::print_job(loaded.spec));
  if (!answer) return answer;
  for (const json& warning : answer->value("warnings", json::array()))
    client.console.err << "warning: " << (warning.is_string() ? warning.get<std::string>() : "")
                       << "\n";
  if (output == OutputForm::kTable)
    client.console.out << field(*answer, "id") << std::endl;
  else
    client.console.out << render_item(Kind::kJobs, *answer, output, screen_of(client))
                       << std::flush;
  return answer;
}

Result<void> Submit::wait_for(Client& client, const json& answer) const {
  const std::string id = field(answer, "id");
  const bool waits_for_room = field(answer, "state") == "Queued";
  if (!wait) {
    // Without --wait only a note says how to follow it: stdout has the id alone, for scripts.
    client.console.err << "submitted; `tandem get jobs " << id << " -w` follows it\n";
    if (waits_for_room) return queued(client, id, field(answer, "message"));
    return {};
  }
  if (waits_for_room) (void)queued(client, id, field(answer, "message"));
  ProgressDisplay display(client.console.out, client.console.err, client.console.terminal,
                          client.console.width);
  ApiClient watching = client.api;
  watching.tell_of_wait([&] {
    display.erase();
    client.console.err << kControllerIsAway << std::endl;
  });
  Client watcher{.api = watching, .console = client.console};
  auto end = watch_job(watcher, id, [&](const json& now) {
    display.show(now, steady_now(), has_ended(now));
    return has_ended(now);
  });
  display.erase();
  if (!end) return end.error();
  if (end->value("began", true))
    if (const auto ended = client.api.get("/runs/" + url_escape(id)))
      if (const json& result = cells::at(*ended, {"result"}); result.is_object())
        client.console.err << final_summary(*end, result) << std::flush;  // stdout has the id
  return outcome_of(*end);
}

// Files are read and checked here, with paths made absolute; the controller gets effective jobs. A
// sweep is checked whole before its first job is submitted.
Result<void> Submit::carry_out(Client& client) const {
  std::optional<std::filesystem::path> run;
  if (resume) {
    auto found = job::find_run(*resume, tandem_home() / "runs");
    if (!found) return found.error();
    run = std::move(*found);
  }
  const auto jobs = load_sweep(job, run, given, sweep_time(unix_ms()));
  if (!jobs) return jobs.error();
  std::vector<json> answers;
  for (const job::LoadedJob& loaded : *jobs) {
    auto answer = submit_one(client, loaded, run);
    if (!answer) return answer.error();
    answers.push_back(std::move(*answer));
  }
  if (!given.sweeps.empty())
    client.console.err << "a sweep of " << jobs->size() << " runs; `tandem get runs --group "
                       << jobs->front().spec.tracking.group.value_or("") << "` lists them\n";
  // The exit code is that of the first run that has one.
  Result<void> outcome;
  for (const json& answer : answers)
    if (auto ended = wait_for(client, answer); !ended && outcome) outcome = std::move(ended);
  return outcome;
}

}  // namespace

Verb submit_verb() { return make_verb<Submit>(); }

}  // namespace tandem::cli
