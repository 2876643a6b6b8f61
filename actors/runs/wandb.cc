// At its first line an incarnation compares metrics.jsonl with the rows of the file that goes on,
// step by step and value by value: each line has its own values of the run's clock, so a step that
// was trained anew differs from the step that it replaces. Rows that stay count as sent ones do,
// and all that metrics.jsonl has behind them is written. A summary repeats every key, so that one
// per row would double the file: it is written with evaluations, every ten seconds, and at the end.
#include "actors/runs/wandb.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <system_error>

#include "actors/runs/wandb_kept.h"
#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/line_file.h"
#include "runtime/base/log.h"
#include "runtime/node/resources.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kIdChars = 8;  // as many as wandb gives
constexpr std::size_t kHistoryBytes = std::size_t{1}
                                      << 20;  // how much history is written at a time
constexpr std::int64_t kNameTriesMax = 3600;  // seconds

std::string local_time(std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm parts{};
  ::localtime_r(&time, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y%m%d_%H%M%S", &parts));
}

// No other run has it, also none of another machine in the same project.
std::string new_id(const fs::path& run_dir, std::int64_t started_ms) {
  const std::string text =
      node::hostname() + ":" + run_dir.string() + ":" + std::to_string(started_ms);
  return sha256_hex(std::as_bytes(std::span(text))).substr(0, kIdChars);
}

// The configuration in wandb's own form; JSON is YAML.
std::string config_yaml(const std::string& config) {
  std::string text = "wandb_version: 1\n";
  const auto keys = parse_json(config);
  if (keys.is_object())
    for (const auto& [key, value] : keys.items())
      text += dump_json(key) + ":\n  value: " + dump_json(value) + "\n";
  return text;
}

Result<void> write_text(const fs::path& path, const std::string& text) {
  return write_file(path, std::as_bytes(std::span(text)));
}

Result<void> make_folder(const fs::path& path) {
  std::error_code failure;
  fs::create_directories(path, failure);
  if (!failure) return {};
  return Error{
      ErrorCode::kFailed, "cannot make the folder: " + failure.message(), path.string(), {}};
}

// The codes of the package: 255 of a run that its user has interrupted.
int exit_code_of(const std::string& state) {
  if (state == "Succeeded") return 0;
  return state == "Cancelled" ? 255 : 1;
}

}  // namespace

Result<void> WandbWriter::add(std::string_view metrics_line) {
  if (!read_metrics_line(metrics_line, line_)) return {};
  if (!file_.is_open()) {
    const auto taken = begin();
    if (!taken) return taken.error();
    if (*taken) return flush();
  }
  JsonByKey tables;
  if (line_.evaluation) {
    auto written = tables_of_evaluation(line_.step);
    if (!written) return written.error();
    tables = std::move(*written);
  }
  const auto row = rows_.take(line_, now(), std::move(tables));
  if (row)
    if (const auto written = write_row(*row); !written) return written;
  return flush();
}

Result<void> WandbWriter::sample(std::string_view sample_line) {
  samples_.add(sample_line);
  return {};
}

Result<void> WandbWriter::end(std::string_view result) {
  if (!file_.is_open()) return {};
  JsonByKey tables;
  if (const auto table = write_table("train/samples", samples_.training(), tables); !table)
    return table;
  for (const auto& [key, value] : tables) rows_.add_table(key, value);
  while (const auto row = rows_.take_rest())
    if (const auto written = write_row(*row); !written) return written;
  if (const auto summary = write_summary(); !summary) return summary;
  const auto outcome = parse_json(result);
  const std::string state = outcome.is_object() ? outcome.value("state", "") : "";
  append(exit_field(exit_code_of(state), summary_.runtime));
  return flush();
}

