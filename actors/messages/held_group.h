// The groups that a rollout or reward holds under leases, until the exchange has journalled its
// answers. It tells them to an exchange that follows another one (actors/exchange/follow.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/wire/fields.h"

namespace tandem::messages {

// Its outcome has not been told, or not for sure.
struct HeldGroup {
  GroupId group;
  std::uint32_t attempt = 0;  // the lease's number
};
TANDEM_WIRE(HeldGroup, group, attempt)
inline constexpr std::size_t kHeldMax = 65'536;  // groups of one actor

// `Answer` has a group and an attempt. For one thread.
template <class Answer>
class HeldGroups {
 public:
  void lease(GroupId group, std::uint32_t attempt) { leases_[group] = attempt; }
  // The lease is over, and no answer will come.
  void forget(GroupId group) { leases_.erase(group); }
  void forget_all() { leases_.clear(); }
  void tell(const Answer& answer) { told_[answer.group] = answer; }

  // The answers are journalled, taken or not.
  void kept(const std::vector<GroupId>& groups) {
    for (const GroupId group : groups) {
      const auto told = told_.find(group);
      if (told == told_.end()) continue;
      // The group may be under another lease by now.
      const auto lease = leases_.find(group);
      if (lease != leases_.end() && lease->second == told->second.attempt) leases_.erase(lease);
      told_.erase(told);
    }
  }

  std::vector<HeldGroup> held() const {
    std::vector<HeldGroup> all;
    for (const auto& [group, attempt] : leases_) all.push_back({group, attempt});
    return all;
  }
  std::vector<Answer> told() const {
    std::vector<Answer> all;
    for (const auto& [group, answer] : told_) all.push_back(answer);
    return all;
  }

 private:
  std::map<GroupId, std::uint32_t> leases_;
  std::map<GroupId, Answer> told_;
};

}  // namespace tandem::messages
