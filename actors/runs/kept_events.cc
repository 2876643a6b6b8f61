#include "actors/runs/kept_events.h"

#include <algorithm>
#include <utility>

#include "runtime/base/clock.h"

namespace tandem::runs {

namespace fs = std::filesystem;

void KeptEvents::keep_in(const std::string& job, const fs::path& run_dir) {
  kept_.insert_or_assign(job, Kept{run_dir, std::nullopt, {}});
}

void KeptEvents::append(const ClusterEvent& event) {
  const auto kept = kept_.find(event.subject.substr(0, event.subject.find('/')));
  if (kept != kept_.end()) kept->second.lost.note(append(kept->second, event));
}

Result<void> KeptEvents::append(Kept& kept, const ClusterEvent& event) {
  if (!kept.journal) {
    auto begun = ClusterJournal::begin(kept.run_dir, unix_ms());
    if (!begun) return begun.error();
    kept.journal.emplace(*std::move(begun));
  }
  return kept.journal->append(event);
}

std::int64_t last_event_of(const fs::path& home, const fs::path& run_dir) {
  std::int64_t last = 0;
  for (const fs::path& folder : {home, run_dir})
    if (const auto newest = announced_events(folder, run_dir.filename(), {.since = {}, .limit = 1}))
      for (const ClusterEvent& event : *newest) last = std::max(last, event.seq);
  return last;
}

}  // namespace tandem::runs
