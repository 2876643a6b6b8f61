// Which actors broadcast a job's weights together, and when that changes: the membership epochs of
// the learner (rank 0) and the rollouts. A state machine without clock or messages: the exchange
// tells it the events, asks it for orders, and carries them out.
//
// An epoch is opened at the learner, then every member is invited, and when all have joined the
// learner is told to use it. The epoch before carries broadcasts until then, so that a change of
// membership pauses no actor; afterwards its ranks leave it. A failure in an epoch ends it for all
// of its ranks. An actor that is in no epoch fetches its weights point to point, which always
// works, so no actor waits for an epoch.
//
// Invariants (tests/scheduler/fleet/broadcast_group_test.cc)
//   BG-1  At most two epochs exist: one that is in use and one that forms. Epoch numbers ascend.
//   BG-2  An actor that owes an answer to a Leave, or that has not joined by the deadline, is asked
//         into no epoch until it has answered: a hung one costs the others one deadline.
//   BG-3  Every rank that was asked into an epoch gets exactly one Leave of it, unless its
//         incarnation ended, the learner's did, or this group with its exchange.
//   BG-4  When events stop, and every rank answers, the epoch in use holds exactly the members that
//         are wanted: those that are up, do not leave, have the learner's version of NCCL, and have
//         not failed failures_max times in a row. Where no member is wanted no epoch is formed, and
//         the one in use ends with its members.
//   BG-5  No order names an incarnation that has ended.
//
// Blame. NCCL tells who noticed a fault, not whose fault it is: one sick rank can let every other
// one report first, or let all of them miss the deadline. So an epoch that did not form counts
// against a member only if all other ranks of it are proven: they were in an epoch that came into
// use. Otherwise the next try takes, besides the proven, half as many of the unproven (those that
// were noticed least first), until each is tried alone. A learner's new incarnation clears all
// blame. Failures in an epoch in use count against no member.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"

namespace tandem::scheduler {

// Deadlines and pauses of the group.
struct BroadcastLimits {
  Duration forming_max = std::chrono::seconds(30);  // from Open until all have joined
  // How long, after a failure, the next epoch waits for answers of members that still owe one.
  Duration settle = std::chrono::seconds(1);
  // The pause between a failure and the next try; doubles with each failure in a row, to
  // backoff_max. An epoch that was in use for backoff_max ends the row.
  Duration backoff = std::chrono::seconds(1);
  Duration backoff_max = std::chrono::seconds(60);
  // Failures of a member in a row before it is left out until its next incarnation.
  int failures_max = 3;
};

// Orders, each for one actor. The exchange sends them in the order of decide(). A rank answers each
// with an event: opened, joined, in_use, failed or left.
struct OpenOrder {  // to the learner
  ActorId to;
  std::uint64_t epoch = 0;
  int size = 0;  // ranks
};
struct JoinOrder {  // to a rollout; the unique id is the one that the learner's answer brought
  ActorId to;
  std::uint64_t epoch = 0;
  int rank = 0;  // from 1
  int size = 0;
};
struct UseOrder {  // to the learner
  ActorId to;
  std::uint64_t epoch = 0;
};
struct LeaveOrder {
  ActorId to;
  std::uint64_t epoch = 0;
  std::string why;
};
using BroadcastOrder = std::variant<OpenOrder, JoinOrder, UseOrder, LeaveOrder>;

class BroadcastGroup {
 public:
  // Its epochs are numbered from `epoch_last` + 1.
  explicit BroadcastGroup(BroadcastLimits limits, std::uint64_t epoch_last = 0)
      : limits_(limits), last_epoch_(epoch_last) {}

  // Events. Those of incarnations or epochs that are over have no effect. `nccl_version` is NCCL's
  // number, 22809 for 2.28.9.
  void learner_up(const ActorId& learner, int nccl_version);  // replaces the learner before
  void member_up(const ActorId& member, int nccl_version);    // likewise, by name
  void gone(const std::string& actor);    // its incarnation ended, the learner's too
  void leaves(const std::string& actor);  // it drains: it is in no further epoch
  void opened(const ActorId& from, std::uint64_t epoch);
  void joined(const ActorId& from, std::uint64_t epoch);
  void in_use(const ActorId& from, std::uint64_t epoch);
  void failed(const ActorId& from, std::uint64_t epoch, const std::string& why, Time now);
  void left(const ActorId& from, std::uint64_t epoch);

  // The orders to send now. Call it after events and when next_deadline() has come.
  std::vector<BroadcastOrder> decide(Time now);
  std::optional<Time> next_deadline() const;

  // Whether a broadcast of this epoch reaches this incarnation: the epoch is in use, or the learner
  // was told to use it, or it was in use before and the member has not left it yet.
  bool takes_part(const ActorId& member, std::uint64_t epoch) const;
  std::optional<std::uint64_t> epoch_in_use() const;
  // For `tandem why` and the event log: who takes part, who does not and why, what is awaited.
  // Each line is a whole sentence that names its actor or epoch.
  std::vector<std::string> explain(Time now) const;

 private:
  // An incarnation that is up, and its record.
  struct Actor {
    ActorId peer;
    int nccl_version = 0;
    bool leaves = false;
    std::map<std::uint64_t, Time> owes{};  // answers to Leaves: by epoch, since when
    bool proven = false;
    int noticed = 0;   // times it failed first, or had not joined; only orders the tries
    int failures = 0;  // in a row, of which it alone can be the cause
    std::string last_failure{};
  };
  enum class Phase {
    kOpening,    // Open is sent
    kInviting,   // Joins are to be sent
    kJoining,    // Joins are sent
    kJoined,     // Use is to be sent
    kSwitching,  // Use is sent
    kInUse,
  };
  // One epoch.
  struct Group {
    std::uint64_t number = 0;
    ActorId learner;
    std::vector<ActorId> members;  // sorted by name; the rank is the index + 1
    Phase phase = Phase::kOpening;
    Time since{};                // when Open was sent; from kSwitching on, when Use was sent
    std::set<ActorId> joined{};  // from kInUse on: those that have left
    bool has(const ActorId& peer) const;
    std::vector<ActorId> absent() const;  // members, then the learner, that have not joined
  };

  Actor* find(const ActorId& peer);
  bool eligible(const Actor& member) const;
  std::vector<const Actor*> wanted() const;  // eligible, and owe nothing
  bool changed() const;                      // the wanted differ from the members in use
  std::vector<ActorId> choose() const;
  std::optional<Time> opens_at() const;
  void forget(const ActorId& peer);
  void end(std::optional<Group>& group, const std::string& why);
  void count_failure(Time now);
  void blame(std::vector<ActorId> noticed, const std::string& why);
  void check_deadline(Time now);
  void open(Time now, std::vector<BroadcastOrder>& orders);
  std::string left_out(const Actor& member, Time now) const;
  std::optional<std::string> awaited(Time now) const;

  BroadcastLimits limits_;
  std::optional<Actor> learner_;
  std::map<std::string, Actor> members_;
  std::map<std::string, Incarnation> ended_;  // by name, the last one that ended
  std::optional<Group> previous_, in_use_, forming_;
  std::vector<LeaveOrder> leaves_;  // to be sent
  std::uint64_t last_epoch_;
  std::uint64_t failed_epoch_ = 0;    // the last one that did not form
  std::size_t tried_max_ = SIZE_MAX;  // the most unproven members in the next epoch
  int failures_ = 0;                  // the group's failures in a row
  Time backoff_until_{};
};

}  // namespace tandem::scheduler
