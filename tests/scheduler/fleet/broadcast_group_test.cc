#include "scheduler/fleet/broadcast_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>

#include "runtime/base/rng.h"

namespace tandem::scheduler {
namespace {

constexpr int kNccl = 22809;
const BroadcastPeer kLearner{"learner/0", Incarnation{1}};

BroadcastPeer rollout(int index, std::uint64_t incarnation = 1) {
  return {"rollout/" + std::to_string(index), Incarnation{incarnation}};
}

Time at(double seconds) { return Time{} + Duration(static_cast<std::int64_t>(seconds * 1e9)); }

// "open 1 learner/0 3", "join 1 rollout/0 1/3", "use 1 learner/0", "leave 1 rollout/0"
std::string text(const BroadcastOrder& order) {
  return std::visit(
      [](const auto& one) {
        using Order = std::decay_t<decltype(one)>;
        const std::string who = std::to_string(one.epoch) + " " + one.to.actor;
        if constexpr (std::is_same_v<Order, OpenOrder>)
          return "open " + who + " " + std::to_string(one.size);
        else if constexpr (std::is_same_v<Order, JoinOrder>)
          return "join " + who + " " + std::to_string(one.rank) + "/" + std::to_string(one.size);
        else if constexpr (std::is_same_v<Order, UseOrder>)
          return "use " + who;
        else
          return "leave " + who;
      },
      order);
}

using Texts = std::vector<std::string>;

class Group : public testing::Test {
 protected:
  Texts decide(double now) {
    Texts texts;
    for (const BroadcastOrder& order : group.decide(at(now))) texts.push_back(text(order));
    return texts;
  }
  bool explains(const std::string& part, double now) const {
    for (const std::string& line : group.explain(at(now)))
      if (line.find(part) != std::string::npos) return true;
    return false;
  }
  void up(int members) {
    group.learner_up(kLearner, kNccl);
    for (int i = 0; i < members; ++i) group.member_up(rollout(i), kNccl);
  }
  // All ranks do what the epoch needs, until it is in use.
  void bring_into_use(std::uint64_t epoch, const std::vector<int>& members, double now) {
    group.opened(kLearner, epoch);
    group.joined(kLearner, epoch);
    for (const int i : members) group.joined(rollout(i), epoch);
    decide(now);
    group.in_use(kLearner, epoch);
  }

