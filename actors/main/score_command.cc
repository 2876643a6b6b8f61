// A window of completions is under judgement at a time; lines are read as there is room, and
// completions are printed in their order as they are judged. So a file may be of any size, a pipe
// may go on for hours, and Ctrl-C finds a loop that looks for signals several times a second.
//
// A record has its completion under `data.completion_key`, as a text or as a conversation whose
// last message counts, or a list of them under `completions`. A record with an error and without a
// completion, as samples.jsonl has them, is skipped.
#include "actors/main/score_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <deque>
#include <ostream>
#include <utility>

#include "actors/cli/arguments.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/table.h"
#include "actors/cli/views.h"
#include "actors/job/dataset.h"
#include "actors/job/load_job.h"
#include "actors/main/judging.h"
#include "actors/main/score_summary.h"
#include "runtime/base/json.h"
#include "runtime/base/line_reader.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/link/io_thread.h"
#include "runtime/node/last_lines.h"
#include "runtime/node/signals.h"

namespace tandem::app {
namespace {

using nlohmann::json;

constexpr std::size_t kWindow = 256;                        // completions under judgement
constexpr Duration kTick = std::chrono::milliseconds(100);  // between two looks for signals
constexpr std::size_t kWordBytesMax = 60;                   // of an answer in a row of the table

// A completion that is under judgement, with what is printed of it.
struct Completion {
  std::string place;  // "17", or "b.jsonl:17"; of a list of completions "17.2"
  json line;          // the object of -o jsonl, without the judgement
  std::string source;
  std::optional<Judged> judged = {};
};

// The value that a record has under `key`, null where it has none.
json member(const json& record, const std::string& key) {
  const json* const at = find_path(record, key);
  return at ? *at : json();
}

// A field under the job's name for it, else under the one that lines of samples.jsonl have.
json field(const json& record, const std::string& key, const char* of_samples) {
  const json value = member(record, key);
  return value.is_null() ? member(record, of_samples) : value;
}

// A text, or the content of the last message of a conversation; nullopt for anything else.
std::optional<std::string> text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array() || value.empty() || !value.back().is_object()) return {};
  const json content = member(value.back(), "content");
  return content.is_string() ? std::optional(content.get<std::string>()) : std::nullopt;
}

// The prompt as a text. A data set that is read for training renders a conversation by the model's
// template, which is not at hand here.
std::string prompt_of(const json& record, const std::string& key) {
  const json prompt = field(record, key, "prompt");
  return text_of(prompt.is_null() ? member(record, "messages") : prompt).value_or("");
}

// Reads files one after the other and gives the completions of their records.
class Completions {
 public:
  Completions(std::vector<std::string> files, job::DatasetKeys keys)
      : files_(std::move(files)), keys_(std::move(keys)) {}

  struct Batch {
    std::vector<Completion> completions;
    std::vector<reward::ScoreItem> items;  // one for each of these
    std::int64_t skipped = 0;
  };
  // The completions of the next record. nullopt: no record came within `wait`, or all have been
  // read.
  Result<std::optional<Batch>> next(Duration wait) {
    while (!ended()) {
      if (auto opened = open(); !opened) return opened.error();
      const auto ready = reader_->ready(wait);
      if (!ready) return ready.error();
      if (!*ready) return std::optional<Batch>();
      const auto line = reader_->next();
      if (!line) return line.error();
      if (!*line) {
        reader_.reset();
        ++at_;
      } else if ((*line)->find_first_not_of(" \t\r") != std::string_view::npos) {
        auto batch = read(**line);
        if (!batch) return batch.error();
        return std::optional(*std::move(batch));
      }
    }
    return std::optional<Batch>();
  }
  bool ended() const { return at_ == files_.size(); }

 private:
  Result<void> open() {
    if (reader_) return {};
    const std::string& file = files_[at_];
    if (file == "-" || is_descriptor(file)) {
      OwnedFd fd(file == "-" ? ::dup(STDIN_FILENO) : ::open(file.c_str(), O_RDONLY | O_CLOEXEC));
      if (!fd) return file_error("open", file);
      reader_ = LineReader::of(std::move(fd), file, job::kRecordBytesMax);
      return {};
    }
    auto opened = LineReader::open(file, job::kRecordBytesMax);
    if (!opened) return opened.error();
    reader_ = *std::move(opened);
    return {};
  }

