#include "actors/main/replay_command.h"

#include <algorithm>
#include <csignal>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/cli/api_client.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/table.h"
#include "actors/cli/views.h"
#include "actors/job/resume.h"
#include "actors/main/replay_run.h"
#include "actors/main/step_notice.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/node/signals.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t kStepMax = 1'000'000'000;

std::string steps_text(const ReplayOutcome& outcome, double spent) {
  const std::int64_t trained = outcome.done - outcome.from;
  std::string text = "no step";
  if (trained > 0)
    text = "steps " + std::to_string(outcome.from + 1) + " to " + std::to_string(outcome.done);
  return text + " in " + cli::age(spent);
}

std::string sha_text(const ReplayOutcome& outcome) {
  if (!outcome.expected_sha256) return outcome.weights_sha256;
  const bool equal = *outcome.expected_sha256 == outcome.weights_sha256;
  return outcome.weights_sha256 + (equal ? ", as in the run" : ", not as in the run");
}

std::string table_of(const ReplayOutcome& outcome, double spent, const std::string& dump_file) {
  std::vector<std::vector<std::string>> rows{
      {"replayed", steps_text(outcome, spent)},
      {"weights", outcome.difference ? "differ" : "equal to the run's after each step"},
      {"sha256", sha_text(outcome)}};
  if (outcome.recorded_steps > 0)
    rows.push_back({"record", cli::short_bytes(static_cast<double>(outcome.recorded_bytes)) + ", " +
                                  cli::short_bytes(static_cast<double>(outcome.recorded_bytes) /
                                                   static_cast<double>(outcome.recorded_steps)) +
                                  " a step"});
  if (outcome.dump) rows.push_back({"dump", dump_file});
  for (const std::string& note : outcome.notes) rows.push_back({"note", note});
  const std::string table = cli::render_table({{""}, {""}}, rows, cli::kUnlimitedWidth);
  return table.substr(table.find('\n') + 1);
}

json json_of(const ReplayOutcome& outcome, const fs::path& run_dir, double spent,
             const std::string& dump_file) {
  json difference;
  if (outcome.difference)
    difference = {{"step", outcome.difference->step},
                  {"what", spelling(outcome.difference->what)},
                  {"message", outcome.difference->message}};
  return {{"run_dir", run_dir.string()},
          {"from_step", outcome.from},
          {"to_step", outcome.done},
          {"equal", !outcome.difference.has_value()},
          {"difference", difference},
          {"weights_sha256", outcome.weights_sha256},
          {"expected_sha256", outcome.expected_sha256 ? json(*outcome.expected_sha256) : json()},
          {"recorded_bytes", outcome.recorded_bytes},
          {"recorded_steps", outcome.recorded_steps},
          {"seconds", spent},
          {"notes", outcome.notes},
          {"dump_file", outcome.dump ? json(dump_file) : json()}};
}

Error difference_error(const ReplayOutcome& outcome, const fs::path& run_dir) {
  const ReplayOutcome::Difference& found = *outcome.difference;
  const std::string at =
      found.step == outcome.from && found.what == ReplayDifference::kStart
          ? "the start differs: "
          : "step " + std::to_string(found.step) + " is the first that differs: ";
  std::string help;
  for (const std::string& note : outcome.notes) help += (help.empty() ? "" : "; ") + note;
  return {ErrorCode::kFailed, at + found.message, run_dir.string(), help};
}

Result<int> conclude(const ReplayCommand& command, const ReplayOutcome& outcome,
                     const fs::path& run_dir, double spent, const cli::Console& console) {
  std::string file;
  if (outcome.dump) {
    const std::string usual =
        run_dir.filename().string() + "-step-" + std::to_string(*command.dump_step) + ".json";
    file = command.dump_file.value_or(usual).string();
    if (auto written = write_file_atomic(fs::absolute(file), dump_json(*outcome.dump, 1) + "\n");
        !written)
      return written.error();
  }
  if (command.output == cli::OutputForm::kJson)
    console.out << cli::shown_json(json_of(outcome, run_dir, spent, file)) << "\n" << std::flush;
  else
    console.out << table_of(outcome, spent, file) << std::flush;
  if (outcome.interrupted) return 128 + SIGINT;
  if (!outcome.difference) return 0;
  return console.complain(difference_error(outcome, run_dir));
}

}  // namespace

cli::VerbHelp ReplayCommand::help() {
  return {.name = "replay",
          .group = cli::VerbGroup::kLook,
          .description = "Train a recorded run again, and compare each step's weights",
          .examples = {"tandem replay arithmetic-grpo-1",
                       "tandem replay arithmetic-grpo-1 --to-step 100",
                       "tandem replay ~/.tandem/runs/arithmetic-grpo-1 --dump-step 17"}};
}

void ReplayCommand::options(cli::Options& options) {
  options.add("RUN", named, "A run directory, or the id of a run, of a job with `record: replay`")
      .required()
      .offers("runs");
  options
      .add("--from-step", from_step,
           "Begin with the run's checkpoint of this step; else with the model and the warm start")
      .value("N")
      .between(std::int64_t{0}, kStepMax);
  options
      .add("--to-step", to_step, "The last step, as metrics.jsonl counts them; else the run's last")
      .value("N")
      .between(std::int64_t{0}, kStepMax);
  options
      .add("--dump-step", dump_step,
           "Write the batch of this step as JSON, with tokens, log-probabilities, advantages and "
           "losses, and stop there unless --to-step is given")
      .value("N")
      .between(std::int64_t{1}, kStepMax);
  options.add("--dump-file", dump_file, "Where --dump-step writes to; else RUN-step-N.json")
      .value("FILE");
  using enum cli::OutputForm;
  add_output(options, output, {kTable, kJson});
}

Result<int> ReplayCommand::run(const cli::VerbContext& context) {
  const auto run_dir = job::find_run(named, cli::tandem_home() / "runs");
  if (!run_dir || !job::has_begun(*run_dir))
    return Error{ErrorCode::kNotFound,
                 "this is no run directory, and no id of a run that has trained", named.string(),
                 "`tandem get runs` lists the runs"};
  node::Signals signals({SIGINT, SIGTERM});
  init_logging("tandem", context.verbose ? LogLevel::kInfo : LogLevel::kWarnings);
  StepNotice notice(context.console);
  const Time began = steady_now();
  const auto outcome = replay_run(
      {.run_dir = *run_dir, .from = from_step.value_or(0), .to = to_step, .dump = dump_step},
      [&](std::int64_t done, std::int64_t of) {
        if (done == from_step.value_or(0)) notice.begin(done);
        notice.show(done, of);
        return signals.wait_for(Duration::zero()) == 0;
      });
  notice.erase();
  if (!outcome) return outcome.error();
  return conclude(*this, *outcome, *run_dir, seconds(steady_now() - began), context.console);
}

}  // namespace tandem::app
