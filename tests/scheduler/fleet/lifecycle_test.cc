#include "scheduler/fleet/lifecycle.h"

#include <gtest/gtest.h>

#include <csignal>
#include <set>
#include <vector>

namespace tandem::scheduler {
namespace {

using A = ActorState;
using J = JobState;

// The whole table, written down a second time: row = from, column = to, in the enum's order.
//                                      Qu Pl St In Re Bu Dr Sg Sd Ba Fa Lo
constexpr int kActorTable[12][12] = {/*Queued*/ {0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0},
                                     /*Placing*/ {1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0},
                                     /*Starting*/ {0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1},
                                     /*Initializing*/ {0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1},
                                     /*Ready*/ {0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1},
                                     /*Busy*/ {0, 0, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1},
                                     /*Draining*/ {0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1},
                                     /*Stopping*/ {1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1},
                                     /*Stopped*/ {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                                     /*Backoff*/ {1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0},
                                     /*Failed*/ {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                                     /*Lost*/ {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0}};
//                                  Qu St Wa Ru Sg Su Fa Ca
constexpr int kJobTable[8][8] = {/*Queued*/ {0, 1, 0, 0, 0, 0, 1, 1},
                                 /*Starting*/ {0, 0, 1, 1, 1, 0, 0, 0},
                                 /*WarmStart*/ {0, 0, 0, 1, 1, 0, 0, 0},
                                 /*Running*/ {0, 0, 0, 0, 1, 0, 0, 0},
                                 /*Stopping*/ {0, 0, 0, 0, 0, 1, 1, 1},
                                 /*Succeeded*/ {0, 0, 0, 0, 0, 0, 0, 0},
                                 /*Failed*/ {0, 0, 0, 0, 0, 0, 0, 0},
                                 /*Cancelled*/ {0, 0, 0, 0, 0, 0, 0, 0}};

TEST(Lifecycle, ActorTransitionsAreThoseOfTheTable) {  // LC-1
  for (std::size_t from = 0; from < kActorStates; ++from)
    for (std::size_t to = 0; to < kActorStates; ++to)
      EXPECT_EQ(allowed(static_cast<A>(from), static_cast<A>(to)), kActorTable[from][to] == 1)
          << name(static_cast<A>(from)) << " -> " << name(static_cast<A>(to));
}

TEST(Lifecycle, JobTransitionsAreThoseOfTheTable) {  // LC-1
  for (std::size_t from = 0; from < kJobStates; ++from)
    for (std::size_t to = 0; to < kJobStates; ++to)
      EXPECT_EQ(allowed(static_cast<J>(from), static_cast<J>(to)), kJobTable[from][to] == 1)
          << name(static_cast<J>(from)) << " -> " << name(static_cast<J>(to));
}

template <class State>
void reaches_a_final_state(State state, std::set<State>& seen, bool& reached) {
  if (!seen.insert(state).second) return;
  reached = reached || is_final(state);
  for (const State next : successors(state)) reaches_a_final_state(next, seen, reached);
}

template <class State>
void expect_ends(std::size_t states) {
  for (std::size_t i = 0; i < states; ++i) {
    std::set<State> seen;
    bool reached = false;
    reaches_a_final_state(static_cast<State>(i), seen, reached);
    EXPECT_TRUE(reached) << name(static_cast<State>(i));
  }
}

TEST(Lifecycle, EveryStateCanEnd) {  // LC-3
  expect_ends<A>(kActorStates);
  expect_ends<J>(kJobStates);
}

TEST(Lifecycle, TheOrdinaryLives) {
  ActorStatus actor;
  std::int64_t t = 0;
  for (const A next :
       {A::kPlacing, A::kStarting, A::kInitializing, A::kReady, A::kBusy, A::kBackoff, A::kPlacing,
        A::kStarting, A::kInitializing, A::kReady, A::kDraining, A::kStopping, A::kStopped})
    enter(actor, next, Working{}, Time{++t});
  EXPECT_TRUE(is_final(actor.state));
  EXPECT_EQ(actor.since, Time{t});
  JobStatus job;
  for (const J next : {J::kStarting, J::kWarmStart, J::kRunning, J::kStopping, J::kSucceeded})
    enter(job, next, Working{}, Time{++t});
  EXPECT_TRUE(is_final(job.state));
}

TEST(Lifecycle, ANewReasonKeepsSince) {
  ActorStatus actor;
  enter(actor, A::kPlacing, Submitted{}, Time{5});
  enter(actor, A::kPlacing, WaitingForGang{1, 2}, Time{9});
  EXPECT_EQ(actor.since, Time{5});
  EXPECT_STREQ(reason_name(actor.reason), "WaitingForGang");
}

TEST(LifecycleDeathTest, ATransitionThatTheTableLacksIsABug) {
  ActorStatus actor;
  EXPECT_DEATH(enter(actor, A::kBusy, Working{}, Time{1}), "LC-1");
}

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(Reasons, SayWhatIsWaitedForInNumbers) {  // LC-2
  const Time now{10 * kSecond};
  const Reason capacity = WaitingForCapacity{{.cpu_milli = 3000}, {.cpu_milli = 1500}};
  EXPECT_STREQ(reason_name(capacity), "WaitingForCapacity");
  EXPECT_EQ(message(capacity, now), "needs 3.0 CPUs; free: 1.5 CPUs");
  EXPECT_EQ(message(Backoff{Time{12 * kSecond}, 2, 5, "killed by SIGSEGV (11)"}, now),
            "restart 2 of 5 in 2.0 s after: killed by SIGSEGV (11)");
  EXPECT_EQ(message(ExitSignal{SIGKILL}, now), "killed by SIGKILL (9)");
  EXPECT_EQ(message(ExitSignal{SIGKILL, true}, now),
            "killed by SIGKILL (9), perhaps for want of memory: the kernel killed some process of "
            "this machine for that");
  constexpr std::int64_t kMebibyte = 1 << 20;
  EXPECT_EQ(message(OOMKilled{21811 * kMebibyte, 21760 * kMebibyte, 24576 * kMebibyte}, now),
            "killed for want of memory at 21.2 GiB, peak 21.3 GiB, of 24.0 GiB on its node");
  EXPECT_EQ(message(OOMKilled{200 * kMebibyte, {}}, now), "killed for want of memory at 200.0 MiB");
  EXPECT_STREQ(reason_name(OOMKilled{}), "OOMKilled");
  EXPECT_EQ(message(RankError{"the disk is gone"}, now), "failed: the disk is gone");
  EXPECT_EQ(message(RestartsExhausted{5, "exited with code 3"}, now),
            "died again after 5 restarts; root cause: exited with code 3");
}

template <std::size_t... I>
std::vector<Reason> one_of_each(std::index_sequence<I...>) {
  return {Reason(std::in_place_index<I>)...};
}

TEST(Reasons, EachHasANameOfItsOwnAndAMessage) {
  std::set<std::string> names;
  const auto all = one_of_each(std::make_index_sequence<std::variant_size_v<Reason>>());
  for (const Reason& reason : all) {
    names.insert(reason_name(reason));
    const bool free_text = std::holds_alternative<InfeasibleShape>(reason) ||
                           std::holds_alternative<JobFailed>(reason);
    EXPECT_TRUE(free_text || !message(reason, Time{}).empty()) << reason_name(reason);
  }
  EXPECT_STREQ(reason_name(PreemptedSoon{}), reason_name(Preempted{}))
      << "with a pause, or without";
  EXPECT_EQ(names.size() + 1, all.size());
}

TEST(Lifecycle, AReasonWithALimitHasADeadline) {
  const Time until{5}, later{9};
  EXPECT_EQ(deadline_of(WaitingForNodes{"a", until}), until);
  EXPECT_EQ(deadline_of(Returning{"a", until}), until);
  EXPECT_EQ(deadline_of(AgentLost{"a", Time{1}, until}), until);
  EXPECT_EQ(deadline_of(Draining{3, until}), until);
  EXPECT_EQ(deadline_of(Backoff{until, 1, 5, "killed"}), until);
  EXPECT_EQ(deadline_of(WaitingForDisk{until, later, "full"}), later) << "not the next try";
  EXPECT_EQ(deadline_of(LoadingModel{}), std::nullopt);
}

}  // namespace
}  // namespace tandem::scheduler