  Error fault(std::string message, std::string help) const {
    return {ErrorCode::kInvalid, std::move(message),
            files_[at_] + ":" + std::to_string(reader_->number()), std::move(help)};
  }

  Result<Batch> read(std::string_view line) const {
    const json record = parse_json(line);
    if (!record.is_object())
      return fault("the line is not a JSON object", "as `tandem samples -o jsonl` prints them");
    Batch batch;
    const json list = member(record, "completions");
    const json single = field(record, keys_.completion, "completion");
    if (list.is_array() && single.is_null()) {
      for (const json& one : list)
        if (!add(batch, record, one, static_cast<int>(batch.items.size())))
          return fault("`completions` has an entry that is no text", "texts, or conversations");
      return batch;
    }
    if (add(batch, record, single, -1)) return batch;
    if (!record.contains("error") || !single.is_null())
      return fault("the record has no text `" + keys_.completion + "`, and no list `completions`",
                   "`--set data.completion_key=NAME` names another field");
    batch.skipped = 1;
    return batch;
  }

  // `sample` is the place in a list of completions; -1: it is the only one.
  bool add(Batch& batch, const json& record, const json& value, int sample) const {
    auto text = text_of(value);
    if (!text) return false;
    const json source = field(record, keys_.data_source, "data_source");
    Completion one{.place = std::to_string(reader_->number()),
                   .line = {{"line", reader_->number()}, {"completion", *text}},
                   .source = source.is_string() ? source.get<std::string>() : ""};
    if (files_.size() > 1) {
      one.place = files_[at_] + ":" + one.place;
      one.line["file"] = files_[at_];
    }
    if (sample >= 0) {
      one.place += "." + std::to_string(sample);
      one.line["sample"] = sample;
    }
    if (source.is_string()) one.line["data_source"] = source;
    const json answer = field(record, keys_.answer, "answer");
    if (!answer.is_null()) one.line["answer"] = answer;
    const bool truncated =
        member(record, "truncated") == true || member(record, "finish_reason") == "length";
    batch.items.push_back({.prompt = prompt_of(record, keys_.prompt),
                           .completion = *std::move(text),
                           .answer = answer,
                           .data = record,
                           .data_source = one.source,
                           .truncated = truncated,
                           .special_text = {}});
    batch.completions.push_back(std::move(one));
    return true;
  }

  const std::vector<std::string> files_;
  const job::DatasetKeys keys_;
  std::size_t at_ = 0;  // the file that is being read
  std::optional<LineReader> reader_;
};

std::string short_text(const json& value) {
  return node::one_line(value.is_string() ? value.get<std::string>() : dump_json(value),
                        kWordBytesMax);
}

// Why a completion is paid what it is, in a row of the table.
std::string why(const json& line) {
  if (line.contains("error")) return "failed: " + line["error"].get<std::string>();
  std::string text;
  const auto add = [&](const std::string& name, const json& value) {
    text += (text.empty() ? "" : ", ") + name + " " + short_text(value);
  };
  if (line.contains("found")) add("found", line["found"]);
  if (line.contains("answer")) add("answer", line["answer"]);
  if (line.contains("extra"))
    for (const auto& [key, value] : line["extra"].items()) add(key, value);
  return text;
}

// Prints each judgement in the form that was asked for, and the summary.
class Printer {
 public:
  Printer(const ScoreCommand& command, const cli::Console& console)
      : output_(command.output), single_(!command.summary), console_(console) {
    if (output_ == cli::OutputForm::kJson && single_) console_.out << "{\"scores\":[";
    if (output_ == cli::OutputForm::kTable && single_)
      console_.out << "  LINE    REWARD  WHY\n" << std::flush;
  }

  void print(const Completion& one) {
    if (!single_) return;
    if (output_ == cli::OutputForm::kTable) return print_row(one);
    if (output_ == cli::OutputForm::kJson)
      console_.out << (std::exchange(first_, false) ? "\n" : ",\n");
    console_.out << cli::shown_json(one.line);
    if (output_ == cli::OutputForm::kJsonl) console_.out << "\n";
    console_.out << std::flush;
  }

