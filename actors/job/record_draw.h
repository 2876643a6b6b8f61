// The draw of some records among all of a data set, whose number is not known before the last one
// is read (data.max_samples).
//
//   DS-5  Which records are drawn is a pure function of (seed, count, number of records), and each
//         set of `count` records is as likely as any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "actors/job/dataset.h"
#include "runtime/base/rng.h"

namespace tandem::job {

// Holds at most `count` records at a time.
class RecordDraw {
 public:
  RecordDraw(std::uint64_t seed, std::uint64_t count) : rng_(seed), count_(count) {}

  void add(const Record& record);
  // Gives the drawn records to `take` in the order in which they were added, and forgets them.
  // Stops at the first error of `take`.
  Result<void> give(const TakeRecord& take);

 private:
  Rng rng_;
  const std::uint64_t count_;
  std::uint64_t added_ = 0;
  std::vector<std::pair<std::uint64_t, Record>> drawn_;  // each with its number among those added
};

}  // namespace tandem::job