Result<bool> WandbWriter::begin() {
  const auto files = wandb_files(run_dir_);
  if (!files) return files.error();
  SentRows sent = sent_rows(*files);
  Result<void> written;
  if (!files->empty() && !files->back().closed) {
    auto kept = kept_part(files->back().path(), sent);
    if (!kept) return kept.error();
    sent.last_step = std::max(sent.last_step, kept->rows.last_step);
    sent.evaluated.insert(kept->rows.evaluated.begin(), kept->rows.evaluated.end());
    written = go_on(files->back(), *std::move(kept));
  } else {
    written = begin_file(*files);
  }
  rows_ = WandbRows(std::move(sent));
  const auto take = [&](const MetricsLine& line) {
    if (!written) return;
    const auto row = rows_.take(line, time_of(line, line_, now()));
    if (row) written = write_row(*row);
    if (written && records_.size() >= kHistoryBytes) written = flush();
  };
  if (const auto read = each_former(take); !read) return read.error();
  // A step completes the row before it, which the file may have, with its tables.
  if (!line_.evaluation) take(line_);
  if (written) written = flush();
  if (!written) return written.error();
  return !line_.evaluation;
}

Result<void> WandbWriter::each_former(const std::function<void(const MetricsLine&)>& take) const {
  auto metrics = LineFile::open(run_dir_ / "metrics.jsonl");
  if (!metrics) return metrics.error();
  MetricsLine line;
  std::string before;  // the last line is line_
  const auto read = metrics->read_lines({}, metrics->size(), [&](std::uint64_t, auto text) {
    if (read_metrics_line(before, line)) take(line);
    before = text;
  });
  if (!read) return read.error();
  return {};
}

Result<KeptPart> WandbWriter::kept_part(const fs::path& file, const SentRows& sent) const {
  KnownEvaluations evaluations;
  std::int64_t newest_step = -1;
  auto read = each_former([&](const MetricsLine& line) {
    if (line.evaluation)
      evaluations.add(line);
    else
      newest_step = std::max(newest_step, line.step);
  });
  if (!read) return read.error();
  KeptRows rows(file, evaluations);
  read = each_former([&](const MetricsLine& line) {
    if (!line.evaluation && line.step > sent.last_step) rows.take(line);
  });
  if (!read) return read.error();
  // An evaluation may end long after the step of its version.
  return rows.end(line_.evaluation ? std::max(newest_step, line_.step) + 1 : line_.step);
}

// Cuts the file: later records are of steps that are trained anew, or say that the run had ended.
Result<void> WandbWriter::go_on(const WandbFile& last, KeptPart kept) {
  std::error_code failure;
  fs::resize_file(last.path(), kept.bytes, failure);
  if (failure)
    return Error{ErrorCode::kFailed, "cannot cut the file: " + failure.message(),
                 last.path().string(), "is it writable?"};
  folder_ = last.folder;
  offset_ = kept.bytes;
  number_ = kept.number;
  summary_ = std::move(kept.newest);
  file_.open(last.path(), std::ios::binary | std::ios::app);
  append(config_field(run_));  // the job may have changed with the resume
  return write_text(folder_ / "files" / "config.yaml", config_yaml(run_.config));
}

Result<void> WandbWriter::begin_file(const std::vector<WandbFile>& former) {
  WandbStart start{.host = node::hostname(), .root = run_dir_.string(), .started_ms = clock_()};
  start.id = former.empty() ? new_id(run_dir_, start.started_ms) : former.back().id;
  start.resume = !former.empty();
  const fs::path parent = run_dir_ / "wandb";
  const auto name = [&](std::int64_t later) {
    return parent / ("offline-run-" + local_time(start.started_ms / 1000 + later) + "-" + start.id);
  };
  std::int64_t later = 0;
  while (!former.empty() && name(later) <= former.back().folder && later < kNameTriesMax) ++later;
  folder_ = name(later);
  if (later == kNameTriesMax)
    return Error{ErrorCode::kFailed, "no name of a new folder sorts after the one that is there",
                 former.back().folder.string(), "move that folder away"};
  if (const auto made = make_folder(folder_ / "files"); !made) return made;
  const nlohmann::json metadata = {{"os", "Linux"},
                                   {"host", start.host},
                                   {"program", "tandem"},
                                   {"root", start.root},
                                   {"startedAt", start.started_ms}};
  if (auto done = write_text(folder_ / "files" / "wandb-metadata.json", dump_json(metadata, 2));
      !done)
    return done;
  if (auto done = write_text(folder_ / "files" / "config.yaml", config_yaml(run_.config)); !done)
    return done;
  offset_ = 0;
  number_ = 0;
  file_.open(folder_ / ("run-" + start.id + ".wandb"), std::ios::binary | std::ios::app);
  records_ = kWandbHeader;
  append(header_field());
  append(run_field(run_, start));
  append(environment_field(start));
  for (const std::string& metric : metric_fields()) append(metric);
  return flush();
}