  BroadcastGroup group{BroadcastLimits{}};
};

TEST_F(Group, BG1AnEpochFormsAndAJoinerPausesNobody) {
  EXPECT_EQ(decide(0), Texts{});
  group.member_up(rollout(1), kNccl);
  group.member_up(rollout(0), kNccl);
  EXPECT_EQ(decide(0), Texts{}) << "without the learner there is no epoch";
  group.learner_up(kLearner, kNccl);
  EXPECT_EQ(decide(1), Texts{"open 1 learner/0 3"});
  EXPECT_EQ(group.next_deadline(), at(31));
  group.opened(kLearner, 1);
  EXPECT_EQ(decide(1), (Texts{"join 1 rollout/0 1/3", "join 1 rollout/1 2/3"}));
  group.joined(rollout(1), 1);
  group.joined(kLearner, 1);
  EXPECT_TRUE(explains("rollout/0 did not join yet", 5));
  group.joined(rollout(0), 1);
  EXPECT_EQ(decide(2), Texts{"use 1 learner/0"});
  EXPECT_TRUE(group.takes_part(rollout(0), 1)) << "the learner may use it from now on";
  group.in_use(kLearner, 1);
  EXPECT_EQ(decide(2), Texts{});
  EXPECT_EQ(group.epoch_in_use(), 1u);
  EXPECT_EQ(group.next_deadline(), std::nullopt);

  group.member_up(rollout(2), kNccl);
  EXPECT_EQ(decide(3), Texts{"open 2 learner/0 4"});
  EXPECT_TRUE(group.takes_part(rollout(0), 1)) << "the first goes on meanwhile";
  EXPECT_FALSE(group.takes_part(rollout(2), 2));
  bring_into_use(2, {0, 1, 2}, 4);
  EXPECT_EQ(decide(4), (Texts{"leave 1 learner/0", "leave 1 rollout/0", "leave 1 rollout/1"}));
  EXPECT_FALSE(group.takes_part(rollout(0), 1));
  EXPECT_TRUE(group.takes_part(rollout(2), 2));
}

TEST_F(Group, OneThatDrainsTakesPartUntilTheNextEpochIsInUse) {
  up(2);
  decide(0);
  bring_into_use(1, {0, 1}, 0);
  group.leaves("rollout/1");
  EXPECT_EQ(decide(1), Texts{"open 2 learner/0 2"});
  EXPECT_TRUE(group.takes_part(rollout(1), 1));
  bring_into_use(2, {0}, 2);
  EXPECT_EQ(decide(2), (Texts{"leave 1 learner/0", "leave 1 rollout/0", "leave 1 rollout/1"}));
  group.gone("rollout/1");
  EXPECT_EQ(decide(3), Texts{});
  EXPECT_EQ(group.epoch_in_use(), 2u);
}

TEST_F(Group, BG5ADeathEndsItsEpochAndTheOthersFormTheNext) {
  up(2);
  decide(0);
  bring_into_use(1, {0, 1}, 0);
  decide(0);
  group.gone("rollout/1");
  EXPECT_EQ(decide(1), (Texts{"leave 1 learner/0", "leave 1 rollout/0"}));
  EXPECT_FALSE(group.takes_part(rollout(0), 1));
  group.left(kLearner, 1);
  group.left(rollout(0), 1);
  EXPECT_EQ(decide(1), Texts{"open 2 learner/0 2"});
  // Its next incarnation is another member: the epoch that forms goes on, and the next has it.
  group.member_up(rollout(1, 2), kNccl);
  bring_into_use(2, {0}, 2);
  decide(2);
  group.left(kLearner, 1);
  EXPECT_EQ(group.epoch_in_use(), 2u);
}

TEST_F(Group, BG2OneThatHangsCostsTheOthersOneDeadline) {
  up(3);
  EXPECT_EQ(decide(0), Texts{"open 1 learner/0 4"});
  group.opened(kLearner, 1);
  decide(0);
  group.joined(rollout(0), 1);
  EXPECT_EQ(decide(29), Texts{});
  EXPECT_EQ(decide(30), (Texts{"leave 1 learner/0", "leave 1 rollout/0", "leave 1 rollout/1",
                               "leave 1 rollout/2"}));
  group.left(kLearner, 1);
  group.left(rollout(0), 1);
  group.left(rollout(2), 1);
  EXPECT_EQ(decide(30.5), Texts{});
  EXPECT_EQ(group.next_deadline(), at(31));
  EXPECT_EQ(decide(31), Texts{"open 2 learner/0 3"});
  bring_into_use(2, {0, 2}, 32);
  EXPECT_TRUE(explains("rollout/1 has not left epoch 1 since 9 s", 39));
  // It wakes up.
  group.left(rollout(1), 1);
  group.left(kLearner, 1);
  EXPECT_EQ(decide(40), Texts{"open 3 learner/0 4"});
}

TEST_F(Group, BG3AFailureEndsTheEpochOnceForAll) {
  up(2);
  decide(0);
  bring_into_use(1, {0, 1}, 0);
  decide(0);
  group.failed(rollout(1), 1, "timed out in broadcast 7", at(10));
  group.failed(kLearner, 1, "timed out in broadcast 7", at(10));
  EXPECT_EQ(decide(10), (Texts{"leave 1 learner/0", "leave 1 rollout/0", "leave 1 rollout/1"}));
  group.failed(rollout(0), 1, "late", at(10));
  EXPECT_EQ(decide(10), Texts{});
  for (const BroadcastPeer& peer : {kLearner, rollout(0), rollout(1)}) group.left(peer, 1);
  EXPECT_TRUE(explains("of the last one it failed at rollout/1: timed out in broadcast 7", 10.1));
  EXPECT_EQ(group.next_deadline(), at(11));
  EXPECT_EQ(decide(11), Texts{"open 2 learner/0 3"});
}

TEST_F(Group, AnotherVersionOfNcclIsLeftOutByName) {
  group.learner_up(kLearner, kNccl);
  group.member_up(rollout(0), 23003);
  EXPECT_EQ(decide(0), Texts{});
  EXPECT_TRUE(
      explains("rollout/0 takes part in no broadcast: it has NCCL 2.30.3, and learner/0 has "
               "2.28.9",
               0));
}

TEST_F(Group, ALearnerThatStartsAgainFindsItsMembersWaiting) {
  up(1);
  decide(0);
  bring_into_use(1, {0}, 0);
  decide(0);
  const BroadcastPeer next{"learner/0", Incarnation{2}};
  group.learner_up(next, kNccl);
  EXPECT_EQ(decide(1), Texts{"leave 1 rollout/0"});
  group.left(rollout(0), 1);
  EXPECT_EQ(decide(1), Texts{"open 2 learner/0 2"});
  group.opened(kLearner, 2);
  EXPECT_EQ(decide(1), Texts{}) << "the incarnation before has nothing to say";
}

// The sick one makes every epoch fail that it is asked into, and another reports it first.
TEST_F(Group, BG4OneThatFailsAlwaysLeavesTheOthersTheirBroadcasts) {
  up(3);
  double now = 0;
  for (int i = 0; i < 200 && !group.epoch_in_use(); ++i) {
    for (const BroadcastOrder& order : group.decide(at(now))) {
      if (const auto* open = std::get_if<OpenOrder>(&order)) {
        group.opened(open->to, open->epoch);
        group.joined(open->to, open->epoch);
      } else if (const auto* join = std::get_if<JoinOrder>(&order)) {
        if (join->to == rollout(2))
          group.failed(join->size > 2 ? rollout(0) : rollout(2), join->epoch, "no peer", at(now));
        else
          group.joined(join->to, join->epoch);
      } else if (const auto* use = std::get_if<UseOrder>(&order)) {
        group.in_use(use->to, use->epoch);
      } else {
        const auto& leave = std::get<LeaveOrder>(order);
        group.left(leave.to, leave.epoch);
      }
    }
    now += 1;
  }
  ASSERT_TRUE(group.epoch_in_use());
  EXPECT_TRUE(group.takes_part(rollout(0), *group.epoch_in_use()));
  EXPECT_TRUE(group.takes_part(rollout(1), *group.epoch_in_use()));
  EXPECT_TRUE(
      explains("rollout/2 takes part in no broadcast, because alone with the learner it "
               "failed at rollout/2: no peer",
               now));
}

// A fleet whose ranks answer late, hang, fail, die and come back, in virtual time from one seed.
class Fleet {
 public:
  explicit Fleet(std::uint64_t seed) : rng_(seed) {
    for (int i = static_cast<int>(rng_.below(6)); i >= 0; --i) member_starts(i);
    if (rng_.below(4) > 0) learner_starts();
  }