  void end(const ScoreSummary& summary) {
    if (output_ == cli::OutputForm::kJson)
      console_.out << (single_ ? "\n],\"summary\":" : "{\"summary\":")
                   << cli::shown_json(summary.json()) << "}\n";
    else if (output_ == cli::OutputForm::kJsonl && single_)  // lines of one kind alone on stdout
      console_.err << summary.text(cli::kUnlimitedWidth);
    else if (output_ == cli::OutputForm::kJsonl)
      console_.out << cli::shown_json(summary.json()) << "\n";
    else
      console_.out << (single_ ? "\n" : "") << summary.text(console_.columns());
    console_.out << std::flush;
  }

 private:
  void print_row(const Completion& one) {
    char reward[32] = "-";
    if (one.line.contains("reward"))
      std::snprintf(reward, sizeof reward, "%.6g", one.line["reward"].get<double>());
    char head[64];
    std::snprintf(head, sizeof head, "%6s  %8s  ", one.place.c_str(), reward);
    const std::string text = head + visible(why(one.line), Lines::kOne);
    console_.out << cli::fit(text, console_.columns()) << "\n" << std::flush;
  }

  const cli::OutputForm output_;
  const bool single_;
  const cli::Console& console_;
  bool first_ = true;
};

// The judgement in the object of -o jsonl. `on_failure` is what the job pays for a failure.
void add_judgement(json& line, const Judged& judged, const std::optional<double>& on_failure) {
  if (judged.found) line["found"] = *judged.found;
  if (const auto* scored = std::get_if<messages::Scored>(&judged.score)) {
    line["reward"] = scored->value;
    if (json extra = parse_json(scored->extra); extra.is_object()) line["extra"] = std::move(extra);
    return;
  }
  line["error"] = std::get<messages::ScoreFailed>(judged.score).reason;
  if (on_failure) line["reward"] = *on_failure;
}

struct Scoring {
  Completions& input;
  Judging& judging;
  Printer& printer;
  ScoreSummary& summary;
  std::optional<double> on_failure;
  std::deque<Completion> window = {};  // in the order of the input
  std::size_t printed = 0;             // of all completions
  std::optional<Error> fault = {};     // of the input, which is not read on
  std::optional<Error> gave_up = {};   // why the verifier judges no more

  // Reads as far as there is room. Waits for a record only where nothing is under judgement.
  std::vector<reward::ScoreItem> take_in() {
    std::vector<reward::ScoreItem> items;
    while (window.size() < kWindow && !fault) {
      auto batch = input.next(window.empty() ? kTick : Duration::zero());
      if (!batch) fault = batch.error();
      if (!batch || !*batch) break;
      for (std::int64_t i = 0; i < (*batch)->skipped; ++i) summary.skipped();
      for (Completion& one : (*batch)->completions) window.push_back(std::move(one));
      for (reward::ScoreItem& item : (*batch)->items) items.push_back(std::move(item));
    }
    return items;
  }

  void give_out(std::vector<Judged> judged) {
    for (Judged& one : judged) window[one.number - printed].judged = std::move(one);
    for (; !window.empty() && window.front().judged; ++printed) {
      Completion one = std::move(window.front());
      window.pop_front();
      summary.add(one.source, one.judged->score);
      add_judgement(one.line, *one.judged, on_failure);
      printer.print(one);
    }
  }

  // Judges what the verifier judges no more, as failures: each completion has its line.
  void fail_window() {
    std::vector<Judged> failed;
    for (std::size_t i = 0; i < window.size(); ++i)
      if (!window[i].judged)
        failed.push_back({printed + i, messages::ScoreFailed{gave_up->message}, std::nullopt});
    give_out(std::move(failed));
  }

  // Returns the number of the signal that ended it; 0: the input has ended. After an error of the
  // input, what was read before has been scored.
  Result<int> run(node::Signals& signals) {
    for (;;) {
      auto items = take_in();
      if (!window.empty() && !gave_up) {
        auto judged = judging.next(std::move(items), kTick);
        if (judged)
          give_out(*std::move(judged));
        else
          gave_up = judged.error();
      }
      if (gave_up) fail_window();
      if (window.empty() && fault) return *fault;
      if (window.empty() && input.ended()) return 0;
      if (const int number = signals.wait_for(Duration::zero())) return number;
    }
  }
};