Result<void> WandbWriter::write_row(const WandbRow& row) {
  for (const auto& [key, value] : row.tables)
    append(files_field(parse_json(value)["path"].get<std::string>()));
  append(history_field(row));
  take_over(row, summary_);
  const bool evaluated = row.values.contains("val/step");
  if (evaluated || clock_() - summary_ms_ >= kSummaryEveryMs) return write_summary();
  return {};
}

Result<JsonByKey> WandbWriter::tables_of_evaluation(std::int64_t version) {
  JsonByKey tables;
  SampleTable said = samples_.take_evaluation(version);
  if (const auto done = write_table("val/samples", said, tables); !done) return done.error();
  if (const auto done = write_table("train/samples", samples_.training(), tables); !done)
    return done.error();
  return tables;
}

Result<void> WandbWriter::write_table(const std::string& key, SampleTable& table,
                                      JsonByKey& tables) {
  if (table.rows() == 0) return {};
  const std::string text = table.text();
  const std::string digest = sha256_hex(std::as_bytes(std::span(text)));
  const std::string path = "media/table/" + key + "_" + std::to_string(line_.step) + "_" +
                           digest.substr(0, 20) + ".table.json";
  const nlohmann::json value = {{"_type", "table-file"},
                                {"log_mode", "IMMUTABLE"},
                                {"ncols", SampleTable::kColumns},
                                {"nrows", table.rows()},
                                {"path", path},
                                {"sha256", digest},
                                {"size", text.size()}};
  table.clear();
  if (table_bytes_ + text.size() > kTablesBytesMax) {
    if (!std::exchange(tables_full_, true))
      log::info("event=wandb_tables_full bytes={} message=\"samples.jsonl has the samples\"",
                table_bytes_);
    return {};
  }
  table_bytes_ += text.size();
  const fs::path file = folder_ / "files" / path;
  if (const auto made = make_folder(file.parent_path()); !made) return made;
  if (const auto written = write_text(file, text); !written) return written;
  tables[key] = dump_json(value);
  return {};
}

Result<void> WandbWriter::write_summary() {
  summary_ms_ = clock_();
  append(summary_field(summary_));
  nlohmann::json summary = {{"_step", summary_.step},
                            {"_runtime", summary_.runtime},
                            {"_timestamp", summary_.unix_seconds}};
  for (const JsonByKey* const part : {&summary_.values, &summary_.tables})
    for (const auto& [key, value] : *part) summary[key] = parse_json(value);
  return write_text(folder_ / "files" / "wandb-summary.json", dump_json(summary));
}

void WandbWriter::append(std::string_view field) {
  append_framed(records_, offset_, numbered(++number_, field));
}

Result<void> WandbWriter::flush() {
  file_ << records_;
  file_.flush();
  offset_ += records_.size();
  records_.clear();
  if (file_) return {};
  return Error{ErrorCode::kFailed, "cannot write the file: " + errno_text(errno), folder_.string(),
               "is the disk full, or the folder not writable?"};
}

}  // namespace tandem::runs
