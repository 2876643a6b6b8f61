#include "actors/exchange/damaged_versions.h"

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
  if (++turn.seen.workers.by_actor[from.name].damaged_in_row == kDamagedMax)
    return condemn(turn, from, damaged.message + ", for the third time in a row");
  turn.notify(messages::ExchangeEvent{turn.config.job, from.name,
                                      damaged.message + "; the learner publishes it again",
                                      messages::EventLevel::kWarning});
  const PolicyVersion oldest = versions.oldest_retained;
  turn.record(VersionWithdrawn{from, damaged.version});
  if (versions.oldest_retained > oldest) announce_again(turn);  // it is lost for good
  turn.wake();
}

}  // namespace tandem::exchange
