// The records of a run of Weights & Biases as protobuf. Pure.
//
// Source: wandb_internal.proto of the package wandb 0.31.0, and files that it wrote. These fields
// are used:
//   Record { int64 num = 1; History history = 2; Summary summary = 3; Config config = 5;
//            Files files = 6; Metric metric = 12; Run run = 17; Exit exit = 18; Header header = 21;
//            Environment environment = 26; }
//   Header { VersionInfo version_info = 1; }  VersionInfo { producer = 1; min_consumer = 2; }
//   Run { run_id = 1; entity = 2; project = 3; Config config = 4; run_group = 6; display_name = 8;
//         notes = 9; repeated tags = 10; host = 13; Timestamp start_time = 17; bool resume = 24; }
//   Config { repeated Item update = 1; }  Summary { repeated Item update = 1; }
//   History { repeated Item item = 1; Step step = 2; }  Step { int64 num = 1; }
//   Item { key = 1; repeated nested_key = 2; value_json = 16; }
//   Files { repeated File files = 1; }  File { path = 1; }
//   Metric { name = 1; glob_name = 2; step_metric = 4; Options options = 6; }
//   Options { bool step_sync = 1; bool hidden = 2; bool defined = 3; }
//   Exit { int32 exit_code = 1; int32 runtime = 2; }
//   Environment { os = 1; Timestamp started_at = 3; program = 6; root = 11; host = 12; }
//
// A function returns the one field of a Record beside its number; numbered() adds that.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/runs/metrics_line.h"

namespace tandem::runs {

// How a run appears in Weights & Biases.
struct WandbRun {
  std::string name;     // what it is called there
  std::string project;  // empty: the server's default
  std::string entity;   // empty: the user's default
  std::string group;    // empty: none
  std::string notes;
  std::vector<std::string> tags;
  std::string config;  // a JSON object
};

// The start of one file of a run.
struct WandbStart {
  std::string id;    // the run's, the same in all of its files
  std::string host;  // this machine's name
  std::string root;  // the run directory
  std::int64_t started_ms = 0;
  bool resume = false;  // an earlier file of the run was sent already
};

std::string numbered(std::int64_t number, std::string_view field);

std::string header_field();
std::string run_field(const WandbRun& run, const WandbStart& start);
std::string environment_field(const WandbStart& start);
std::string config_field(const WandbRun& run);
// Figures of evaluations, `val/…`, are drawn over `val/step`, which itself is not drawn.
std::vector<std::string> metric_fields();

// Values by their keys, as JSON.
using JsonByKey = std::map<std::string, std::string>;
std::string json_number(double value);  // the shortest that reads back as the same
// A line's values, with `val/step` where it is an evaluation's.
JsonByKey values_of(const MetricsLine& line);

struct WandbRow {
  JsonByKey values, tables;  // a table is an object that names its file
  std::int64_t step = 0;     // _step
  double runtime = 0;        // _runtime, seconds
  double unix_seconds = 0;   // _timestamp
};
// Brings `newest`, the newest value of each key, to the state after `row`.
void take_over(const WandbRow& row, WandbRow& newest);
std::string history_field(const WandbRow& row);
std::string summary_field(const WandbRow& row);    // the newest of each
std::string files_field(const std::string& path);  // below files/
std::string exit_field(int code, double runtime);

// A record as a resumed run reads it. The views borrow the record.
struct ReadRecord {
  enum class Kind { kOther, kHistory, kExit };
  Kind kind = Kind::kOther;
  std::int64_t number = 0;
  std::string_view message;  // of the kind's field
};
ReadRecord read_record(std::string_view record);

}  // namespace tandem::runs
