#include "actors/exchange/damaged_versions.h"

#include <utility>

#include "actors/exchange/checks.h"
#include "actors/exchange/publications.h"
#include "actors/exchange/workers.h"

namespace tandem::exchange {

void take(Turn& turn, const messages::VersionDamaged& damaged) {
  const ActorId& from = damaged.from;
  const VersionFacts& versions = turn.facts.versions;
  if (!turn.facts.workers.find(messages::Role::kRollout, from)) return;
  if (comes_too_early(turn, from)) return;
  if (!versions.offered.contains(damaged.version)) return;  // that is known
  DamagedVersion& found = turn.seen.workers.by_actor[from.name].damaged;
  if (std::exchange(found.version, damaged.version) != damaged.version) found.times = 0;
  if (++found.times == kDamagedMax)
    return condemn(turn, from, damaged.message + ", for the third time since it was published");
  turn.notify(messages::ExchangeEvent{turn.config.job, from.name,
                                      damaged.message + "; the learner publishes it again",
                                      messages::EventLevel::kWarning});
  const PolicyVersion oldest = versions.oldest_retained;
  turn.record(VersionWithdrawn{from, damaged.version});
  if (versions.oldest_retained > oldest) announce_again(turn);  // it is lost for good
  turn.wake();
}

}  // namespace tandem::exchange