  // Empty, or which invariant does not hold.
  std::string run() {
    for (step_ = 0; step_ < kSteps; ++step_) {
      now_ += 0.1 + static_cast<double>(rng_.below(30)) / 10;
      if (step_ < kFaultsEnd && rng_.below(4) == 0) disturb();
      if (step_ == kFaultsEnd) calm();
      if (!settle()) return wrong_;
    }
    return at_rest();
  }

  // Of the orders given, as the ranks were to get them: for the proof that it is looked at.
  std::string check(const BroadcastOrder& order) {
    const BroadcastPeer to = std::visit([](const auto& one) { return one.to; }, order);
    const std::uint64_t epoch = std::visit([](const auto& one) { return one.epoch; }, order);
    const auto rank = ranks_.find(to.actor);
    if (rank == ranks_.end() || rank->second.peer != to) return "BG-5: " + text(order);
    Rank& known = rank->second;
    if (std::holds_alternative<LeaveOrder>(order))
      return known.asked.erase(epoch) == 1 ? "" : "BG-3: " + text(order);
    if (std::holds_alternative<UseOrder>(order)) return "";
    if (!known.owes.empty()) return "BG-2: " + text(order);
    if (std::holds_alternative<OpenOrder>(order) && epoch <= epoch_last_)
      return "BG-1: " + text(order);
    epoch_last_ = std::max(epoch_last_, epoch);
    known.asked.insert(epoch);
    if (known.asked.size() > 2) return "BG-1: a rank is of three epochs: " + text(order);
    return "";
  }

