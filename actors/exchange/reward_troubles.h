// The troubles that reward actors have reported about their programs: the newest of each actor,
// until the actor has scored again and a while has passed. Plain state; the exchange calls it and
// raises the events.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/exchange.h"
#include "runtime/base/clock.h"

namespace tandem::actors {

inline constexpr Duration kTroubleShown = std::chrono::minutes(1);  // after the actor scores again
// The least time between two events of one actor, whatever they say: no actor can flood the
// journal.
inline constexpr Duration kTroubleGap = std::chrono::milliseconds(100);
inline constexpr Duration kTroubleRepeated = std::chrono::seconds(30);  // between two like events

class RewardTroubles {
 public:
  // Keeps the trouble, with its texts cut and made valid UTF-8. Returns the kept one if an event
  // should tell it. Returns null if an event was told a short while ago: within kTroubleGap in any
  // case, within kTroubleRepeated if the trouble before was alike, of the same kind and attempt.
  // The pointer is valid until the next call.
  const RewardTrouble* take(RewardTrouble trouble, Time now);
  void scored(const std::string& actor);  // a completion got its score
  void forget(const std::string& actor);  // the actor was scaled away
  std::vector<TroubleView> shown(Time now) const;
  // `reason`, for which a completion has no score, extended by all that is known of the newest
  // trouble.
  std::string explained(const std::string& reason) const;

 private:
  struct Known {
    RewardTrouble trouble;
    Time at, said;  // when the trouble came, and when an event last told one
    bool scored_since = false;
  };
  std::map<std::string, Known> by_actor_;
};

}  // namespace tandem::actors
