// How a row of the job table says its range, and which field of a JobSpec is its own; the table's
// parts that lie in files of their own.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

#include "actors/main/job/job_table.h"
#include "scheduler/fleet/placement.h"

namespace tandem::cli {

// Limits on what one job may ask for; far above any machine this version knows.
inline constexpr double kActorsMax = scheduler::kReplicasMax;
inline constexpr double kTokensMax = 1 << 24;
inline constexpr double kStepsMax = 1e9;
inline constexpr double kBatchMax = 1 << 20;
inline constexpr double kStalenessMax = 64;  // the publisher keeps max_staleness + 2 versions
inline constexpr double kThreadsMax = 1024;
inline constexpr double kGpusMax = 64;  // of one machine
inline constexpr double kDayInSeconds = 86400;
inline constexpr double kMegabytesMax = 1 << 30;  // a pebibyte

std::span<const Key> rollout_keys();  // the rows of `rollout` and `eval`
std::span<const Key> learner_keys();  // the rows of `learner` and `algorithm`

constexpr Range between(double min, double max) { return {.min = min, .max = max}; }
constexpr Range at_least(double min) { return {.min = min}; }
constexpr Range above(double min) { return {.min = min, .min_open = true}; }
constexpr Range above_to(double min, double max) {
  return {.min = min, .max = max, .min_open = true};
}

// The field that a row reads and writes; an enum's by the names of its values.
template <class T>
FieldRef slot(T& field) {
  if constexpr (std::is_enum_v<T>) {
    return EnumField{.names = value_names(field),
                     .get = [&field] { return static_cast<std::size_t>(field); },
                     .set = [&field](std::optional<std::size_t> i) { field = static_cast<T>(*i); }};
  } else {
    return &field;
  }
}

template <class T>
requires std::is_enum_v<T> FieldRef slot(std::optional<T>& field) {
  return EnumField{.names = value_names(T{}),
                   .nullable = true,
                   .get = [&field]() -> std::optional<std::size_t> {
                     if (!field) return std::nullopt;
                     return static_cast<std::size_t>(*field);
                   },
                   .set =
                       [&field](std::optional<std::size_t> i) {
                         field = i ? std::optional(static_cast<T>(*i)) : std::nullopt;
                       }};
}

}  // namespace tandem::cli
