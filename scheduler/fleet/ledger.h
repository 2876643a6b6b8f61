// The ledger of groups: the state of each group, its holder, and the way in which it ended.
//
//   admitted -> rolling -> generated -> scoring -> scored -> training -> trained -> durable
//         or discarded(reason) from any state before trained.
//
// A plain state machine of one job, driven by the events of its exchange. The same events give the
// same ledger, so a journal replays it. Durable and discarded groups are counted and forgotten, so
// memory is bounded by the live and the not yet durable groups (about 300 bytes each). An event
// costs O(log groups). Not responsible for prompts, payloads and scores, nor for the choice of a
// holder. Our own misuse is CHECKed; an answer that comes too late is a Refusal. Not thread-safe.
//
// LG-1  issued = trained + discarded + live, each counted on its own over distinct groups.
// LG-2  A group is trained at most once in the surviving lineage.
// LG-3  A lease is held by at most one live incarnation.
// LG-4  Staleness at training <= max_staleness.
// LG-5  A discarded group has a typed reason, never age.
// LG-6  After faults stop, every admitted group is eventually trained or discarded.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "scheduler/fleet/staleness.h"

namespace tandem::scheduler {

enum class GroupState {
  kAdmitted,
  kRolling,
  kGenerated,
  kScoring,
  kScored,
  kTraining,  // the last live state
  kTrained,   // until no learner can need it again
  kDurable,
  kDiscarded,  // counted, then forgotten
};
inline constexpr std::size_t kGroupStates = 9;
const char* name(GroupState state);  // snake_case: "admitted"
bool is_live(GroupState state);

enum class DiscardReason {
  kZeroVariance,
  kRewardFailed,
  kPromptTooLong,
  kPoisonPrompt,
  kJobFinished,
  kCancelled,
  kOutsideBounds,  // of filter_groups
};
inline constexpr std::size_t kDiscardReasons = 7;
const char* name(DiscardReason reason);  // snake_case: "zero_variance"

enum class Refusal {  // why an answer was not taken
  kUnknownGroup,      // forgotten, or never issued
  kOldLease,          // the group has been leased again, released, or its epoch is over
  kOverAge,           // tokens older than the lease assumed; the group goes back to admitted
};
inline constexpr std::size_t kRefusals = 3;
const char* name(Refusal refusal);

using LeaseId = Id<struct LeaseTag>;  // unique within a job, increasing

struct Lease {
  GroupId group;
  LeaseId id;
  Incarnation holder;
  Epoch epoch;
  Time deadline;
  bool operator==(const Lease&) const = default;
};

struct LeaseTerms {
  Incarnation holder;
  Epoch epoch;
  Time deadline;
};

// The names that an answer must give to be taken; only the exchange looks at the deadline.
struct LeaseKey {
  GroupId group;
  LeaseId id;
  Epoch epoch;
};

enum class Kept { kNothing, kTokens };  // the part of a rolling group that outlives its lease

struct GroupRecord {
  GroupId id;
  GroupState state = GroupState::kAdmitted;
  std::optional<StepId> due;   // set from the lease on, until the tokens are lost
  std::optional<Lease> lease;  // set in kRolling and kScoring
  std::optional<StepId> step;  // set in kTraining and kTrained
};

struct LedgerCounters {
  std::int64_t issued = 0;
  std::int64_t trained = 0;
  std::array<std::int64_t, kDiscardReasons> discarded{};
  std::int64_t live = 0;
  std::int64_t durable = 0;    // trained groups that no learner can need again
  std::int64_t retrained = 0;  // group trainings repeated after learner restarts, not in `trained`
  std::array<std::int64_t, kRefusals> refused{};
  std::int64_t discarded_total() const;
  bool operator==(const LedgerCounters&) const = default;
};

struct LedgerSnapshot {                                          // everything
  std::vector<GroupRecord> records;                              // by id
  std::vector<std::pair<StepId, std::vector<GroupId>>> batches;  // training and trained, in order
  LedgerCounters counters;
  GroupId next_group;
  LeaseId next_lease;
  StepId next_step;
  StepId next_commit;
  StepId replay_next;
  PolicyVersion published = kInitialWeights;
  std::int64_t discarded_since_publish = 0;
  Incarnation learner;
};

class Ledger {
 public:
  using Queue = std::set<std::pair<StepId, GroupId>>;  // by due, then id; undated ones last

  explicit Ledger(const Budget& budget);
  Ledger(const Budget& budget, const LedgerSnapshot& snapshot);
  LedgerSnapshot snapshot() const;

  // Admission. Ids count up from 1. Whether it is time is admit_verdict's (or FixedLag's) answer.
  GroupId admit();

  // Leases. Precondition: the group is kAdmitted (rollout) or kGenerated (reward), and for a
  // rollout lease_verdict said kLease (SB-1 is CHECKed).
  Lease lease_rollout(GroupId group, const LeaseTerms& terms, PolicyVersion installed);
  Lease lease_reward(GroupId group, const LeaseTerms& terms);

