// Levels the groups that are leased over the rollouts. A new version reaches them one after the
// other, and the first ones would take all groups of a step that it sets free, up to their
// capacity, while the rest comes a moment later and finds none.
//
// For a while after the first install of a version, groups are therefore shared out as if the
// rollouts that still install it had it: a group that falls to one of these stays admitted. Pure;
// the caller says which rollouts are awaited, and leases. Not responsible for the budget
// (staleness.h), nor for a fixed lag, where a group waits for no install.
//
//   LL-1  Where nothing is awaited, a group goes to the rollout with most room: none that has room
//         is left idle while groups wait.
//   LL-2  A rollout that can take a group is passed over only for an awaited one with more room.
//   LL-3  One version is waited for once, for as long as its first install took, within
//         kLevelWaitLeast and kLevelWaitMost: a rollout that is slow, or dies, delays no group for
//         longer.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"

namespace tandem::scheduler {

// Rollouts on one host differ by some milliseconds.
inline constexpr Duration kLevelWaitLeast = std::chrono::milliseconds(20);
inline constexpr Duration kLevelWaitMost = std::chrono::seconds(10);

struct LeaseCandidate {
  std::int64_t room = 0;  // trajectories, without those of groups that fell to it before
  bool awaited = false;   // it has room, and installs the version by which it may have the group
};
// Whether the group goes to `one` rather than to `other`.
bool goes_rather_to(const LeaseCandidate& one, const LeaseCandidate& other);

class LevelWait {
 public:
  // A rollout has installed the newest version, so long after it was told of it. The end of the
  // wait for the others, where this is the version's first install.
  std::optional<Time> installed(PolicyVersion version, Duration took, Time now);
  // Whether rollouts that install this version are awaited.
  bool waits(PolicyVersion version, Time now) const;

 private:
  PolicyVersion version_{-2};
  Time until_{};
};

}  // namespace tandem::scheduler
