// Turns text into a checked JobSpec. The job table (job_table.h) drives names, types and ranges;
// job_rules.h adds rules over several keys. load_job() reads the job file; both functions look
// whether the files that the job names exist, and read none of them but the system prompt, which
// becomes a part of the job.
//
// Errors carry file:line:column, or the --set that brought the value, and help; several faults of
// one job are one Error with further ones. All are ErrorCode::kInvalid, except those about files
// that are missing or cannot be read (kFailed).
// Thread-safe: no state is kept between calls.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "actors/job/job_spec.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace tandem::job {

inline constexpr std::size_t kJobFileBytesMax = 1 << 20;
// How long a pipe's writer may be silent.
inline constexpr Duration kJobFileSilenceMax = std::chrono::seconds(60);
inline constexpr std::size_t kSetsMax = 256;  // --set options on one command line

struct LoadedJob {
  JobSpec spec;
  std::vector<std::string> warnings;  // one sentence each, for stderr
  // Where each given key and section stands, "f.yaml:3:5"; under "" the name of the whole text.
  std::map<std::string, std::string, std::less<>> places;
};

// Where an error about `key` points: the place at which it was given, else the name of the job
// file.
std::string place_of(const LoadedJob& job, std::string_view key);

// Which of the named files are looked at. A process that gets an effective job from another one, on
// another host perhaps, uses kUnchecked; whoever needs a job's reward alone, kOfReward.
enum class Files { kMustExist, kOfReward, kUnchecked };

// A text to parse, and where its relative paths start.
struct JobText {
  std::string_view yaml;
  std::string origin;              // the file's name in errors: "job.yaml", "request body"
  std::filesystem::path base;      // relative paths in the text start here; absolute
  std::filesystem::path set_base;  // relative paths in --set start here; absolute
  std::vector<std::string> sets;   // "a.b=VALUE" with VALUE in YAML; the last one of a key wins
  Files files = Files::kMustExist;
};

// The settled job with its warnings (JS-1), or all errors that can be told of it at once: those of
// the values that were given; where there are none, the required keys that are missing; then the
// rules over several keys that are broken; then the files that are missing.
Result<LoadedJob> parse_job(const JobText& text);

// parse_job over the file at `path`; relative paths in `sets` start at the current directory. The
// file may be a pipe that the shell opened, /dev/stdin or <(command): relative paths in such a job
// start at the current directory as well.
Result<LoadedJob> load_job(const std::filesystem::path& path, const std::vector<std::string>& sets,
                           Files files = Files::kMustExist);

// The job of a run directory from the text of its job.yaml, in which all paths are absolute. The
// files that it names are not looked at.
Result<JobSpec> parse_job_of_run(const std::string& yaml, const std::filesystem::path& run_dir);

}  // namespace tandem::job
