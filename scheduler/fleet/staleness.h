// The staleness budget: when a group may be admitted, leased and trained, so that no trajectory is
// ever more than K steps old and none is dropped for age. The method is earliest deadline first
// with a feasibility test (docs/decisions/0015-staleness-bound.md).
//
// Pure functions over a small state that the ledger keeps up to date (Ledger::budget_state). Each
// decision costs O(K), whatever the number of groups. Not responsible for the choice of a holder.
//
// K max_staleness, L lookahead, m sync_steps, B groups_per_step; s next step to form, p newest
// published version, r version that the leasing actor has acknowledged as installed.
//
// SB-1  Outside the batch in training, dated groups with due <= d number at most B(d - s + 1), for
//       every d >= s. Kept by lease_verdict and form_verdict; discards and learner restarts keep
//       it.
// SB-2  Whenever the groups in flight end, a step can be formed (no deadlock), given m <= L + 1 and
//       L <= K.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace tandem::scheduler {

// The settings of a job, constant while it runs. The rules of the job file (actors/job) keep
// the bounds that are given here.
struct Budget {
  std::int64_t max_staleness = 0;    // K, in versions
  std::int64_t lookahead = 0;        // L, in steps, <= K
  std::int64_t sync_steps = 1;       // m: every m-th version is published, <= L + 1
  std::int64_t groups_per_step = 1;  // B
  std::int64_t steps_total = 1;
  bool operator==(const Budget&) const = default;
};

// The lookahead of a job that sets none: K up to 2, K - 1 up to 4, K - 2 above.
std::int64_t default_lookahead(std::int64_t max_staleness);

// Above this bound a job is accepted with a warning: clipped losses degrade.
inline constexpr std::int64_t kMaxStalenessAdvised = 5;

// Counts groups by the step at which they are due. Holds at most K + 2 different steps.
class DueHistogram {
 public:
  void add(StepId due);
  void remove(StepId due);  // CHECKs that one is there
  std::int64_t total() const { return total_; }
  const std::map<StepId, std::int64_t>& counts() const { return counts_; }
  bool operator==(const DueHistogram&) const = default;

 private:
  std::map<StepId, std::int64_t> counts_;
  std::int64_t total_ = 0;
};

// All facts that the decisions depend on.
struct BudgetState {
  StepId next_step;                           // s
  PolicyVersion published = kInitialWeights;  // p
  std::int64_t trained = 0;                   // groups of committed steps
  std::int64_t live = 0;                      // admitted, neither trained nor discarded
  std::int64_t discarded_since_publish = 0;   // since version p came out
  DueHistogram dated;   // dated live groups outside the batch in training, whatever their state
  DueHistogram scored;  // the scored ones among them
  bool operator==(const BudgetState&) const = default;
};

enum class AdmitVerdict {
  kAdmit,
  kAhead,             // trained + live has reached (p + L + 1)B: waits for the next version
  kAllAdmitted,       // trained + live has reached steps_total * B
  kReplacementWaits,  // it would replace a discard of this version, and >= 2B groups are live
};
// Whether one more group may be admitted at present.
AdmitVerdict admit_verdict(const Budget& budget, const BudgetState& state);

enum class LeaseVerdict {
  kLease,
  kActorBehind,  // r + K < s: the actor must install a newer version first
  kCrowded,      // SB-1 would break: steps up to the due one are full; a newer r helps
};
// Whether the next group may be leased to an actor with version `installed`. `kept_due`: the date
// of a group that was handed back with its tokens kept; nullopt for one that starts anew.
LeaseVerdict lease_verdict(const Budget& budget, const BudgetState& state, PolicyVersion installed,
                           std::optional<StepId> kept_due = std::nullopt);

// The date that such a lease gives: r + K, or the kept date where that is earlier.
StepId due_at_lease(const Budget& budget, PolicyVersion installed,
                    std::optional<StepId> kept_due = std::nullopt);

enum class FormVerdict {
  kForm,           // take the B earliest due of the scored groups, ties by group id
  kTooFewScored,   // fewer than B are scored
  kDueNotScored,   // groups still in flight must be in this step or the next ones: wait for them
  kAllStepsFormed  // s == steps_total
};
// Whether the step s may be formed at present.
FormVerdict form_verdict(const Budget& budget, const BudgetState& state);

// The step by which form_verdict's answer is held up: the earliest d at which too many groups would
// be left behind. Set only for kDueNotScored; engines give the groups due by then priority.
std::optional<StepId> held_up_by(const Budget& budget, const BudgetState& state);

// SB-1 as it stands; the ledger CHECKs it at every event.
bool feasible(const Budget& budget, const BudgetState& state);

// CamelCase ("ActorBehind"). Logs and tests name verdicts; no view of a user does.
const char* name(AdmitVerdict verdict);
const char* name(LeaseVerdict verdict);
const char* name(FormVerdict verdict);

}  // namespace tandem::scheduler
