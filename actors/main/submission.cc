#include "actors/main/submission.h"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "actors/exchange/run_replay.h"
#include "actors/job/load_job.h"
#include "actors/job/reading_notice.h"
#include "actors/job/resume.h"
#include "actors/main/exchange_host.h"
#include "actors/main/job_inputs.h"
#include "actors/main/job_shape.h"
#include "actors/main/roles/role_config.h"
#include "actors/runs/run_journal.h"
#include "runtime/base/log.h"
#include "runtime/payload/segment_store.h"

namespace tandem::app {

namespace fs = std::filesystem;

Result<controller::JobShape> submitted_shape(const api::SubmittedJob& submitted,
                                             const fs::path& runs, Hosts hosts,
                                             KeptPrompts& prompts, KeepPrompts keep,
                                             const std::optional<scheduler::Pricing>& pricing) {
  const std::string& resume = submitted.resume;
  const fs::path folder = submitted.folder.empty() ? fs::current_path() : submitted.folder;
  auto job = job::parse_job({.yaml = submitted.yaml,
                             .origin = "the submitted job",
                             .base = folder,
                             .set_base = folder,
                             .sets = {},
                             .files = job::Files::kMustExist});
  if (!job) return job.error();
  add_pricing(pricing, job->spec);
  auto checked = check_inputs(*job, job::tell_by([](const std::string& notice) {
    log::info("event=reading_data of=submitted progress=\"{}\"", notice);
  }),
                              keep);
  if (!checked) return checked.error();
  controller::JobShape shape = job_shape(job->spec);
  if (checked->model) add_memory_plan(job->spec, *checked->model, hosts, shape);
  if (checked->prompts) prompts.keep(*std::move(checked->prompts), shape);
  shape.warnings = std::move(checked->warnings);
  if (resume.empty()) return shape;
  const auto run = job::find_run(runs / resume, runs);
  if (!run) {
    Error unknown = run.error();
    unknown.code = ErrorCode::kNotFound;  // over HTTP a name of nothing is 404
    return unknown;
  }
  std::error_code failure;
  if (run->parent_path() != fs::canonical(runs, failure))
    return Error{
        ErrorCode::kInvalid, "this run is not one of this controller's", run->string(),
        "its runs are in " + runs.string() + "; elsewhere: " + job::resume_command("run", *run)};
  const auto changes = check_run_to_resume(job->spec, *run);
  if (!changes) return changes.error();
  shape.warnings.insert(shape.warnings.end(), changes->begin(), changes->end());
  resume_from(*run, shape);
  return shape;
}

void add_pricing(const std::optional<scheduler::Pricing>& of_cluster, job::JobSpec& job) {
  if (job::trains(job) && !job.pricing) job.pricing = of_cluster;
}

namespace {

// Whether the payloads of all groups are there whole; after a power cut they may not be.
bool has_payloads(const exchange::RunFacts& facts, const fs::path& run_dir) {
  const auto store = payload::open_file_segments(run_dir / "payload", {});
  if (!store) return false;
  return std::ranges::all_of(facts.flow.entries, [&](const auto& entry) {
    return !entry.second.header || has_whole(**store, entry.second.header->payload);
  });
}

// Whether the run began with the settings that its job has: events depend on them.
bool is_of(const exchange::RunBegan& began, const job::JobSpec& spec) {
  return began.budget == budget_of(spec) && began.fixed_lag == has_fixed_lag(spec);
}

}  // namespace

NextExchange next_exchange(const controller::JobShape& shape, const fs::path& run_dir,
                           std::int64_t earlier_rows) {
  if (!trains(shape)) return {};
  if (!job::has_begun(run_dir)) return {.follows = true};
  const auto last_row = runs::RunJournal::last_row_of(run_dir.string());
  if (!last_row) return {.earlier_rows = earlier_rows};
  // A power cut has taken rows, and with them perhaps an attempt that has told actors things. The
  // next one takes their numbers.
  if (*last_row < earlier_rows) return {.earlier_rows = *last_row};
  // An exchange's first event is the beginning of its attempt.
  if (*last_row == earlier_rows) return {.follows = true, .earlier_rows = earlier_rows};
  const auto journal = runs::RunJournal::open_to_read(run_dir.string());
  if (!journal) return {.earlier_rows = earlier_rows};
  const NextExchange another{.earlier_rows = *last_row};
  exchange::RunReplay run;
  const auto read = journal->read_from_image(
      [&run](const exchange::RunImage& image) { run = exchange::RunReplay(image); },
      [&run](const exchange::JournalEntry& entry) { run.take(entry); });
  const auto whole = run.replay().contradiction();
  if (!whole)
    log::error("event=journal_contradicts run={} where=\"{}\" message=\"{}\"", run_dir.string(),
               whole.error().where, whole.error().message);
  if (!read || !whole || !is_of(run.facts().began, *shape.spec)) return another;
  const exchange::RunStage stage = run.facts().stage;
  if (stage != exchange::RunStage::kEnded && !has_payloads(run.facts(), run_dir)) return another;
  exchange::Predecessor before = run.predecessor();
  if (stage == exchange::RunStage::kStarting || stage == exchange::RunStage::kEnded) {
    const auto earlier = journal->has_earlier_attempt();
    if (!earlier) return another;
    before.has_earlier_attempt = *earlier;
  }
  return {.follows = true, .earlier_rows = earlier_rows, .before = std::move(before)};
}

// A `tandem run` may have resumed a run that lies elsewhere than the others.
controller::TakeUp jobs_to_take_up(const controller::DurableState& remembered, Hosts hosts,
                                   KeptPrompts& prompts, Predecessors& predecessors) {
  controller::TakeUp taken;
  for (controller::JobTaken job : remembered.jobs()) {
    const fs::path run_dir = job.run_dir;
    const bool begun = job::has_begun(run_dir);
    auto shape = submitted_shape({.yaml = job.yaml,
                                  .resume = begun ? run_dir.filename().string() : "",
                                  .folder = job.run_dir},
                                 run_dir.parent_path(), hosts, prompts, KeepPrompts::kYes);
    // A job of actors alone has no journal; its actors start again in its run directory.
    if (shape && !begun && !trains(*shape)) shape->resume_dir = job.run_dir;
    if (shape) prompts.accept(*shape);
    NextExchange next;
    if (shape && !remembered.outcome(job.job)) {
      next = next_exchange(*shape, run_dir, job.earlier.rows);
      job.earlier.rows = next.earlier_rows;
    }
    if (next.before) predecessors.insert_or_assign(job.job, *std::move(next.before));
    taken.jobs.push_back({std::move(job), std::move(shape), next.follows});
  }
  return taken;
}

}  // namespace tandem::app
