// Building blocks of the rows of the job table: limits, ranges, and the field of a JobSpec that a
// row reads and writes. Included by the files that hold rows, and by no other.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

#include "actors/job/job_table.h"
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
};
RoleKeys rollout_keys();
RoleKeys learner_keys();
RoleKeys reward_keys();
// The rows of the section `actors`.
std::span<const Key> actor_keys();

// [min, max], [min, ...), (min, ...) and (min, max].
constexpr Range between(double min, double max) { return {.min = min, .max = max}; }
constexpr Range at_least(double min) { return {.min = min}; }
constexpr Range above(double min) { return {.min = min, .min_open = true}; }
constexpr Range above_to(double min, double max) {
  return {.min = min, .max = max, .min_open = true};
}

// The field of a row. An enum becomes an EnumField over the names of its values, with an index that
// equals the enumerator; any other type becomes a pointer. Borrows `field`.
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

// The same for an enum that may be null.
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

// The same for estimators of KL, of which three have a second name behind the others.
inline FieldRef slot(KlPenalty& field) {
  return EnumField{
      .names = value_names(field),
      .get = [&field] { return static_cast<std::size_t>(field); },
      .set =
          [&field](std::optional<std::size_t> i) {
            constexpr std::array kSecond{KlPenalty::kKl, KlPenalty::kMse, KlPenalty::kLowVarKl};
            constexpr std::size_t kFirst = 4;
            field = *i < kFirst ? static_cast<KlPenalty>(*i) : kSecond.at(*i - kFirst);
          }};
}

// The same for data.chat_template, whose first name stands for none.
inline FieldRef chat_slot(std::optional<actors::ChatTemplate>& field) {
  return EnumField{.names = chat_template_names(),
                   .get = [&field]() -> std::optional<std::size_t> {
                     return field ? 1 + static_cast<std::size_t>(*field) : 0;
                   },
                   .set =
                       [&field](std::optional<std::size_t> i) {
                         field = *i == 0 ? std::nullopt
                                         : std::optional(static_cast<actors::ChatTemplate>(*i - 1));
                       }};
}

}  // namespace tandem::job
