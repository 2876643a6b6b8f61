// What reward actors said of their programs' troubles: the newest of each actor, until it has
// scored again and a while has passed. Plain state; the exchange moves it and raises the events.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/exchange.h"
#include "runtime/base/clock.h"

namespace tandem::actors {

inline constexpr Duration kTroubleShown = std::chrono::minutes(1);  // after the actor scores again
// Between two events of one actor, whatever they say: no actor can flood the journal.
inline constexpr Duration kTroubleGap = std::chrono::milliseconds(100);
inline constexpr Duration kTroubleRepeated = std::chrono::seconds(30);  // as an event, where alike

class RewardTroubles {
 public:
  // Keeps it, its text cut and made valid. The kept one where an event should say it; null where
  // the actor's last one was alike, of the same kind and attempt, and was said a short while ago.
  const RewardTrouble* take(RewardTrouble trouble, Time now);
  void scored(const std::string& actor);  // a completion got its score
  void forget(const std::string& actor);  // it was scaled away
  std::vector<TroubleView> shown(Time now) const;
  // `reason`, why a completion has no score, with all that is known of the newest trouble.
  std::string explained(const std::string& reason) const;

 private:
  struct Known {
    RewardTrouble trouble;
    Time at, said;
    bool scored_since = false;
  };
  std::map<std::string, Known> by_actor_;
};

}  // namespace tandem::actors
