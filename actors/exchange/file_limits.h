// The limits of the files that grow with a run. docs/reliability.md has what a run writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "actors/exchange/evaluation_json.h"

namespace tandem::exchange {

struct FileLimits {
  std::uint64_t samples_bytes = std::uint64_t{64} << 20;   // beyond it the oldest samples go
  std::uint64_t metrics_bytes = std::uint64_t{256} << 20;  // every second of the older lines goes
  // Of the rows that can be queried; beyond it the oldest are packed into few, which keep their
  // events for the program.
  std::uint64_t journal_bytes = std::uint64_t{256} << 20;
  // Of the packed ones; beyond it the oldest are summed up.
  std::uint64_t archive_bytes = std::uint64_t{1} << 30;
  // A resume from any of so many of the newest checkpoints finds all that it needs.
  std::size_t checkpoints = 2;
  BestBy best = {};  // of the evaluations that are summed up, the best one stays
  // Of the rows about actors, evaluations and checkpoints that are summed up, the newest so many
  // stay for people: some 30 MB.
  std::size_t rows_for_people = 100'000;
  std::uint64_t tracker_bytes = std::uint64_t{1} << 30;  // of each tracker, which then stops
};

// Which of them a run has reached, as its journal tells.
struct LimitsReached {
  bool samples = false, metrics = false;
};

}  // namespace tandem::exchange
