// Which actors broadcast a job's weights together, and when that changes: the membership epochs of
// the learner (rank 0) and the rollouts. A state machine without clock or messages: the exchange
// tells it what has happened, asks it for orders, and carries them out.
//
// An epoch is opened at the learner, then every member is invited, and when all have joined the
// learner is told to use it. The epoch before carries broadcasts until then, so that a change of
// membership pauses nobody; afterwards its ranks leave it. A failure in an epoch ends it for all of
// its ranks. Whoever is in no epoch fetches its weights point to point, which always works, so
// nothing waits for an epoch.
//
// Failures. NCCL tells no rank whose fault a failure is, and the first to report one is often the
// healthiest. So nobody is blamed for a failure of a group: after failures_max of them in a row
// each member is tried in an epoch alone with the learner, and whoever fails there is left out
// until its next incarnation, or the learner's.
//
// Invariants (tests/scheduler/fleet/broadcast_group_test.cc)
//   BG-1  At most two epochs exist: one that is in use and one that forms. Epoch numbers ascend.
//   BG-2  A rank that owes an answer to a Leave is asked into no epoch until it has answered: one
//         that hangs costs the others one deadline.
//   BG-3  Every rank that was asked into an epoch gets at most one Leave of it, and exactly one
//   once
//         the epoch has ended, unless the rank's incarnation ended before.
//   BG-4  When events stop, and every rank that lives answers, the epoch in use holds exactly the
//         members that are wanted: those that are up, do not leave, have the learner's version of
//         NCCL, and have not failed alone with the learner.
//   BG-5  No order names an incarnation that has ended.
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

struct BroadcastLimits {
  Duration forming_max = std::chrono::seconds(30);  // from Open until all have joined
  // After a failure: so long the next epoch waits for answers of those that still owe one.
  Duration settle = std::chrono::seconds(1);
  // Between a failure and the next try; doubles with each failure in a row, to backoff_max. An
  // epoch that has been in use for backoff_max ends the row.
  Duration backoff = std::chrono::seconds(1);
  Duration backoff_max = std::chrono::seconds(60);
  int failures_max = 3;  // in a row, before members are tried one by one
};

struct BroadcastPeer {
  std::string actor;
  Incarnation incarnation;
  auto operator<=>(const BroadcastPeer&) const = default;
};

// Orders, each for one actor.
struct OpenOrder {  // to the learner
  BroadcastPeer to;
  std::uint64_t epoch = 0;
  int size = 0;  // ranks
};
struct JoinOrder {  // to a rollout; the unique id is the one that the learner's answer brought
  BroadcastPeer to;
  std::uint64_t epoch = 0;
  int rank = 0;  // from 1
  int size = 0;
};
struct UseOrder {  // to the learner
  BroadcastPeer to;
  std::uint64_t epoch = 0;
};
struct LeaveOrder {
  BroadcastPeer to;
  std::uint64_t epoch = 0;
  std::string why;
};
using BroadcastOrder = std::variant<OpenOrder, JoinOrder, UseOrder, LeaveOrder>;

class BroadcastGroup {
 public:
  explicit BroadcastGroup(BroadcastLimits limits) : limits_(limits) {}

  // What has happened. Events of incarnations or epochs that are over have no effect.
  void learner_up(const BroadcastPeer& learner, int nccl_version);  // replaces the one before
  void member_up(const BroadcastPeer& member, int nccl_version);    // likewise, by name
  void gone(const std::string& actor);    // its incarnation ended, the learner's too
  void leaves(const std::string& actor);  // it drains: it is in no further epoch
  void opened(const BroadcastPeer& from, std::uint64_t epoch);
  void joined(const BroadcastPeer& from, std::uint64_t epoch);
  void in_use(const BroadcastPeer& from, std::uint64_t epoch);
  void failed(const BroadcastPeer& from, std::uint64_t epoch, const std::string& why, Time now);
  void left(const BroadcastPeer& from, std::uint64_t epoch);

  // What to send now, in order. Call it after events and when next_deadline() has come.
  std::vector<BroadcastOrder> decide(Time now);
  std::optional<Time> next_deadline() const;

  // Whether a broadcast of this epoch reaches this incarnation.
  bool takes_part(const BroadcastPeer& member, std::uint64_t epoch) const;
  std::optional<std::uint64_t> epoch_in_use() const;
  // For `tandem why` and the event log: who takes part, who does not and why, what is awaited.
  // Each line is a whole sentence that names its actor or epoch.
  std::vector<std::string> explain(Time now) const;

 private:
  struct Rank {
    BroadcastPeer peer;
    int nccl_version = 0;
    bool leaves = false;
    bool tried = false;                  // alone with the learner, and it did not fail
    std::string left_out;                // why it takes part in nothing any more; empty: it may
    std::map<std::uint64_t, Time> owes;  // epochs whose Leave it has not answered, and since when
  };
  enum class Phase { kOpening, kJoining, kSwitching, kInUse };
  struct Epoch {
    std::uint64_t number = 0;
    std::vector<BroadcastPeer> ranks;  // the learner first
    std::set<BroadcastPeer> joined;
    Phase phase = Phase::kOpening;
    bool trial = false;  // of one member alone
    Time since;          // of the phase
    Time deadline;       // of forming
  };

  Rank* find(const BroadcastPeer& peer);
  Epoch* find(std::uint64_t epoch, const BroadcastPeer& rank);
  std::vector<BroadcastPeer> wanted() const;
  bool owed() const;
  void open(Time now);
  void end(std::optional<Epoch>& epoch, const std::string& why);
  void note_failure(const Epoch& epoch, const std::string& why, Time now);
  std::string late(const Epoch& epoch) const;

  BroadcastLimits limits_;
  std::optional<Rank> learner_;
  std::map<std::string, Rank> members_;
  std::optional<Epoch> forming_, in_use_;
  std::uint64_t epoch_last_ = 0;
  int failures_ = 0;  // in a row
  std::string failure_last_;
  bool trying_ = false;  // members one by one
  std::optional<Time> next_try_, settled_;
  bool settle_begins_ = false;
  std::vector<BroadcastOrder> orders_;  // of events, for decide()
};

}  // namespace tandem::scheduler
