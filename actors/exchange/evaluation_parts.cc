#include "actors/exchange/evaluation_parts.h"

#include <algorithm>

namespace tandem::exchange {

bool has_part(const RunView& view, const std::string& actor) {
  return std::ranges::any_of(view.seen.evaluations,
                             [&](const Evaluation& one) { return one.held_by(actor); });
}

std::optional<Time> part_deadline(const RunView& view, const std::string& rollout) {
  if (!has_part(view, rollout)) return std::nullopt;
  const Duration lease = view.config.rollout_lease;
  return view.seen.workers.by_actor.at(rollout).part_since + lease + lease / kPartLooks;
}

bool is_held_up(const RunView& view, const WorkerFacts& rollout) {
  const WorkerSeen& seen = view.seen.workers.by_actor.at(rollout.who.name);
  if (seen.silent || seen.stats.missing || seen.no_room_since) return true;
  return rollout.installed != seen.announced &&
         std::ranges::any_of(view.seen.evaluations, [&](const Evaluation& one) {
           return one.version() == seen.announced && one.held_by(rollout.who.name);
         });
}

}  // namespace tandem::exchange