// The job whose reward is meant: the given file, or a made one with the type alone.
Result<job::LoadedJob> job_of(const ScoreCommand& command) {
  if (command.job) return job::load_job(*command.job, command.sets, job::Files::kOfReward);
  const std::string yaml =
      "{name: score, model: {path: none}, data: {train_files: [none]}, reward: {type: " +
      dump_json(*command.type) + "}}";
  std::error_code failure;
  const auto here = std::filesystem::current_path(failure);
  return job::parse_job({.yaml = yaml,
                         .origin = "--type " + *command.type,
                         .base = here,
                         .set_base = here,
                         .sets = command.sets,
                         .files = job::Files::kOfReward});
}

// The completions that were left have failed by it, which the exit code tells.
void tell_that_it_gave_up(Error why, const cli::Console& console) {
  why.help =
      "the completions that were left have failed; start the program by hand: it reads a "
      "line of JSON and answers with one";
  (void)console.complain(why);
}

Result<int> score(const ScoreCommand& command, const cli::Console& console) {
  const auto job = job_of(command);
  if (!job) return job.error();
  const job::JobSpec& spec = job->spec;
  if (!job::trains(spec))
    return Error{ErrorCode::kInvalid, "a job of actors alone has no reward", command.job->string(),
                 "`--type TYPE` needs no job"};
  node::Signals signals({SIGINT, SIGTERM});
  init_logging("tandem", LogLevel::kWarnings);  // on stderr: stdout is the answer
  link::IoThread io("reward");
  auto verifier = verifier_of(spec, io);
  if (!verifier) return verifier.error();

  ScoreSummary summary;
  Judging judging(*std::move(verifier));
  Completions input(command.files, job::dataset_keys(spec));
  Printer printer(command, console);
  Scoring scoring{input, judging, printer, summary, spec.reward.on_failure};
  const auto done = scoring.run(signals);
  printer.end(summary);
  if (scoring.gave_up) tell_that_it_gave_up(*scoring.gave_up, console);
  if (!done) return done.error();
  if (*done != 0) return 128 + *done;
  if (summary.count() == 0)
    return Error{ErrorCode::kInvalid, "there is no completion to score", command.files.front(),
                 "a record has `completion`, or a list `completions`"};
  return summary.failures() == 0 ? 0 : 1;
}

}  // namespace

cli::VerbHelp ScoreCommand::help() {
  return {.name = "score",
          .group = cli::VerbGroup::kModels,
          .description = "What a reward pays for given completions, and why",
          .examples = {"tandem score configs/arithmetic.yaml completions.jsonl",
                       "tandem samples arithmetic-grpo-1 -o jsonl | tandem score JOB.yaml -",
                       "tandem score --type regex --set 'reward.pattern=(\\d+)$' a.jsonl"}};
}

void ScoreCommand::options(cli::Options& options) {
  options.add("JOB.yaml", job, "The job whose reward is used; not with --type");
  options
      .add(
          "FILE", files,
          "JSONL records with a prompt, a completion (or a list `completions`), an answer and what "
          "else the reward reads; -: standard input")
      .value("...");
  options.add("--type", type, "A reward of this type in place of a job's")
      .value("TYPE")
      .choices([] {
        const auto names = spellings<job::RewardType>();
        return std::vector<std::string>(names.begin(), names.end());
      }());
  options.flag("--summary", summary, "Only the summary, without the single completions");
  options.check([this]() -> Result<void> {
    if (type && job) files.insert(files.begin(), job->string());
    if (type) job.reset();
    if (!type && !job)
      return cli::usage_error("JOB.yaml is required", "a job file, or --type for a reward alone");
    if (files.empty())
      return cli::usage_error("FILE is required", "a file of completions, or - for standard input");
    return {};
  });
  add_sets(options, sets);
  using enum cli::OutputForm;
  add_output(options, output, {kTable, kJson, kJsonl});
}

Result<int> ScoreCommand::run(const cli::VerbContext& context) {
  return score(*this, context.console);
}

}  // namespace tandem::app
