// `--sweep KEY=V1,V2,…`: one command line for a run per value, or per combination of the values of
// several keys. `--set KEY=V1,V2,…` means the same for a key whose value has no commas.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/job/load_job.h"
#include "runtime/base/result.h"

namespace tandem::cli {

inline constexpr std::size_t kSweepRunsMax = 256;

// A run of a sweep: what --set takes, "seed=1", one per key.
using SweepPoint = std::vector<std::string>;

// All combinations; the values of the last option change first. Commas within brackets, braces and
// quotes separate nothing. Without options one point of no keys. kInvalid for an option without a
// key or a value, a key that comes twice, and more than kSweepRunsMax combinations.
Result<std::vector<SweepPoint>> sweep_points(const std::vector<std::string>& options);

// The options of one command line, "KEY=VALUE" each.
struct Settings {
  std::vector<std::string> sets, sweeps;
};

// Takes each of `sets` that can only be a sweep for one, after `sweeps`: several values, with
// commas, of a key that is a number, a truth value or one of some words. A list, a map and a text
// may have commas, and stay what they are, as do values that may be one number ("1,000", "0,001").
// A set that a later one of its key replaces stays too.
Settings with_sweeps_found(Settings given);

// "20261126-101500", in local time.
std::string sweep_time(std::int64_t unix_ms);

// The checked jobs of a sweep, one for each point, labelled by label_sweep_run(); one job where
// `given` has no sweep. `job`, `run`: see load_job_of().
Result<std::vector<job::LoadedJob>> load_sweep(const std::optional<std::filesystem::path>& job,
                                               const std::optional<std::filesystem::path>& run,
                                               const Settings& given, const std::string& time);

// Labels the runs of a sweep where the job does not: all with one group, which `time` makes the
// sweep's own ("arithmetic-grpo-sweep-20261126-101500"), and each with a name that tells its point
// ("arithmetic-grpo seed=1").
void label_sweep_run(job::JobSpec& job, const SweepPoint& point, const std::string& time);

}  // namespace tandem::cli
