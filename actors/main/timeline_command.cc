// The journal is read twice: a survey finds the times of the bounds, then the timeline makes the
// events, which go to the output in pieces. A file takes its place when it is whole.
#include "actors/main/timeline_command.h"

#include <charconv>
#include <csignal>
#include <functional>
#include <limits>
#include <ostream>
#include <string_view>
#include <utility>

#include "actors/cli/api_client.h"
#include "actors/cli/arguments.h"
#include "actors/cli/table.h"
#include "actors/job/resume.h"
#include "actors/runs/run_journal.h"
#include "actors/timeline/metrics_cursor.h"
#include "actors/timeline/timeline.h"
#include "runtime/base/json.h"
#include "runtime/base/replacing_file.h"
#include "runtime/node/signals.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// The text of a trace, handed on in pieces. After an error everything else is dropped.
class TraceText {
 public:
  using Write = std::function<Result<void>(std::string_view piece)>;
  TraceText(const nlohmann::json& about, Write write) : write_(std::move(write)) {
    piece_ = R"({"displayTimeUnit":"ms","otherData":)" + dump_json(about) + R"(,"traceEvents":[)";
  }

  void add(const timeline::TraceEvent& event) {
    piece_ += events_++ == 0 ? "\n" : ",\n";
    append_json(event, piece_);
    if (piece_.size() >= kPieceBytes) flush();
  }
  Result<void> end() {
    piece_ += "\n]}\n";
    flush();
    return written_;
  }
  bool failed() const { return !written_; }

 private:
  void flush() {
    if (written_) written_ = write_(piece_);
    piece_.clear();
  }

  const Write write_;
  std::string piece_;
  std::uint64_t events_ = 0;
  Result<void> written_;
};

struct Trace {
  std::uint64_t events = 0;
  std::int64_t last_step = 0, leases_not_shown = 0;
  bool is_full = false, interrupted = false;
};

// Whether the whole run is asked for, whose trace has a limit.
bool is_unbounded(const TimelineCommand& command) {
  const auto given = [](const timeline::TraceBound& bound) { return bound.step || bound.seconds; };
  return !given(command.from) && !given(command.to);
}

nlohmann::json about(const fs::path& run_dir, const timeline::RunSurvey& survey) {
  return {{"run", run_dir.filename().string()},
          {"tandem_version", TANDEM_VERSION},
          {"zero_ms_since_1970", survey.begun() / 1000}};
}

Result<Trace> write_trace(const TimelineCommand& command, const fs::path& run_dir,
                          const runs::RunJournal& journal, const timeline::RunSurvey& survey,
                          const TraceText::Write& write) {
  const auto range = survey.range();
  if (!range) return range.error();
  node::Signals signals({SIGINT, SIGTERM});
  timeline::MetricsCursor metrics(run_dir);
  TraceText text(about(run_dir, survey), write);
  timeline::Timeline timeline(
      survey, *range,
      is_unbounded(command) ? timeline::kTraceEventsMax : std::numeric_limits<std::uint64_t>::max(),
      [&metrics](std::int64_t step) { return metrics.at(step); },
      [&text](const timeline::TraceEvent& event) { text.add(event); });
  constexpr std::uint64_t kBetweenLooks = 4096;  // entries
  std::uint64_t entries = 0;
  bool interrupted = false;
  const auto read = journal.read([&](const exchange::JournalEntry& entry) {
    if (++entries % kBetweenLooks == 0 && signals.wait_for(Duration::zero()) != 0)
      interrupted = true;
    if (!interrupted && !text.failed()) timeline.take(entry);
  });
  if (!read) return read.error();
  const bool full = timeline.is_full();
  if (!interrupted) timeline.end();
  if (const auto written = text.end(); !written) return written.error();
  return Trace{.events = timeline.events(),
               .last_step = timeline.last_step(),
               .leases_not_shown = timeline.leases_not_shown(),
               .is_full = full,
               .interrupted = interrupted};
}

void tell(const Trace& trace, const timeline::RunSurvey& survey, const std::string& run,
          std::ostream& err) {
  if (!survey.is_whole())
    err << "note: the journal begins with step " << survey.first_step().value_or(0)
        << ": older events are summed up (retention.archive_bytes)\n";
  if (trace.leases_not_shown > 0)
    err << "note: " << trace.leases_not_shown << " leases have no row of their own, since "
        << timeline::kLanesMax
        << " of one actor are shown at a time; the groups' trips have them\n";
  if (trace.is_full)
    err << "WARNING: the trace ends with step " << trace.last_step << " of "
        << survey.last_step().value_or(0) << ", since it has " << timeline::kTraceEventsMax
        << " events; for the steps behind it: tandem timeline " << run << " --from "
        << trace.last_step + 1 << " --to " << survey.last_step().value_or(0) << "\n";
}

// Of a directory that the controller has made for a job, but in which no journal is.
std::optional<Error> no_journal(const fs::path& run) {
  std::error_code unknown;
  if (!fs::exists(run / "job.yaml", unknown)) return std::nullopt;
  if (job::is_of_actors_alone(run))
    return Error{ErrorCode::kInvalid,
                 "the run is one of actors alone, which has no journal and so no timeline",
                 run.string(), "`tandem events -j JOB` shows what happened to its actors"};
  return Error{
      ErrorCode::kNotFound,
      "the run has not begun, so it has no journal yet: its job is queued or starts, or it "
      "ended before it began",
      run.string(), "`tandem why JOB` says what the job waits for"};
}

