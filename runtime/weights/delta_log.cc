#include "runtime/weights/delta_log.h"

#include <algorithm>
#include <utility>

namespace tandem::weights {

std::vector<DeltaOffer> changes_between(std::span<const DeltaOffer> offered, WeightOffer from,
                                        WeightOffer to, std::uint64_t bytes_end) {
  std::vector<DeltaOffer> changes;
  std::uint64_t bytes = 0;
  // Backwards. The text of another process may lead in a circle; no way has more steps than there
  // are deltas.
  for (WeightOffer at = to; at != from;) {
    const auto last =
        std::ranges::find(offered, at, [](const DeltaOffer& d) { return d.name.next; });
    if (last == offered.end() || changes.size() == offered.size()) return {};
    if (last->bytes >= bytes_end - bytes) return {};
    bytes += last->bytes;
    changes.push_back(*last);
    at = last->name.base;
  }
  std::ranges::reverse(changes);
  return changes;
}

void DeltaLog::add(Delta delta) {
  bytes_ += delta.bytes.size();
  kept_.push_back(std::make_shared<const Delta>(std::move(delta)));
  while (kept_.size() > kDeltasMax || bytes_ > bytes_max_) {
    bytes_ -= kept_.front()->bytes.size();
    kept_.pop_front();
  }
}

std::shared_ptr<const Delta> DeltaLog::find(const DeltaName& name) const {
  const auto found =
      std::ranges::find_if(kept_, [&](const auto& delta) { return delta->name == name; });
  return found == kept_.end() ? nullptr : *found;
}

std::vector<DeltaOffer> DeltaLog::offers() const {
  std::vector<DeltaOffer> all;
  for (const auto& delta : kept_)
    all.push_back({.name = delta->name, .bytes = delta->bytes.size()});
  return all;
}

}  // namespace tandem::weights
