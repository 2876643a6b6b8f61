// Groups are shared out evenly over rollouts that install a version one after the other, and no
// rollout makes them wait for long.
#include "scheduler/fleet/lease_level.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::scheduler {
namespace {

using namespace std::chrono_literals;

constexpr PolicyVersion kVersion{7};

TEST(LeaseLevel, MostRoomWinsAndAtEqualRoomWhoeverIsReady) {
  EXPECT_TRUE(goes_rather_to({.room = 5}, {.room = 4}));
  EXPECT_TRUE(goes_rather_to({.room = 5, .awaited = true}, {.room = 4}));
  EXPECT_TRUE(goes_rather_to({.room = 4}, {.room = 4, .awaited = true}));
  EXPECT_FALSE(goes_rather_to({.room = 4, .awaited = true}, {.room = 4}));
  EXPECT_FALSE(goes_rather_to({.room = 4}, {.room = 4})) << "the first one keeps it";
}

TEST(LeaseLevel, AVersionIsWaitedForOnceAsLongAsItsFirstInstallTook_LL3) {
  LevelWait wait;
  EXPECT_FALSE(wait.waits(kVersion, Time{} + 1s));
  EXPECT_EQ(wait.installed(kVersion, 3s, Time{} + 10s), Time{} + 13s);
  EXPECT_EQ(wait.installed(kVersion, 9s, Time{} + 12s), std::nullopt);
  EXPECT_TRUE(wait.waits(kVersion, Time{} + 12s));
  EXPECT_FALSE(wait.waits(PolicyVersion{8}, Time{} + 12s));
  EXPECT_FALSE(wait.waits(kVersion, Time{} + 13s));
  EXPECT_EQ(wait.installed(PolicyVersion{6}, 1s, Time{} + 14s), std::nullopt) << "an older one";
  EXPECT_EQ(wait.installed(PolicyVersion{8}, 1ms, Time{} + 20s), Time{} + 20s + kLevelWaitLeast);
  EXPECT_EQ(wait.installed(PolicyVersion{9}, 1h, Time{} + 30s), Time{} + 30s + kLevelWaitMost);
}

// A fleet that is idle when a version comes out: each rollout installs it at a time of its own, or
// never does.
struct Fleet {
  struct Rollout {
    std::int64_t room = 0, groups = 0;
    Time installs{std::numeric_limits<std::int64_t>::max()};
  };
  std::vector<Rollout> rollouts;
  std::int64_t waiting = 0, n = 4;
  LevelWait wait;

  bool ready(const Rollout& one, Time now) const { return one.installs <= now; }

  // As the exchange leases: group after group, those that fall to an awaited rollout stay.
  void lease(Time now) {
    std::vector<std::int64_t> kept(rollouts.size());
    for (std::int64_t group = waiting; group > 0; --group) {
      LeaseCandidate best{.room = n - 1};
      std::size_t to = rollouts.size();
      for (std::size_t i = 0; i < rollouts.size(); ++i) {
        const LeaseCandidate one{.room = rollouts[i].room - kept[i] * n,
                                 .awaited = !ready(rollouts[i], now)};
        if (one.awaited && !wait.waits(kVersion, now)) continue;
        if (goes_rather_to(one, best)) best = one, to = i;
      }
      if (to == rollouts.size()) break;
      if (best.awaited) {
        ++kept[to];
        continue;
      }
      rollouts[to].room -= n;
      ++rollouts[to].groups;
      --waiting;
    }
    check(kept, now);
  }
  void check(const std::vector<std::int64_t>& kept, Time now) const {
    if (waiting == 0) return;
    for (const Rollout& one : rollouts) {
      if (!ready(one, now) || one.room < n) continue;
      ASSERT_TRUE(wait.waits(kVersion, now)) << "LL-1";
      bool awaited = false;
      for (std::size_t i = 0; i < rollouts.size(); ++i)
        awaited |= kept[i] > 0 && rollouts[i].room - (kept[i] - 1) * n > one.room;
      ASSERT_TRUE(awaited) << "LL-2";
    }
  }
};

TEST(LeaseLevel, GroupsAreLevelledAndNoneWaitsBehindTheEnd_LL1_LL2_LL3) {
  for_seeds(300, [](std::uint64_t seed) {
    Rng rng(seed);
    const auto draw = [&rng](std::uint64_t below) {
      return static_cast<std::int64_t>(rng.below(below));
    };
    Fleet fleet;
    fleet.rollouts.resize(1 + rng.below(40));
    fleet.waiting = 1 + draw(200);
    const std::int64_t room = fleet.n * (1 + draw(100));
    const bool in_time = rng.below(2) == 0;
    std::vector<Time> installs;
    for (Fleet::Rollout& one : fleet.rollouts) {
      one.room = room;
      if (!in_time && rng.below(4) == 0) continue;  // it never does
      one.installs = Time{} + 1s + std::chrono::milliseconds(draw(in_time ? 900 : 4000));
      installs.push_back(one.installs);
    }
    if (installs.empty()) return;
    std::ranges::sort(installs);
    const std::int64_t all = fleet.waiting, slots = room / fleet.n;
    const Time end = *fleet.wait.installed(kVersion, installs.front() - Time{}, installs.front());
    for (const Time at : installs) {
      if (at > end) break;
      ASSERT_NO_FATAL_FAILURE(fleet.lease(at));
    }
    ASSERT_NO_FATAL_FAILURE(fleet.lease(end));
    std::int64_t ready = 0, most = 0, least = std::numeric_limits<std::int64_t>::max();
    for (const Fleet::Rollout& one : fleet.rollouts) {
      if (!fleet.ready(one, end)) continue;
      ++ready;
      most = std::max(most, one.groups);
      least = std::min(least, one.groups);
    }
    EXPECT_EQ(fleet.waiting, std::max<std::int64_t>(0, all - ready * slots)) << "LL-3";
    if (!in_time) return;
    EXPECT_LE(most - least, 1) << "an even share each";
  });
}

TEST(LeaseLevel, OneRolloutNeverWaits_LL1) {
  Fleet fleet{.rollouts = {{.room = 40, .installs = Time{} + 1s}}, .waiting = 8};
  fleet.wait.installed(kVersion, 1s, Time{} + 1s);
  ASSERT_NO_FATAL_FAILURE(fleet.lease(Time{} + 1s));
  EXPECT_EQ(fleet.waiting, 0);
}

}  // namespace
}  // namespace tandem::scheduler
