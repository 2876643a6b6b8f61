// Algorithm R: the i-th record takes a place with probability count / i, a random one (Vitter,
// "Random sampling with a reservoir", 1985).
#include "actors/job/record_draw.h"

#include <algorithm>

namespace tandem::job {

void RecordDraw::add(const Record& record) {
  const std::uint64_t number = added_++;
  if (drawn_.size() < count_) {
    drawn_.emplace_back(number, record);
    return;
  }
  const std::uint64_t place = rng_.below(added_);
  if (place < count_) drawn_[place] = {number, record};
}

Result<void> RecordDraw::give(const TakeRecord& take) {
  std::ranges::sort(drawn_, {}, &std::pair<std::uint64_t, Record>::first);
  for (auto& [number, record] : std::exchange(drawn_, {})) {
    // The taker may hold the record in another form: here it is let go.
    const Record given = std::move(record);
    if (auto taken = take(given); !taken) return taken;
  }
  return {};
}

}  // namespace tandem::job