  // Answers of holders; nullopt: taken. `oldest`: the oldest version among the group's tokens and
  // the keys and values that they read.
  std::optional<Refusal> generated(const LeaseKey& key, PolicyVersion oldest);
  std::optional<Refusal> scored(const LeaseKey& key);
  // The holder gives a group back unfinished, by one state. Kept tokens keep the date.
  std::optional<Refusal> hand_back(const LeaseKey& key, Kept kept);
  std::optional<Refusal> extend(const LeaseKey& key, Time deadline);  // the holder made progress
  // Why these answers, and commit(), would be refused now; nothing changes.
  std::optional<Refusal> refusal_of_generated(const LeaseKey& key, PolicyVersion oldest) const;
  std::optional<Refusal> refusal_of_scored(const LeaseKey& key) const;
  std::optional<Refusal> refusal_of_hand_back(const LeaseKey& key) const;
  std::optional<Refusal> refusal_of_commit(StepId step, Incarnation learner) const;
  void refused(Refusal refusal);  // an answer was not taken: counts it

  // Ends of leases without an answer: the groups go back one state, and their tokens are lost.
  void release(GroupId group);                              // a leased one
  std::vector<GroupId> release_epochs_before(Epoch epoch);  // that no holder has claimed (adopt)

  // A new controller epoch adopts a lease that its still-running holder lists.
  std::optional<Refusal> adopt(GroupId group, LeaseId id, const LeaseTerms& terms);

  // Ends a live group; groups in training only with all others, as the job ends.
  void discard(GroupId group, DiscardReason reason);
  void discard_live(DiscardReason reason);  // kJobFinished or kCancelled

  // Training. The learner's incarnation starts from version `checkpoint` (0 at first; at or above
  // what is durable). A batch in training goes back to scored. Returned: the batches of steps
  // checkpoint … v-1, to be sent again in order, each to be committed again before a new one may
  // start (replaying()).
  struct Resend {
    StepId step;
    std::vector<GroupId> groups;
  };
  std::vector<Resend> learner_started(StepId checkpoint, Incarnation learner);
  bool replaying() const { return replay_next_ < next_commit_; }
  StepId replay_next() const { return replay_next_; }  // the step that the learner commits next

  std::vector<GroupId> earliest_due_batch() const;  // B scored groups; form_verdict == kForm
  // One batch at a time, steps in order; LG-4 is CHECKed.
  void start_training(StepId step, std::vector<GroupId> batch);
  // The groups of `step` are trained, and `step + 1` is a version. A replayed step is taken and not
  // counted again. Refused: a commit of another incarnation, or of a step that is not the next one.
  std::optional<Refusal> commit(StepId step, Incarnation learner);
  void published(PolicyVersion version);
  void durable(StepId checkpoint);  // no learner can need the steps below it again

  // Queries; references are valid until the next change.
  const BudgetState& budget_state() const { return budget_state_; }
  const Budget& budget() const { return budget_; }
  LedgerCounters counters() const;
  std::int64_t count(GroupState state) const;
  const GroupRecord* find(GroupId group) const;            // null once forgotten
  const Queue& queue(GroupState state) const;              // live states only; first = most urgent
  std::vector<Lease> leases_of(Incarnation holder) const;  // by group
  std::int64_t held_by(Incarnation holder) const;          // the number of its leases
  std::vector<GroupId> expired(Time now) const;            // leased, with deadline <= now
  const std::vector<GroupId>* batch(StepId step) const;    // in training or not durable, else null
  std::optional<Time> next_deadline() const;
  StepId next_commit() const { return next_commit_; }  // = the newest committed version
  GroupId next_group() const { return next_group_; }   // the group that admit() gives next
  LeaseId next_lease() const { return next_lease_; }   // the number of the next lease
  Incarnation learner() const { return learner_; }     // that trains; 0 before the first

  // CHECKs LG-1 … LG-5 and SB-1 from the counters, O(K); the second one recounts everything.
  void check() const;
  void check_by_recount() const;

 private:
  struct Placement {  // the fields that a group carries into its next state
    std::optional<StepId> due = std::nullopt;
    std::optional<Lease> lease = std::nullopt;
    std::optional<StepId> step = std::nullopt;
  };

  GroupRecord& record(GroupId group);
  void index(const GroupRecord& record);
  void unindex(const GroupRecord& record);
  void move(GroupRecord& record, GroupState to, const Placement& where);
  void forget(GroupRecord& record);
  void go_back(GroupRecord& record, Kept kept);
  void discard_one(GroupRecord& record, DiscardReason reason);
  Lease grant(GroupId group, const LeaseTerms& terms);
  const GroupRecord* leased_record(const LeaseKey& key) const;
  std::optional<Refusal> refuse(Refusal refusal);
  Refusal refusal_of_lease(GroupId group) const;

  Budget budget_;
  std::map<GroupId, GroupRecord> records_;
  std::array<Queue, kGroupStates> queues_;
  std::map<Incarnation, std::set<GroupId>> by_holder_;
  std::set<std::pair<Time, GroupId>> by_deadline_;
  std::map<StepId, std::vector<GroupId>> batches_;  // in training or trained, not yet durable
  BudgetState budget_state_;
  LedgerCounters counters_;
  std::array<std::int64_t, kGroupStates> counts_{};  // how many of records_ are in each state
  GroupId next_group_{1};
  LeaseId next_lease_{1};
  StepId next_commit_;  // steps below it are committed
  StepId replay_next_;  // steps below it have been committed by this incarnation of the learner
  Incarnation learner_;
};

}  // namespace tandem::scheduler