 private:
  static constexpr int kSteps = 400, kFaultsEnd = 250;

  struct Rank {
    BroadcastPeer peer;
    int nccl = kNccl;
    bool hangs = false, drains = false;
    std::set<std::uint64_t> asked = {}, owes = {};
    std::deque<BroadcastOrder> inbox = {};
  };

  void member_starts(int index) {
    const BroadcastPeer peer = rollout(index, ++incarnations_);
    ranks_[peer.actor] = Rank{.peer = peer, .nccl = rng_.below(12) == 0 ? 23003 : kNccl};
    group_.member_up(peer, ranks_[peer.actor].nccl);
  }
  void learner_starts() {
    const BroadcastPeer peer{"learner/0", Incarnation{++incarnations_}};
    ranks_[peer.actor] = Rank{.peer = peer};
    group_.learner_up(peer, kNccl);
  }

  void disturb() {
    const int index = static_cast<int>(rng_.below(6));
    const std::string name = rollout(index).actor;
    const bool there = ranks_.contains(name);
    switch (rng_.below(6)) {
      case 0:
        return member_starts(index);  // replaces what is there
      case 1:
        if (there) group_.gone(name);
        ranks_.erase(name);
        return;
      case 2:
        if (there) ranks_[name].hangs = !ranks_[name].hangs;
        return;
      case 3:
        if (there) ranks_[name].drains = true;
        return group_.leaves(name);
      case 4:
        if (rng_.below(3) > 0) return;
        if (rng_.below(2) == 0) return learner_starts();
        group_.gone("learner/0");
        ranks_.erase("learner/0");
        return;
      default:
        fail_soon_ = true;
    }
  }

  void calm() {
    if (!ranks_.contains("learner/0")) learner_starts();
    for (auto& [name, rank] : ranks_) rank.hangs = false;
    fail_soon_ = false;
  }

  // The orders of this moment, and some of the answers to those before.
  bool settle() {
    for (const BroadcastOrder& order : group_.decide(at(now_))) {
      const std::string complaint = check(order);
      if (wrong_.empty()) wrong_ = complaint;
      const BroadcastPeer to = std::visit([](const auto& one) { return one.to; }, order);
      if (!ranks_.contains(to.actor)) continue;
      Rank& rank = ranks_[to.actor];
      if (const auto* leave = std::get_if<LeaveOrder>(&order)) rank.owes.insert(leave->epoch);
      rank.inbox.push_back(order);
    }
    const std::optional<Time> next = group_.next_deadline();
    if (wrong_.empty() && next && *next <= at(now_))
      wrong_ = "a deadline has passed, and nothing was done";
    for (auto& [name, rank] : ranks_)
      while (!rank.hangs && !rank.inbox.empty() && (step_ >= kFaultsEnd || rng_.below(2) == 0)) {
        const BroadcastOrder order = rank.inbox.front();
        rank.inbox.pop_front();
        answer(rank, order);
      }
    return wrong_.empty();
  }

