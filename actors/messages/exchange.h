// The messages between the controller and a job's exchange. Both are actors of the controller's
// process, so these messages never cross a wire and have no wire format; the controller journals an
// outcome.
//
//   controller -> exchange   ActorDown, ActorSilent, DrainActor, EndJob, Ask<GetExchangeReport>,
//                            Ask<GetGroups>
//   exchange -> controller   JobProgress, ActorDrained, ExchangeEvent, FleetMeasured,
//                            JobEnded
//
// Fields whose names end in _s are seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/messages/evaluation_figures.h"
#include "actors/messages/event_level.h"
#include "actors/messages/job_status.h"
#include "actors/messages/reward.h"
#include "actors/messages/roles.h"
#include "actors/messages/rollout.h"
#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/wire/fields.h"
#include "scheduler/fleet/fleet_gap.h"
#include "scheduler/fleet/fleet_rates.h"

namespace tandem::messages {

// This incarnation of the actor has ended. The exchange ends the leases that it held.
struct ActorDown {
  ActorId who;
  std::string reason;
  // Its process ended by a fault of its own, such as a bad access, or was ended because it hung at
  // work on prompts: nobody outside has killed or stopped it.
  bool crashed = false;
};

// The actor cannot be reached, while it may live and work; or it is heard again. It gets no work
// meanwhile, and keeps its leases where nobody else could take them.
struct ActorSilent {
  ActorId who;
  bool silent = true;
};

// The actor gets no more work. It finishes the groups that it holds; those that are left at the
// deadline go back to the exchange. ActorDrained follows, at once where the actor is not up. A
// second one tells anew whether it returns, and nothing else.
struct DrainActor {
  ActorId who;
  std::int64_t deadline_ms = 0;  // from the receipt of this message
  bool returns = false;          // the next incarnation comes up once there is a place for it
};

// How a job ended; in result.json and in the states of jobs.
enum class JobOutcome : std::uint8_t { kSucceeded, kFailed, kCancelled };
TANDEM_WIRE_ENUM(JobOutcome, kSucceeded, kFailed, kCancelled)

// How long a cancelled job may take to finish its step and save a checkpoint. After this time the
// job ends without the checkpoint (EX-5).
inline constexpr Duration kSaveOnCancelMax = std::chrono::minutes(2);

// Begins the reason of a cancelled job that met a failure before it had ended.
inline constexpr const char* kWhileCancelled = "was being cancelled when: ";

// The job is cancelled, or a role cannot be kept running. The exchange ends the job, writes
// result.json and sends JobEnded. A second EndJob changes the reason at most (kWhileCancelled).
struct EndJob {
  JobOutcome outcome = JobOutcome::kCancelled;
  std::string reason;
};

struct GetExchangeReport {
  using Reply = ExchangeReport;
};

// One group of the ledger, for `tandem get groups`.
struct GroupView {
  std::uint64_t group = 0;
  std::uint64_t attempt = 0;        // the number of its lease; 0: the group is not leased
  std::string state;                // as the ledger names it
  std::string holder;               // the actor that has the lease; empty: the group is not leased
  std::optional<std::int64_t> due;  // the last step that may train it; empty: never leased yet
  double age_s = 0;                 // since its admission
};
// An exchange does nothing else while it answers: who wants more groups than these asks again.
inline constexpr std::size_t kGroupsPerAnswer = 5000;
// Asks for the live groups, and for trained ones that no checkpoint covers yet: those behind the
// number `after`, in the order of their numbers, at most `limit`.
struct GetGroups {
  using Reply = std::vector<GroupView>;
  std::uint64_t after = 0;
  std::size_t limit = kGroupsPerAnswer;
};

// The phases of a job that is not over, as far as its exchange knows.
enum class JobPhase : std::uint8_t { kStarting, kWarmStart, kRunning, kStopping };

// Sent when the exchange enters another stage of the job.
struct JobProgress {
  std::string job;
  JobPhase phase = JobPhase::kStarting;
  std::string message;
};

// The actor holds no group any more, so the controller may end its process.
struct ActorDrained {
  std::string job;
  ActorId who;
};

// One line of `tandem events`.
struct ExchangeEvent {
  std::string job;
  std::string subject;  // the job, or one of its actors
  std::string message;
  EventLevel level = EventLevel::kInfo;
};

// The rates of a window of steps that has ended, for the controller to fit the rollouts to: sent by
// the exchange of a job that asks for it (ExchangeConfig::fleet_window_steps). Windows follow each
// other.
struct FleetMeasured {
  std::string job;
  scheduler::FleetRates rates;
  bool overlaps = true;              // rollouts generate while the learner trains
  std::uint64_t skipped_in_row = 0;  // as StepReport's, of the newest step
  double evaluation_fraction = 0;    // of the window, in which one was generated
  // Of the window, in which the trainer waited and the rollouts had as much work as they take.
  double starved_fraction = 0;
  std::int64_t sequences_max = 0;  // that a rollout decodes at once; 0: not known
};

// The last message of an exchange.
struct JobEnded {
  std::string job;
  JobOutcome outcome = JobOutcome::kSucceeded;
  std::string reason;
  // Whether result.json is written. False where no exchange could be opened, or where it ended
  // before it took up the run that it was to resume.
  bool has_result = true;
};

// Every message that the controller can get from an exchange.
using ExchangeNotices =
    std::variant<JobProgress, ActorDrained, ExchangeEvent, FleetMeasured, JobEnded>;

}  // namespace tandem::messages
