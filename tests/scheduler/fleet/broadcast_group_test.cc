// Stories of one group each, then random fleets in virtual time whose orders a checker follows.
#include "scheduler/fleet/broadcast_group.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::scheduler {
namespace {

using std::chrono::milliseconds;
using Orders = std::vector<BroadcastOrder>;

constexpr int kNccl = 22809;

Time at(std::int64_t ms) { return Time{} + milliseconds(ms); }
ActorId peer(const std::string& actor, std::uint64_t life = 1) {
  return {actor, Incarnation{life}};
}
const ActorId kTrainer = peer("trainer/0");
const ActorId kA = peer("rollout/0"), kB = peer("rollout/1"), kC = peer("rollout/2");

const ActorId& receiver(const BroadcastOrder& order) {
  return std::visit([](const auto& one) -> const ActorId& { return one.to; }, order);
}
std::uint64_t epoch_of(const BroadcastOrder& order) {
  return std::visit([](const auto& one) { return one.epoch; }, order);
}

// "open 1 trainer/0 of 3", "leave 1 rollout/0".
std::vector<std::string> text(const Orders& orders) {
  std::vector<std::string> lines;
  for (const BroadcastOrder& order : orders) {
    const std::string rest = " " + std::to_string(epoch_of(order)) + " " + receiver(order).name;
    if (const auto* open = std::get_if<OpenOrder>(&order))
      lines.push_back("open" + rest + " of " + std::to_string(open->size));
    else if (const auto* join = std::get_if<JoinOrder>(&order))
      lines.push_back("join" + rest + " as " + std::to_string(join->rank));
    else
      lines.push_back((std::holds_alternative<UseOrder>(order) ? "use" : "leave") + rest);
  }
  return lines;
}
using Lines = std::vector<std::string>;

std::string all(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Follows orders and the ends of incarnations; says which invariant an order breaks.
class Checker {
 public:
  void up(const ActorId& one) { up_.insert(one); }
  void ended(const ActorId& one) { up_.erase(one); }
  void left(const ActorId& one, std::uint64_t epoch) { owes_[one].erase(epoch); }
  void now_in_use(std::optional<std::uint64_t> epoch) { in_use_ = epoch; }

  Lines check(const Orders& orders) {
    Lines wrong;
    for (const BroadcastOrder& order : orders) {
      const ActorId& to = receiver(order);
      const std::uint64_t epoch = epoch_of(order);
      if (!up_.contains(to)) wrong.push_back("BG-5: " + to.name);
      if (std::holds_alternative<LeaveOrder>(order)) {
        if (asked_.erase({to, epoch}) == 0) wrong.push_back("BG-3: " + to.name);
        owes_[to].insert(epoch);
      } else if (!std::holds_alternative<UseOrder>(order)) {
        if (std::holds_alternative<OpenOrder>(order) && epoch <= last_) wrong.push_back("BG-1");
        last_ = std::max(last_, epoch);
        if (!owed_nothing_at_open(to, order)) wrong.push_back("BG-2: " + to.name);
        asked_.insert({to, epoch});
      }
    }
    std::set<std::uint64_t> live;
    for (const auto& [one, epoch] : asked_)
      if (up_.contains(one)) live.insert(epoch);
    if (live.size() > 2) wrong.push_back("BG-1: " + std::to_string(live.size()) + " epochs");
    return wrong;
  }

  // BG-3 at the end: only ranks of the epoch in use have had no Leave.
  Lines at_rest() const {
    Lines wrong;
    for (const auto& [one, epoch] : asked_)
      if (up_.contains(one) && epoch != in_use_) wrong.push_back("BG-3: no Leave: " + one.name);
    return wrong;
  }

 private:
  // A Leave that is sent after the Open may overtake the Join: only earlier ones count.
  bool owed_nothing_at_open(const ActorId& to, const BroadcastOrder& order) {
    if (std::holds_alternative<OpenOrder>(order)) owed_at_open_ = owes_;
    return owed_at_open_[to].empty();
  }

  std::set<ActorId> up_;
  std::set<std::pair<ActorId, std::uint64_t>> asked_;
  std::map<ActorId, std::set<std::uint64_t>> owes_, owed_at_open_;
  std::optional<std::uint64_t> in_use_;
  std::uint64_t last_ = 0;
};

// Answers each order as a healthy rank does.
void answer(BroadcastGroup& group, const Orders& orders) {
  for (const BroadcastOrder& order : orders) {
    const ActorId& to = receiver(order);
    const std::uint64_t epoch = epoch_of(order);
    if (std::holds_alternative<OpenOrder>(order)) group.opened(to, epoch);
    if (std::holds_alternative<UseOrder>(order)) group.in_use(to, epoch);
    if (std::holds_alternative<LeaveOrder>(order)) group.left(to, epoch);
    if (std::holds_alternative<JoinOrder>(order)) group.joined(to, epoch);
    if (std::holds_alternative<JoinOrder>(order)) group.joined(kTrainer, epoch);
  }
}

void settle(BroadcastGroup& group, Time now) {
  for (Orders orders = group.decide(now); !orders.empty(); orders = group.decide(now))
    answer(group, orders);
}

BroadcastGroup group_in_use(const std::vector<ActorId>& members) {
  BroadcastGroup group{BroadcastLimits{}};
  group.learner_up(kTrainer, kNccl);
  for (const ActorId& member : members) group.member_up(member, kNccl);
  settle(group, at(0));
  EXPECT_EQ(group.epoch_in_use(), 1u);
  return group;
}

TEST(BroadcastGroup, FormsTheFirstEpoch) {  // BG-1, BG-4
  BroadcastGroup group{BroadcastLimits{}};
  group.member_up(kB, kNccl);
  group.member_up(kA, kNccl);
  EXPECT_TRUE(group.decide(at(0)).empty());
  group.learner_up(kTrainer, kNccl);
  EXPECT_EQ(text(group.decide(at(0))), Lines{"open 1 trainer/0 of 3"});
  group.opened(kTrainer, 1);
  EXPECT_EQ(text(group.decide(at(1))), (Lines{"join 1 rollout/0 as 1", "join 1 rollout/1 as 2"}));
  group.joined(kTrainer, 1);
  group.joined(kA, 1);
  EXPECT_TRUE(group.decide(at(2)).empty());
  EXPECT_NE(
      all(group.explain(at(2000))).find("Since 2 s it is awaited that rollout/1 join epoch 1"),
      std::string::npos);
  group.joined(kB, 1);
  EXPECT_EQ(text(group.decide(at(3))), Lines{"use 1 trainer/0"});
  group.in_use(kTrainer, 1);
  EXPECT_TRUE(group.decide(at(4)).empty());
  EXPECT_FALSE(group.next_deadline());
  EXPECT_TRUE(group.takes_part(kA, 1));
  EXPECT_FALSE(group.takes_part(peer("rollout/0", 2), 1));
  EXPECT_EQ(group.explain(at(5)),
            Lines{"rollout/0 and rollout/1 get broadcasts of trainer/0 in epoch 1."});
}

TEST(BroadcastGroup, KeepsTheEpochInUseUntilTheSwitch) {  // BG-1, BG-3
  BroadcastGroup group = group_in_use({kA});
  group.member_up(kB, kNccl);
  answer(group, group.decide(at(10)));
  answer(group, group.decide(at(11)));
  EXPECT_EQ(group.epoch_in_use(), 1u);
  EXPECT_TRUE(group.takes_part(kA, 1));
  EXPECT_FALSE(group.takes_part(kB, 2));
  EXPECT_EQ(text(group.decide(at(12))), Lines{"use 2 trainer/0"});
  EXPECT_TRUE(group.takes_part(kB, 2));
  group.in_use(kTrainer, 2);
  EXPECT_EQ(text(group.decide(at(13))), (Lines{"leave 1 trainer/0", "leave 1 rollout/0"}));
  EXPECT_TRUE(group.takes_part(kA, 1));  // until it has left
  group.left(kA, 1);
  EXPECT_FALSE(group.takes_part(kA, 1));
  EXPECT_TRUE(group.takes_part(kA, 2));
}

TEST(BroadcastGroup, DrainsAMemberThroughTheNextEpoch) {  // BG-4
  BroadcastGroup group = group_in_use({kA, kB});
  group.leaves(kB.name);
  EXPECT_EQ(text(group.decide(at(10))), Lines{"open 2 trainer/0 of 2"});
  EXPECT_TRUE(group.takes_part(kB, 1));
  EXPECT_NE(all(group.explain(at(10))).find("rollout/1 is in no further epoch, because it drains."),
            std::string::npos);
  group.opened(kTrainer, 2);
  settle(group, at(11));
  EXPECT_EQ(group.epoch_in_use(), 2u);
  EXPECT_FALSE(group.takes_part(kB, 2));
}

TEST(BroadcastGroup, EndsAnEpochWithADeadMember) {  // BG-3, BG-5
  BroadcastGroup group = group_in_use({kA, kB});
  group.gone(kB.name);
  const Orders orders = group.decide(at(10));
  EXPECT_EQ(text(orders), (Lines{"leave 1 trainer/0", "leave 1 rollout/0"}));
  EXPECT_EQ(std::get<LeaveOrder>(orders[0]).why, "rollout/1 is gone");
  EXPECT_FALSE(group.takes_part(kA, 1));
  answer(group, orders);
  settle(group, at(11));
  EXPECT_TRUE(group.takes_part(kA, 2));
}

TEST(BroadcastGroup, FailsAnEpochInUseOnceForAll) {  // BG-3
  BroadcastGroup group = group_in_use({kA, kB});
  group.failed(kA, 1, "a peer is silent", at(10));
  group.failed(kB, 1, "a peer is silent", at(11));
  const Orders orders = group.decide(at(11));
  EXPECT_EQ(text(orders), (Lines{"leave 1 trainer/0", "leave 1 rollout/0", "leave 1 rollout/1"}));
  EXPECT_EQ(std::get<LeaveOrder>(orders[1]).why, "rollout/0 failed in epoch 1: a peer is silent");
  EXPECT_FALSE(group.takes_part(kB, 1));
  answer(group, orders);
  EXPECT_EQ(group.next_deadline(), at(1010));  // the backoff
  EXPECT_TRUE(group.decide(at(1009)).empty());
  settle(group, at(1010));
  EXPECT_EQ(group.epoch_in_use(), 2u);
}

TEST(BroadcastGroup, PaysOneDeadlineForAHungMember) {  // BG-2
  BroadcastGroup group = group_in_use({kA});
  group.member_up(kB, kNccl);
  group.decide(at(10));
  group.opened(kTrainer, 2);
  group.decide(at(10));
  group.joined(kA, 2);
  group.joined(kTrainer, 2);
  EXPECT_EQ(group.next_deadline(), at(30010));
  const Orders orders = group.decide(at(30010));
  ASSERT_EQ(orders.size(), 3u);
  EXPECT_EQ(std::get<LeaveOrder>(orders[0]).why,
            "epoch 2 did not form within 30 s: rollout/1 had not joined");
  group.left(kA, 2);
  group.left(kTrainer, 2);
  settle(group, at(90000));  // it owes an answer: the others are not disturbed again
  EXPECT_EQ(group.epoch_in_use(), 1u);
  EXPECT_FALSE(group.next_deadline());
  EXPECT_NE(all(group.explain(at(90010))).find("rollout/1 has not answered for 60 s"),
            std::string::npos);
  group.left(kB, 2);
  settle(group, at(90020));
  EXPECT_TRUE(group.takes_part(kB, 3));
}

TEST(BroadcastGroup, NamesALearnerThatDoesNotOpen) {  // BG-3
  BroadcastGroup group{BroadcastLimits{}};
  group.learner_up(kTrainer, kNccl);
  group.member_up(kA, kNccl);
  group.decide(at(0));
  const Orders orders = group.decide(at(30000));
  EXPECT_EQ(text(orders), Lines{"leave 1 trainer/0"});
  EXPECT_EQ(std::get<LeaveOrder>(orders[0]).why,
            "epoch 1 did not form within 30 s: the learner trainer/0 had not opened it");
}

TEST(BroadcastGroup, LeavesOutAnotherVersionOfNccl) {  // BG-4
  BroadcastGroup group{BroadcastLimits{}};
  group.learner_up(kTrainer, kNccl);
  group.member_up(kA, 22703);
  EXPECT_TRUE(group.decide(at(0)).empty());
  EXPECT_NE(all(group.explain(at(0))).find("has NCCL 2.27.3 and the learner has NCCL 2.28.9"),
            std::string::npos);
}

TEST(BroadcastGroup, StartsAnewWithANewLearner) {  // BG-1, BG-5
  BroadcastGroup group = group_in_use({kA});
  group.learner_up(peer("trainer/0", 2), kNccl);
  EXPECT_FALSE(group.epoch_in_use());
  const Orders orders = group.decide(at(10));
  EXPECT_EQ(text(orders), Lines{"leave 1 rollout/0"});
  group.in_use(kTrainer, 1);
  group.left(kA, 1);
  const Orders next = group.decide(at(11));
  EXPECT_EQ(text(next), Lines{"open 2 trainer/0 of 2"});
  EXPECT_EQ(receiver(next[0]).incarnation, Incarnation{2});
}

TEST(BroadcastGroup, NumbersItsEpochsAfterThoseOfTheGroupBefore) {  // BG-1
  BroadcastGroup group(BroadcastLimits{}, 7);
  group.learner_up(kTrainer, kNccl);
  group.member_up(kA, kNccl);
  EXPECT_EQ(text(group.decide(at(0))), Lines{"open 8 trainer/0 of 2"});
}

TEST(BroadcastGroup, EndsAFormingEpochWithItsMember) {  // BG-3
  BroadcastGroup group = group_in_use({kA});
  group.member_up(kB, kNccl);
  answer(group, group.decide(at(10)));
  group.decide(at(10));
  group.gone(kB.name);
  EXPECT_EQ(text(group.decide(at(11))), (Lines{"leave 2 trainer/0", "leave 2 rollout/0"}));
  EXPECT_EQ(group.epoch_in_use(), 1u);
}

TEST(BroadcastGroup, LeavesOutTheOneThatAloneFails) {  // BG-4
  BroadcastGroup group = group_in_use({kA});
  group.member_up(kB, kNccl);
  std::int64_t ms = 0;
  for (int i = 0; i < 3; ++i) {
    ms += 100000;
    answer(group, group.decide(at(ms)));
    group.decide(at(ms));
    group.failed(kA, 2 + static_cast<std::uint64_t>(i), "a peer is silent", at(ms));
    settle(group, at(ms));
  }
  settle(group, at(ms + 100000));
  EXPECT_EQ(group.epoch_in_use(), 1u);
  EXPECT_FALSE(group.next_deadline());
  EXPECT_NE(all(group.explain(at(ms))).find("failed 3 times in a row; the last time: a peer"),
            std::string::npos);
  group.member_up(peer("rollout/1", 2), kNccl);
  settle(group, at(ms + 100000));
  EXPECT_TRUE(group.takes_part(peer("rollout/1", 2), 5));
}

TEST(BroadcastGroupChecker, NoticesWrongOrders) {  // BG-1, BG-2, BG-3, BG-5
  const auto wrong = [](const Orders& orders) {
    Checker checker;
    checker.up(kTrainer);
    checker.up(kA);
    return checker.check(orders);
  };
  const OpenOrder open1{kTrainer, 1, 2}, open2{kTrainer, 2, 2}, open3{kTrainer, 3, 2};
  EXPECT_EQ(wrong({open1, JoinOrder{kA, 1, 1, 2}}), Lines{});
  EXPECT_EQ(wrong({open2, open1}), Lines{"BG-1"});
  EXPECT_EQ(wrong({open1, open2, open3}), Lines{"BG-1: 3 epochs"});
  EXPECT_EQ(wrong({open1, LeaveOrder{kTrainer, 1, ""}, open2}), Lines{"BG-2: trainer/0"});
  EXPECT_EQ(wrong({LeaveOrder{kA, 1, ""}}), Lines{"BG-3: rollout/0"});
  EXPECT_EQ(wrong({open1, JoinOrder{kB, 1, 1, 2}}), Lines{"BG-5: rollout/1"});
  Checker checker;
  checker.up(kTrainer);
  EXPECT_EQ(checker.check({open1}), Lines{});
  EXPECT_EQ(checker.at_rest(), Lines{"BG-3: no Leave: trainer/0"});
}

enum class Faults {
  kRandom,  // hangs, deaths, replacements, errors of every rank
  kSick,    // fixed members break each epoch, and other ranks report it
};

// A fleet whose ranks answer after random delays.
class RandomFleet {
 public:
  RandomFleet(std::uint64_t seed, Faults faults) : rng_(seed), faults_(faults) {
    start("trainer/0");
    for (std::uint64_t i = 0; i < 1 + rng_.below(6); ++i) start("rollout/" + std::to_string(i));
    if (faults == Faults::kSick)
      for (const auto& [name, one] : ranks_)
        if (name != "trainer/0" && rng_.below(3) == 0) sick_.insert(name);
  }

  void run() {
    for (int i = 0; i < 120 && !testing::Test::HasFailure(); ++i) {
      if (faults_ == Faults::kRandom) disturb();
      step();
    }
    calm_ = true;
    for (const ActorId& one : std::exchange(hung_, {})) release(one);
    for (const std::string& name : std::exchange(draining_, {})) end(name);
    if (!ranks_.contains("trainer/0")) start("trainer/0");
    for (int i = 0; i < 3000 && !testing::Test::HasFailure() && !at_rest(); ++i) step();
    compare();
  }

 private:
  struct Answer {
    ActorId from;
    BroadcastOrder order;
  };

  bool chance(std::uint64_t one_in) { return rng_.below(one_in) == 0; }
  bool at_rest() const { return quiet_ && answers_.empty() && !group_.next_deadline(); }

  void start(const std::string& name) {
    const ActorId one{name, Incarnation{++lives_}};
    if (ranks_.contains(name)) note_end(name);  // replaced without a word of its end
    ranks_[name] = one;
    checker_.up(one);
    const int version = chance(8) && name != "trainer/0" ? 22703 : kNccl;
    versions_[name] = version;
    if (name == "trainer/0")
      group_.learner_up(one, version);
    else
      group_.member_up(one, version);
  }

  void note_end(const std::string& name) {
    checker_.ended(ranks_.at(name));
    hung_.erase(ranks_.at(name));
    draining_.erase(name);
    ranks_.erase(name);
  }

  void end(const std::string& name) {
    if (!ranks_.contains(name)) return;
    note_end(name);
    group_.gone(name);
  }

  void release(const ActorId& one) {  // it answers late, with the answers that it kept
    for (const Answer& kept : std::exchange(kept_[one], {})) later(kept);
  }

  void disturb() {
    const std::string name = chance(6) ? "trainer/0" : "rollout/" + std::to_string(rng_.below(6));
    const bool up = ranks_.contains(name);
    switch (rng_.below(12)) {
      case 0:
        return end(name);
      case 1:
        return start(name);
      case 2:
        if (up && name != "trainer/0") group_.leaves(name), draining_.insert(name);
        return;
      case 3:
        if (up) hung_.insert(ranks_.at(name));
        return;
      case 4:
        if (up && hung_.erase(ranks_.at(name))) release(ranks_.at(name));
        return;
      case 5:
        if (up) group_.failed(ranks_.at(name), last_epoch_ - rng_.below(2), "injected", now_);
        return;
      default:
        return;
    }
  }

  void later(const Answer& answer) {
    answers_.emplace(now_ + milliseconds(1 + rng_.below(300)), answer);
  }

  void step() {
    const Orders orders = group_.decide(now_);
    checker_.now_in_use(group_.epoch_in_use());
    EXPECT_EQ(checker_.check(orders), Lines{});
    for (const BroadcastOrder& order : orders) {
      last_epoch_ = std::max(last_epoch_, epoch_of(order));
      if (const auto* join = std::get_if<JoinOrder>(&order)) members_[join->epoch].insert(join->to);
      later({receiver(order), order});
    }
    quiet_ = orders.empty();
    advance();
    while (!answers_.empty() && answers_.begin()->first <= now_) {
      quiet_ = false;
      const Answer answer = answers_.extract(answers_.begin()).mapped();
      if (hung_.contains(answer.from))
        kept_[answer.from].push_back(answer);
      else
        tell(answer);
    }
    EXPECT_FALSE(all(group_.explain(now_)).empty());
  }

  // Moves the clock to the next answer or the next deadline.
  void advance() {
    const auto deadline = group_.next_deadline();
    Time next = now_ + milliseconds(50);
    if (calm_ && !answers_.empty()) next = answers_.begin()->first;
    if (calm_ && answers_.empty() && deadline) next = *deadline;
    if (calm_ && deadline) next = std::min(next, *deadline);
    if (!calm_ && chance(10)) next = now_ + milliseconds(20000);
    now_ = std::max(now_, next);
  }

  bool sick(std::uint64_t epoch) {
    return std::ranges::any_of(members_[epoch],
                               [&](const auto& one) { return sick_.contains(one.name); });
  }

  void tell(const Answer& answer) {
    const std::uint64_t epoch = epoch_of(answer.order);
    const ActorId& from = answer.from;
    if (std::holds_alternative<OpenOrder>(answer.order)) group_.opened(from, epoch);
    if (std::holds_alternative<UseOrder>(answer.order)) group_.in_use(from, epoch);
    if (std::holds_alternative<LeaveOrder>(answer.order)) {
      checker_.left(from, epoch);
      group_.left(from, epoch);
    }
    if (!std::holds_alternative<JoinOrder>(answer.order)) return;
    if (sick(epoch)) return report_sick(epoch);
    group_.joined(from, epoch);
    if (ranks_.contains("trainer/0")) group_.joined(ranks_.at("trainer/0"), epoch);
  }

  // A sick member lets a healthy one report first wherever there is one, else the learner; or no
  // rank at all, so that the deadline passes.
  void report_sick(std::uint64_t epoch) {
    if (epoch % 3 == 0) return;
    for (const ActorId& one : members_[epoch])
      if (!sick_.contains(one.name)) return group_.failed(one, epoch, "a peer is silent", now_);
    group_.failed(ranks_.at("trainer/0"), epoch, "a peer is silent", now_);
  }

  void compare() {  // BG-4
    if (testing::Test::HasFailure()) return;
    const std::string words = all(group_.explain(now_));
    if (at_rest()) {
      EXPECT_EQ(checker_.at_rest(), Lines{});
    }
    bool any = false;
    for (const auto& [name, one] : ranks_) {
      if (name == "trainer/0") continue;
      const bool healthy = versions_[name] == kNccl && !sick_.contains(name);
      const bool uses = group_.epoch_in_use() && group_.takes_part(one, *group_.epoch_in_use());
      const bool failed_out = words.find(name + " takes no part until") != std::string::npos;
      any = any || (healthy && !failed_out);
      EXPECT_EQ(uses, healthy && !failed_out) << name << "\n" << words;
      if (faults_ == Faults::kSick) {
        EXPECT_FALSE(healthy && failed_out) << name << "\n" << words;
      }
    }
    EXPECT_EQ(group_.epoch_in_use().has_value(), any) << words;
    // Sick members without a healthy one are tried for ever, with backoff: an epoch may form.
    EXPECT_TRUE(at_rest() || (!any && !sick_.empty())) << words;
  }

  Rng rng_;
  Faults faults_;
  BroadcastGroup group_{BroadcastLimits{}};
  Checker checker_;
  Time now_{};
  bool calm_ = false;
  bool quiet_ = false;  // the last step did nothing
  std::uint64_t lives_ = 0;
  std::uint64_t last_epoch_ = 0;
  std::map<std::string, ActorId> ranks_;
  std::map<std::string, int> versions_;
  std::set<std::string> sick_, draining_;
  std::set<ActorId> hung_;
  std::map<ActorId, std::vector<Answer>> kept_;
  std::multimap<Time, Answer> answers_;
  std::map<std::uint64_t, std::set<ActorId>> members_;
};

TEST(BroadcastGroupProperty, KeepsItsInvariantsInRandomFleets) {  // BG-1 … BG-5
  for_seeds(600, [](std::uint64_t seed) { RandomFleet(seed, Faults::kRandom).run(); });
}

// Every healthy member gets broadcasts in the end, whichever member reports a fault first.
TEST(BroadcastGroupProperty, FindsSickMembersAmongHealthyOnes) {  // BG-4
  for_seeds(300, [](std::uint64_t seed) { RandomFleet(seed, Faults::kSick).run(); });
}

}  // namespace
}  // namespace tandem::scheduler
