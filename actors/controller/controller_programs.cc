// The actors of roles that a job brings: programs of the user's, one process each, which the
// controller starts and ends like a rollout. Three things differ. A program that exits with 0 has
// finished and is not started again; it is drained by a message of the controller, and not by an
// exchange; and a job that has nothing but programs has no exchange, so that its progress and its
// end are decided here.
#include <algorithm>
#include <utility>

#include "actors/controller/controller_core.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::JobState;
using scheduler::Reason;

namespace {

constexpr std::int64_t kDrainMs = 30'000;  // to finish the work that an actor holds
// The time from the request to end until SIGKILL; a program may have questions to answer before it
// ends.
constexpr std::int64_t kProgramGraceMs = 10'000;

std::string cause_of(const ActorRecord& actor, Time now) {
  return scheduler::message(actor.status.reason, now);
}

}  // namespace

Reason ControllerCore::initialising(const JobRecord& job, const ActorRecord& actor) const {
  if (program_of(job.shape, actor.role)) return scheduler::WaitingForProgram{};
  if (actor.role == messages::Role::kReward) return scheduler::StartingVerifier{};
  return scheduler::LoadingModel{};
}

void ControllerCore::start_program(JobRecord& job, ActorRecord& actor) {
  RankRecord& rank = actor.ranks.front();
  if (std::exchange(rank.started, true)) return;
  effects_.push_back(SendProgramStart{
      {actor.name, actor.incarnation, 0},
      messages::StartActor{.job = job.id,
                           .actor = actor.name,
                           .role = name(actor.role),
                           .incarnation = actor.incarnation,
                           .replicas = job.desired.at(actor.role),
                           .args_json = job.shape.programs.at(actor.role).args_json,
                           .run_dir = job.run_dir}});
}

void ControllerCore::drain(JobRecord& job, ActorRecord& actor) {
  const Time deadline = now_ + std::chrono::milliseconds(kDrainMs);
  const bool program = program_of(job.shape, actor.role) != nullptr;
  set(actor, ActorState::kDraining, scheduler::Draining{0, deadline, program});
  if (!program) {
    effects_.push_back(
        TellExchange{job.id, messages::DrainActor{actor.name, actor.incarnation, kDrainMs}});
    return;
  }
  effects_.push_back(DrainRank{{actor.name, actor.incarnation, 0}, kDrainMs});
  effects_.push_back(WakeAt{deadline});
}

// The link of a program that ends by itself goes down before its exit is known: if it were killed
// at once, its end could count as a death.
void ControllerCore::link_lost(ActorRecord& actor) {
  actor.ranks.front().connected = false;
  actor.report_deadline = now_ + std::chrono::milliseconds(kStopGraceMs);
  effects_.push_back(WakeAt{actor.report_deadline});
}

void ControllerCore::end_overdue_program(const JobRecord& job, ActorRecord& actor) {
  if (!program_of(job.shape, actor.role) || actor.ending || !alive(actor)) return;
  const auto* draining = std::get_if<scheduler::Draining>(&actor.status.reason);
  const RankRecord& rank = actor.ranks.front();
  if (draining && now_ >= draining->deadline)
    kill(actor, scheduler::ScaleDown{}, kProgramGraceMs);
  else if (rank.started && !rank.connected && now_ >= actor.report_deadline)
    kill(actor, scheduler::Hung{}, 0);
}

void ControllerCore::stop_actor(JobRecord& job, ActorRecord& actor, Reason why) {
  if (!program_of(job.shape, actor.role)) return kill(actor, std::move(why), kStopGraceMs);
  effects_.push_back(DrainRank{{actor.name, actor.incarnation, 0}, kProgramGraceMs});
  kill(actor, std::move(why), kProgramGraceMs);
}

void ControllerCore::finish_actor(JobRecord& job, ActorRecord& actor) {
  // The actor passes through Stopping, as every actor does that was at work.
  if (actor.status.state == ActorState::kReady || actor.status.state == ActorState::kBusy)
    set(actor, ActorState::kStopping, scheduler::Finished{});
  set(actor, ActorState::kStopped, scheduler::Finished{});
  job.ladder.forget(actor.name);
  actor.crash_loop = {};
  count_ready(job);
  count_finished(job);
}

// A job of actors alone runs once each of them is ready, or has been. Called for every actor that
// comes up, so it counts none anew.
void ControllerCore::count_ready(JobRecord& job) {
  if (job.status.state != JobState::kStarting) return;
  const auto count = static_cast<std::int32_t>(job.actors.size());
  if (!trains(job.shape) && job.ready + job.stopped == count)
    return set(job, JobState::kRunning, scheduler::Working{});
  set(job, JobState::kStarting, scheduler::WaitingForActors{job.ready, count});
}

// A job without actors waits for a user to scale it.
void ControllerCore::count_finished(JobRecord& job) {
  if (trains(job.shape) || job.outcome || job.actors.empty()) return;
  if (job.stopped == std::ssize(job.actors))
    end_job(job, messages::JobOutcome::kSucceeded, "all of its actors have ended with code 0");
}

Result<node::RankId> ControllerCore::program_to_ask(const std::string& actor_name) const {
  const auto job = jobs_.find(actor_name.substr(0, actor_name.find('/')));
  if (job == jobs_.end() || !job->second.actors.contains(actor_name))
    return Error{ErrorCode::kNotFound, "there is no actor " + actor_name, "",
                 "`tandem get actors` lists them"};
  const ActorRecord& actor = job->second.actors.at(actor_name);
  if (!program_of(job->second.shape, actor.role))
    return Error{ErrorCode::kInvalid, actor_name + " takes no questions", "",
                 "only actors of the section `actors:` of a job file can be asked"};
  if (actor.status.state != ActorState::kReady)
    return Error{
        ErrorCode::kUnreachable,
        actor_name + " is " + scheduler::name(actor.status.state) + ": " + cause_of(actor, now_),
        "", "`tandem why " + actor_name + "` says more"};
  return node::RankId{actor.name, actor.incarnation, 0};
}

}  // namespace tandem::controller
