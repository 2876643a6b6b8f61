// Building blocks of the rows of the job table: limits, ranges, and the field of a JobSpec that a
// row reads and writes. Included by the files that hold rows, and by no other.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "actors/job/job_table.h"
#include "actors/job/violation.h"
#include "runtime/base/check.h"
#include "scheduler/fleet/placement.h"

namespace tandem::job {

// Upper bounds of what one job may ask for, far above any machine that this version supports.
inline constexpr double kActorsMax = scheduler::kReplicasMax;
inline constexpr double kTokensMax = 1 << 24;
inline constexpr double kStepsMax = 1e9;
inline constexpr double kBatchMax = 1 << 20;
// The publisher keeps max_staleness + 2 versions.
inline constexpr double kStalenessMax = 64;
inline constexpr double kThreadsMax = 1024;
// The GPUs of one machine.
inline constexpr double kGpusMax = 64;
inline constexpr double kDayInSeconds = 86400;
// A pebibyte, in MiB.
inline constexpr double kMegabytesMax = 1 << 30;

// The rows of one role of training: those of its own sections, and those of its section of `pools`.
// Each role brings them beside its entry (actors/main/roles); they need no engine, so that the
// command line reads jobs without one.
struct RoleKeys {
  std::span<const Key> own, pool;
  // Adds the rules over several of its keys that a job breaks. Null: it has none.
  void (*rules)(const JobSpec& job, std::vector<Violation>& broken) = nullptr;
};
RoleKeys rollout_keys();
RoleKeys learner_keys();
RoleKeys reward_keys();
inline std::vector<RoleKeys> role_keys() { return {rollout_keys(), learner_keys(), reward_keys()}; }
// The rows of the section `actors`.
std::span<const Key> actor_keys();

// [min, max], [min, ...), (min, ...), (min, max] and [min, max).
constexpr Range between(double min, double max) { return {.min = min, .max = max}; }
constexpr Range at_least(double min) { return {.min = min}; }
constexpr Range above(double min) { return {.min = min, .min_open = true}; }
constexpr Range above_to(double min, double max) {
  return {.min = min, .max = max, .min_open = true};
}
constexpr Range below(double min, double max) { return {.min = min, .max = max, .max_open = true}; }
// The same range for a value that is used as a 32-bit float (JT-2).
constexpr Range as_float(Range range) {
  range.as_float = true;
  return range;
}

// The value of a name that EnumField::set was given.
template <class T>
T value_of(std::string_view name) {
  const std::optional<T> value = spelt<T>(name);
  CHECK(value);
  return *value;
}

// The field of a row. An enum becomes an EnumField over the names of its values; any other type
// becomes a pointer. Borrows `field`.
template <class T>
FieldRef slot(T& field) {
  if constexpr (std::is_enum_v<T>) {
    return EnumField{.names = spellings<T>(),
                     .get = [&field] { return spelling(field); },
                     .set = [&field](auto name) { field = value_of<T>(*name); }};
  } else {
    return &field;
  }
}

// The same for an enum that may be null.
template <class T>
requires std::is_enum_v<T> FieldRef slot(std::optional<T>& field) {
  return EnumField{
      .names = spellings<T>(),
      .nullable = true,
      .get = [&field] { return field ? std::optional(spelling(*field)) : std::nullopt; },
      .set =
          [&field](auto name) { field = name ? std::optional(value_of<T>(*name)) : std::nullopt; }};
}

}  // namespace tandem::job