  void answer(Rank& rank, const BroadcastOrder& order) {
    const std::uint64_t epoch = std::visit([](const auto& one) { return one.epoch; }, order);
    if (std::holds_alternative<LeaveOrder>(order)) {
      rank.owes.erase(epoch);
      return group_.left(rank.peer, epoch);
    }
    if (std::exchange(fail_soon_, false))
      return group_.failed(rank.peer, epoch, "made to fail", at(now_));
    if (std::holds_alternative<UseOrder>(order)) return group_.in_use(rank.peer, epoch);
    if (std::holds_alternative<OpenOrder>(order)) group_.opened(rank.peer, epoch);
    joins_[epoch].insert(rank.peer);
    // NCCL's start ends on all ranks when the last has come.
    const auto asked = [&](const auto& one) { return one.second.asked.contains(epoch); };
    const auto size = static_cast<std::size_t>(std::ranges::count_if(ranks_, asked));
    if (joins_[epoch].size() < std::max<std::size_t>(2, size)) return;
    for (const BroadcastPeer& peer : joins_[epoch]) group_.joined(peer, epoch);
  }

  bool left_out(const std::string& name) const {
    const std::vector<std::string> lines = group_.explain(at(now_));
    return std::ranges::any_of(lines, [&](const std::string& line) {
      return line.starts_with(name + " takes part in no broadcast, because alone");
    });
  }

  std::string at_rest() {
    std::set<BroadcastPeer> wanted;
    for (const auto& [name, rank] : ranks_)
      if (name != "learner/0" && !rank.drains && rank.nccl == kNccl && !left_out(name))
        wanted.insert(rank.peer);
    const auto epoch = group_.epoch_in_use();
    if (wanted.empty()) return "";
    if (!epoch)
      return "BG-4: no epoch is in use, with " + std::to_string(wanted.size()) + " wanted";
    for (const auto& [name, rank] : ranks_) {
      if (name == "learner/0") continue;
      if (group_.takes_part(rank.peer, *epoch) != wanted.contains(rank.peer))
        return "BG-4: " + name;
      if (rank.asked.size() > 1) return "BG-3: " + name + " was never told to leave an epoch";
    }
    return "";
  }

  Rng rng_;
  BroadcastGroup group_{BroadcastLimits{.forming_max = std::chrono::seconds(10)}};
  std::map<std::string, Rank> ranks_;
  std::map<std::uint64_t, std::set<BroadcastPeer>> joins_;
  std::uint64_t incarnations_ = 0, epoch_last_ = 0;
  double now_ = 0;
  int step_ = 0;
  bool fail_soon_ = false;
  std::string wrong_;
};

TEST(GroupProperty, BG1ToBG5HoldWhateverTheRanksDo) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed)
    ASSERT_EQ(Fleet(seed).run(), "") << "seed " << seed;
}

TEST(GroupProperty, TheCheckerSeesWrongOrders) {
  Fleet fleet(1);
  const BroadcastPeer stranger{"rollout/0", Incarnation{1000}};
  EXPECT_EQ(fleet.check(JoinOrder{.to = stranger, .epoch = 1}), "BG-5: join 1 rollout/0 0/0");
  Fleet other(2);
  for (std::uint64_t incarnation = 1; incarnation <= 6; ++incarnation) {
    const BroadcastPeer peer{"rollout/0", Incarnation{incarnation}};
    if (other.check(JoinOrder{.to = peer, .epoch = 1}) != "") continue;
    EXPECT_EQ(other.check(LeaveOrder{.to = peer, .epoch = 1, .why = "test"}), "");
    EXPECT_EQ(other.check(LeaveOrder{.to = peer, .epoch = 1, .why = "test"}),
              "BG-3: leave 1 rollout/0");
    return;
  }
  FAIL() << "there is no rollout/0 in fleet 2";
}

}  // namespace
}  // namespace tandem::scheduler
