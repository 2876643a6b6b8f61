#include "actors/runs/lost_events.h"

#include <utility>

#include "runtime/base/log.h"

namespace tandem::runs {

void LostEvents::note(const Result<void>& kept) {
  if (kept) {
    if (const std::uint64_t lost = std::exchange(count_, 0); lost > 0)
      log::warn("event=journal_works_again where=\"{}\" events_lost={}", where_, lost);
    return;
  }
  if (++count_ > 1) return;
  where_ = kept.error().where;
  log::error("event=journal_failed where=\"{}\" message=\"{}\"", where_, kept.error().message);
}

}  // namespace tandem::runs
