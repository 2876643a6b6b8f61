// How a job's reward does: the newest trouble that each reward actor has reported about its
// program, until the actor has scored again and a while has passed, and how many completions in a
// row could not be scored. Plain state; the exchange calls it and raises the events. A resumed run
// begins with a new one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/exchange.h"
#include "runtime/base/clock.h"

namespace tandem::exchange {

inline constexpr Duration kTroubleShown = std::chrono::minutes(1);  // after the actor scores again
// The least time between two events of one actor, whatever they say: no actor can flood the
// journal.
inline constexpr Duration kTroubleGap = std::chrono::milliseconds(100);
inline constexpr Duration kTroubleRepeated = std::chrono::seconds(30);  // between two like events

// A reward that fails for the first so many completions, each with all of its tries, and has scored
// none, will not score the next ones either: the job ends. With eight completions per group these
// are the first eight groups.
inline constexpr std::int64_t kFirstFailuresMax = 64;
// After so many failures in a row people are told that the reward fails for everything.
inline constexpr std::int64_t kFailuresTold = 16;

class RewardTroubles {
 public:
  // Keeps the trouble, with its texts cut and made valid UTF-8. Returns the kept one if an event
  // should tell it. Returns null if an event was told a short while ago: within kTroubleGap in any
  // case, within kTroubleRepeated if the trouble before was alike, of the same kind and attempt.
  // The pointer is valid until the next call.
  const messages::RewardTrouble* take(messages::RewardTrouble trouble, Time now);
  // Takes the result of one completion: a score, or a failure after all tries.
  void judged(const std::string& actor, const messages::TrajectoryScore& score);
  // Whether the first kFirstFailuresMax completions failed, and none was scored.
  bool never_worked() const { return !ever_scored_ && failed_in_row_ >= kFirstFailuresMax; }
  // For people: that no completion is scored, and why. nullopt: some are, or nothing is known yet.
  std::optional<std::string> all_fail() const;
  void forget(const std::string& actor);  // the actor was scaled away
  std::vector<messages::TroubleView> shown(Time now) const;
  // `reason`, for which a completion has no score, extended by all that is known of the newest
  // trouble.
  std::string explained(const std::string& reason) const;

 private:
  struct Known {
    messages::RewardTrouble trouble;
    Time at, said;  // when the trouble came, and when an event last told one
    bool scored_since = false;
  };
  std::map<std::string, Known> by_actor_;
  bool ever_scored_ = false;
  std::int64_t failed_in_row_ = 0;  // completions since the last one that was scored
  std::string last_failure_;        // the reason of the last of them
};

}  // namespace tandem::exchange