Error no_run(const TimelineCommand& command, const cli::VerbContext& context) {
  for (const fs::path& run : {command.named, cli::tandem_home() / "runs" / command.named})
    if (auto error = no_journal(run)) return *std::move(error);
  const bool remote = context.address || std::getenv("TANDEM_ADDRESS") != nullptr;
  return {ErrorCode::kNotFound,
          "this is no run directory, and no id of a run of this TANDEM_HOME that has a journal",
          command.named.string(),
          remote ? "a timeline is made from the run's files, which a controller at an address does "
                   "not send: run `tandem timeline` on the controller's host"
                 : "`tandem get runs` lists the runs"};
}

Result<int> write_to(const TimelineCommand& command, const cli::VerbContext& context,
                     const fs::path& run_dir) {
  const auto journal = runs::RunJournal::open_to_read(run_dir.string());
  if (!journal) return journal.error();
  timeline::RunSurvey survey(command.from, command.to);
  const auto read =
      journal->read([&survey](const exchange::JournalEntry& entry) { survey.take(entry); });
  if (!read) return read.error();
  if (const auto range = survey.range(); !range) return range.error();
  const cli::Console& console = context.console;
  const std::string run = run_dir.filename().string();
  if (command.output == "-") {
    const auto write = [&console](std::string_view piece) -> Result<void> {
      console.out.write(piece.data(), static_cast<std::streamsize>(piece.size())).flush();
      if (console.out) return {};
      return Error{ErrorCode::kFailed, "cannot write to standard output", "",
                   "is the disk full, or has its reader ended?"};
    };
    const auto trace = write_trace(command, run_dir, *journal, survey, write);
    if (!trace) return trace.error();
    tell(*trace, survey, run, console.err);
    return trace->interrupted ? 128 + SIGINT : 0;
  }
  const std::string path = command.output.value_or(run + "-trace.json");
  auto file = ReplacingFile::create(path);
  if (!file) return file.error();
  const auto trace = write_trace(command, run_dir, *journal, survey,
                                 [&file](std::string_view piece) { return file->write(piece); });
  if (!trace) return trace.error();
  if (trace->interrupted) return 128 + SIGINT;
  if (const auto kept = file->commit(); !kept) return kept.error();
  tell(*trace, survey, run, console.err);
  console.err << path << ": " << cli::short_bytes(static_cast<double>(file->bytes())) << ", "
              << trace->events << " events to step " << trace->last_step
              << "; open it with https://ui.perfetto.dev or chrome://tracing\n";
  return 0;
}

}  // namespace

Result<timeline::TraceBound> parse_trace_bound(const std::string& option, const std::string& text) {
  constexpr std::int64_t kStepMax = 1'000'000'000;
  std::int64_t step = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), step);
  const bool is_number = failure == std::errc{} && stop == text.data() + text.size();
  if (is_number && step >= 1 && step <= kStepMax)
    return timeline::TraceBound{.step = step, .seconds = {}};
  if (!is_number)
    if (const auto seconds = cli::parse_duration(text))
      return timeline::TraceBound{.step = {}, .seconds = seconds};
  return cli::usage_error(
      "`" + option + " " + text + "` is no step and no time",
      "a step as in 40, from 1 on, or a time since the run began as in 90s, 10m");
}

cli::VerbHelp TimelineCommand::help() {
  return {.name = "timeline",
          .group = cli::VerbGroup::kLook,
          .description = "A run as a trace for Chromium's tracing or Perfetto: who did what when",
          .examples = {
              "tandem timeline arithmetic-grpo-1 -o trace.json",
              "tandem timeline arithmetic-grpo-1 --from 100 --to 120",
              "tandem timeline ~/.tandem/runs/arithmetic-grpo-1 --from 10m -o - | gzip > t.gz"}};
}

void TimelineCommand::options(cli::Options& options) {
  options.add("RUN", named, "A run directory, or the id of a run, which may be going on")
      .required()
      .offers("runs");
  options.add("-o,--output", output, "Where to write; - is standard output; else RUN-trace.json")
      .value("FILE");
  const auto bound = [&options](const std::string& name, timeline::TraceBound& value,
                                const std::string& description) {
    const auto take = [name, &value](const std::string& text) -> Result<void> {
      const auto parsed = parse_trace_bound(name, text);
      if (!parsed) return parsed.error();
      value = *parsed;
      return {};
    };
    options.read(name, take, description).value("STEP|TIME");
  };
  bound("--from", from,
        "Begin with this step, as metrics.jsonl counts them, or at a time since the run began, as "
        "in 90s or 10m");
  bound("--to", to, "End with this step, or at this time");
}

Result<int> TimelineCommand::run(const cli::VerbContext& context) {
  if (output == "-" && context.console.terminal)
    return Error{ErrorCode::kInvalid, "a trace is nothing to read, and the output is a terminal",
                 "", "write it to a file: -o trace.json"};
  const auto run_dir = job::find_run(named, cli::tandem_home() / "runs");
  if (!run_dir || !job::has_begun(*run_dir)) return no_run(*this, context);
  return write_to(*this, context, *run_dir);
}

}  // namespace tandem::app
