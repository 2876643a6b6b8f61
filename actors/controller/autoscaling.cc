#include "actors/controller/autoscaling.h"

#include <algorithm>
#include <utility>

#include "actors/controller/allocation.h"
#include "actors/controller/demands.h"
#include "actors/controller/room.h"
#include "scheduler/fleet/crash_loop.h"
#include "scheduler/fleet/placement.h"

namespace tandem::controller {

using messages::Role;
using scheduler::AutoscaleHold;
using scheduler::TrainerHealth;

namespace {

using Direction = scheduler::AutoscaleState::Direction;

bool at_work(const ActorRecord& actor) {
  return actor.status.state == scheduler::ActorState::kReady ||
         actor.status.state == scheduler::ActorState::kBusy;
}

TrainerHealth trainer_of(const JobRecord& job, const messages::FleetMeasured& measured, Time now) {
  const auto found = job.actors.find(actor_name(job.id, Role::kLearner, 0));
  if (found == job.actors.end()) return TrainerHealth::kDown;
  const ActorRecord& learner = found->second;
  if (scheduler::loops(learner.crash_loop, learner.status, now)) return TrainerHealth::kCrashLoop;
  if (!at_work(learner)) return TrainerHealth::kDown;
  if (std::ranges::any_of(learner.ranks, &RankRecord::silent)) return TrainerHealth::kSilent;
  if (measured.skipped_in_row > 0) return TrainerHealth::kSkipsSteps;
  return measured.evaluation_fraction >= scheduler::kEvaluationStall ? TrainerHealth::kEvaluates
                                                                     : TrainerHealth::kHealthy;
}

// A job in the queue that starts once enough of the nodes is free.
bool waits_for_room(const JobRecord& job) {
  return job.status.state == scheduler::JobState::kQueued &&
         std::holds_alternative<scheduler::WaitingForCapacity>(job.status.reason);
}

std::string change_text(std::int64_t from, std::int64_t to, const std::string& reason) {
  return "autoscale: rollout " + std::to_string(from) + " -> " + std::to_string(to) + ": " + reason;
}

// Reasons that come and go with noise are no news.
void say_why_not(Turn& turn, JobRecord& job, const scheduler::AutoscaleDecision& decision) {
  if (decision.hold == AutoscaleHold::kOneWindow || job.autoscaling.said == decision.hold) return;
  job.autoscaling.said = decision.hold;
  turn.announce(
      job, "autoscale: rollout stays " + std::to_string(decision.wanted) + ": " + decision.reason,
      decision.at_limit ? messages::EventLevel::kWarning : messages::EventLevel::kInfo);
}

bool carry_out(Turn& turn, JobRecord& job, scheduler::AutoscaleDecision& decision) {
  const std::map<Role, std::int32_t> before = job.desired;
  const std::int64_t from = before.at(Role::kRollout);
  const auto done =
      reallocate(turn, job, {{Role::kRollout, static_cast<std::int32_t>(decision.wanted)}},
                 change_text(from, decision.wanted, decision.reason));
  if (!done) {
    decision.hold = AutoscaleHold::kAtLimit;
    decision.at_limit = true;
    decision.wanted = from;
    decision.reason += "; " + done.error().message;
    return false;
  }
  job.autoscaling.before = before;
  job.autoscaling.said.reset();
  job.autoscaling.last = {turn.now, from, decision.wanted, decision.reason};
  return true;
}

}  // namespace

void take(Turn& turn, const messages::FleetMeasured& measured) {
  JobRecord* const job = turn.state.job(measured.job);
  if (!job || !job->shape.autoscale || !job->autoscaling.on || job->outcome ||
      !turn.state.durable.knows(job->id) ||  // cancelled
      job->status.state != scheduler::JobState::kRunning)
    return;
  Autoscaling& autoscaling = job->autoscaling;
  scheduler::AutoscaleInput input{.rates = measured.rates,
                                  .overlaps = measured.overlaps,
                                  .starved_fraction = measured.starved_fraction,
                                  .wanted = job->desired.at(Role::kRollout),
                                  .sequences_max = measured.sequences_max,
                                  .trainer = trainer_of(*job, measured, turn.now)};
  for (const auto& [name, actor] : job->actors)
    input.up += actor.role == Role::kRollout && wanted(*job, actor) && at_work(actor);
  MoreRoom room = room_for(turn.state, *job, Role::kRollout,
                           std::max<std::int64_t>(0, job->shape.autoscale->max - input.wanted));
  input.room = room.places;
  input.room_goes_to = std::move(room.goes_to);
  auto decision = autoscale(*job->shape.autoscale, autoscaling.state, input, turn.now);
  const bool changes = decision.hold == AutoscaleHold::kChanges && carry_out(turn, *job, decision);
  autoscaling.state =
      after_window(*job->shape.autoscale, autoscaling.state, input, decision, changes, turn.now);
  const AllocationKept* const kept = turn.state.durable.allocation(job->id);
  if (changes ||
      differ(autoscaling.state.delivered, kept ? kept->delivered : scheduler::AutoscaleDelivered{}))
    keep_allocation(turn, *job);
  if (!changes) say_why_not(turn, *job, decision);
  autoscaling.newest = std::move(decision);
}

Result<void> may_autoscale(const JobRecord& job, const Role& role) {
  if (!has_role(job.shape, role)) return replicas_asked(job.shape, role, "auto").error();
  if (role != Role::kRollout)
    return Error{ErrorCode::kInvalid,
                 "only rollouts can be scaled automatically, not " + name(role), "",
                 "give a number: " + name(role) + "=N"};
  if (!job.shape.autoscale)
    return Error{ErrorCode::kInvalid, job.id + " has no limits to scale its rollouts within", "",
                 "give a number: rollout=N; or submit it with `pools.rollout.autoscale: {min: …, "
                 "max: …}`"};
  return {};
}

Result<void> let_autoscale(Turn& turn, JobRecord& job, const Role& role) {
  if (const auto may = may_autoscale(job, role); !may) return may.error();
  if (std::exchange(job.autoscaling.on, true)) return {};
  job.autoscaling.state = {};
  job.autoscaling.newest.reset();
  job.autoscaling.said.reset();
  const scheduler::AutoscaleConfig& config = *job.shape.autoscale;
  turn.announce(job, "scale rollout=auto: from " + std::to_string(config.min) + " to " +
                         std::to_string(config.max) + ", decided every " +
                         std::to_string(config.window_steps) + " steps");
  keep_allocation(turn, job);
  return {};
}

std::string autoscale_is_off(const JobRecord& job) {
  return "autoscale is off, until `tandem scale " + job.id + " rollout=auto`";
}

void keep_allocation(Turn& turn, const JobRecord& job) {
  AllocationKept kept{.job = job.id, .automatic = job.autoscaling.on, .before = {}};
  for (const auto& [role, replicas] : job.autoscaling.before) kept.before[name(role)] = replicas;
  if (const auto& change = job.autoscaling.state.change) {
    kept.changed = change->at;
    kept.raised = change->direction == Direction::kUp;
    kept.too_few = job.autoscaling.state.raised;
  }
  kept.delivered = job.autoscaling.state.delivered;
  const AllocationKept* known = turn.state.durable.allocation(job.id);
  const AllocationKept as_submitted{
      .job = job.id, .automatic = job.shape.autoscale.has_value(), .before = {}};
  if (known ? *known != kept : as_submitted != kept) turn.remember(std::move(kept));
}

// A damaged row may name any role, number and figure: those that cannot be are left out.
void restore_allocation(Turn& turn, JobRecord& job) {
  const AllocationKept* known = turn.state.durable.allocation(job.id);
  if (!known) return;
  job.autoscaling.on = known->automatic && job.shape.autoscale;
  scheduler::AutoscaleState state{.raised = known->too_few, .delivered = known->delivered};
  if (!scheduler::is_sound(state)) state = {};
  if (known->changed)
    state.change = {std::min(*known->changed, turn.now),
                    known->raised ? Direction::kUp : Direction::kDown};
  job.autoscaling.state = state;
  for (const auto& [role, replicas] : known->before)
    if (job.desired.contains({role}) &&
        (Role{role} == Role::kLearner
             ? replicas == 1
             : replicas_asked(job.shape, {role}, std::to_string(replicas)).has_value()))
      job.autoscaling.before[{role}] = replicas;
}

MoreRoom room_for(const ControllerState& state, const JobRecord& job, const Role& role,
                  std::int64_t most) {
  const auto [from, behind] = names_below(job.id + "/" + name(role));
  const auto like = job.actors.lower_bound(from);
  if (like == job.actors.end() || like->first >= behind) return {};
  scheduler::FreeRoom room(state.found.room);
  for (const auto& [submitted, id] : state.found.wanting) {
    const JobRecord& other = state.jobs.at(id);
    if (waits_for_room(other)) {
      if (can_ever_run(state, as_wanted(other))) return {.goes_to = id};
      continue;
    }
    for (const std::string& waiting : other.waiting)
      (void)scheduler::place_next(room, gang_of(other, other.actors.at(waiting)));
  }
  const scheduler::Gang gang = gang_of(job, like->second);
  MoreRoom more;
  while (more.places < most &&
         std::holds_alternative<scheduler::Assignment>(scheduler::place_next(room, gang)))
    ++more.places;
  return more;
}

}  // namespace tandem::controller
