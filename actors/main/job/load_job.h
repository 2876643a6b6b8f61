// From text to a checked JobSpec. The job table (job_table.h) drives names, types and ranges;
// job_rules.h adds what concerns several keys at once. Reads the job file and looks whether the
// named files exist; reads none of them. Errors carry file:line:column, or the --set that brought
// the value, and help; all are ErrorCode::kInvalid except an unreadable or missing file (kFailed).
// Pure apart from the file system; thread-safe.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "actors/main/job/job_spec.h"
#include "runtime/base/result.h"

namespace tandem::cli {

inline constexpr std::size_t kJobFileBytesMax = 1 << 20;
inline constexpr std::size_t kSetsMax = 256;  // --set options on one command line

struct LoadedJob {
  JobSpec spec;
  std::vector<std::string> warnings;  // one sentence each, for stderr
  std::map<std::string, std::string, std::less<>>
      places;  // of each key that is given: "f.yaml:3:5"
};

// Where to point for `key`: its place; where that is not given, the name of the job file.
std::string place_of(const LoadedJob& job, std::string_view key);

// A process that gets an effective job from another one needs no second look at the disk.
enum class Files { kMustExist, kUnchecked };

struct JobText {
  std::string_view yaml;
  std::string origin;              // the file's name in errors: "job.yaml", "request body"
  std::filesystem::path base;      // relative paths in the text start here; absolute
  std::filesystem::path set_base;  // relative paths in --set start here; absolute
  std::vector<std::string> sets;   // "a.b=VALUE" with VALUE in YAML; the last one of a key wins
  Files files = Files::kMustExist;
};

Result<LoadedJob> parse_job(const JobText& text);

// parse_job over the file at `path`; relative paths in `sets` start at the current directory.
Result<LoadedJob> load_job(const std::filesystem::path& path, const std::vector<std::string>& sets);

}  // namespace tandem::cli
