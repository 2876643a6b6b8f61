// Restarts: whether, how often and how soon an actor that died is started again, and when the
// controller gives up.
//
// Intensity and period are those of OTP's supervisors: more than `intensity` restarts within
// `period` exhaust the budget, and so do as many starts in a row that failed. Between restarts
// there is an exponential backoff, backoff_first · 2^n up to backoff_max, ± jitter so that a fleet
// that died together does not return together. Plain state; time and randomness are passed in.
//
// RB-1  Within any `period` at most `intensity` restarts are granted.
// RB-2  A run of at least `healthy_after` starts the backoff anew.
// RB-3  Escalation goes actor -> role -> job and keeps the root cause.
// RB-4  A failure of the job's input ends the job at once, and so does a want of memory before the
//       actor has ever worked; any other failure but RB-7's is a death like any other.
// RB-5  More than `intensity` starts in a row that never got to Ready exhaust the budget, however
//       long each of them took: starts that are slow to fail do not go on for ever.
// RB-6  The second end in a row of one actor that is proven to be the kernel's, for want of memory,
//       ends its job: a third incarnation needs no less.
// RB-7  A start that fails for want of a disk that can be written, of an actor that has worked,
//       uses up no budget: another one is tried after a pause that doubles up to kDiskPauseMax,
//       until kDiskWaitMax after the first such failure in a row.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/base/rng.h"
#include "scheduler/fleet/crash_loop.h"

namespace tandem::scheduler {

// Failures that a rank reports by itself, sorted by whether another start may help.
enum class FailureClass {
  kMendable,  // an I/O error, a rendezvous that came too late, a lost peer: another start may help
  kMemory,    // too little memory
  kInput,     // the job, or a file that it names, is wrong: every start fails again
};

FailureClass class_of(ErrorCode code);

// Whether a rank that failed is to be started again (RB-4). `was_ready`: the actor has been ready
// before. Memory that is short for an actor that worked may become free with the end of its holder:
// the incarnation before, or a neighbour's peak. An actor that never had enough asks for more than
// there is, and a person must hear of it.
bool worth_another_start(ErrorCode code, bool was_ready);

// The figures of one budget; those of an actor and of a role differ.
struct RestartPolicy {
  std::int32_t intensity = 5;  // restarts within `period`
  Duration period = std::chrono::minutes(5);
  Duration backoff_first = std::chrono::milliseconds(500);
  Duration backoff_max = std::chrono::seconds(60);
  double jitter = 0.2;  // part of the delay, to either side
  Duration healthy_after = kHealthyAfter;
};

inline constexpr Duration kDiskPauseFirst = std::chrono::seconds(1);
inline constexpr Duration kDiskPauseMax = std::chrono::seconds(60);
inline constexpr Duration kDiskWaitMax = std::chrono::hours(24);  // as all that wait for a disk

// Granted: the actor is to be started again.
struct Restart {
  Time until;        // start it at this time
  std::int32_t n;    // restarts within the period, this one included
  std::int32_t max;  // the intensity
};
// Refused: the budget is used up.
struct Exhausted {
  std::int32_t restarts;  // granted within the period, or after starts in a row that failed
};

// The budget of one actor, or of one role.
class RestartBudget {
 public:
  explicit RestartBudget(const RestartPolicy& policy);

  // One run of the actor, from its Ready until its death. Both times are equal where
  // it never got to Ready.
  struct Uptime {
    Time started;
    Time died;
  };
  // Counts a death and decides what follows. A refusal counts no restart. Times must not decrease.
  std::variant<Restart, Exhausted> died(const Uptime& uptime, Rng& rng);

  std::int32_t restarts_total() const { return restarts_total_; }

 private:
  RestartPolicy policy_;
  std::deque<Time> granted_;      // times of restarts granted within the period
  std::int32_t consecutive_ = 0;  // deaths without a healthy run between; the n of 2^n
  std::int32_t never_ready_ = 0;  // deaths without a Ready between
  std::int32_t restarts_total_ = 0;
};

// The escalation of one job: an actor's exhausted budget restarts its whole role, on the role's own
// budget; a role's exhausted budget fails the job (RB-3).
class RestartLadder {
 public:
  struct Policies {
    RestartPolicy actor;
    RestartPolicy role;
  };
  // The decisions. A root cause is the message of the death that led to the decision.
  struct RestartActor {
    Restart restart;
  };
  struct RestartRole {
    Restart restart;
    std::string root_cause;
  };
  struct FailJob {
    std::int32_t restarts;  // the role's restarts within its period
    std::string root_cause;
  };
  // The actor was killed for want of memory twice in a row (RB-6).
  struct FailJobForMemory {  // RB-6
    std::string root_cause;
  };
  // RB-7; the failure does not count.
  struct WaitForDisk {
    Time until, give_up;
  };
  using Decision = std::variant<RestartActor, RestartRole, FailJob, FailJobForMemory, WaitForDisk>;

  // One end of an actor, with everything that the decision depends on.
  struct Death {
    std::string actor;  // "JOB/rollout/0"
    std::string role;
    std::string cause;
    RestartBudget::Uptime uptime;
    bool memory_kill = false;  // proven: the kernel killed it for want of memory
    bool disk = false;         // its start failed for want of a disk that can be written
  };

  explicit RestartLadder(const Policies& policies);
  Decision died(const Death& death, Rng& rng);
  void ready(const std::string& actor);  // a start has succeeded (RB-7)

  // Facts about an actor for people; 0 and an empty loop where it never died.
  std::int32_t restarts_of(const std::string& actor) const;
  CrashLoop loop_of(const std::string& actor) const;
  void forget(const std::string& actor);  // it was scaled away

 private:
  struct Actor {
    RestartBudget budget;
    std::string role;
    std::int32_t restarts_before = 0;     // counted by budgets that a restart of the role replaced
    std::int32_t memory_kills = 0;        // in a row
    std::optional<Time> disk_since = {};  // the first of such failures in a row
    int disk_failures = 0;
    CrashLoop loop = {};
  };

  static void end_row(Actor& actor);

  Policies policies_;
  std::map<std::string, Actor> actors_;
  std::map<std::string, RestartBudget> roles_;
};

}  // namespace tandem::scheduler
