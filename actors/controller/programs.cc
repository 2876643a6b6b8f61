#include "actors/controller/programs.h"

#include <utility>

#include "actors/controller/stopping.h"
#include "actors/controller/upkeep.h"

namespace tandem::controller {

void start_program(Turn& turn, const JobRecord& job, ActorRecord& actor) {
  RankRecord& rank = actor.ranks.front();
  if (std::exchange(rank.started, true)) return;
  turn.send(SendProgramStart{
      {actor.name, actor.incarnation, 0},
      messages::StartActor{.job = job.id,
                           .actor = actor.name,
                           .role = name(actor.role),
                           .incarnation = actor.incarnation,
                           .replicas = job.desired.at(actor.role),
                           .args_json = job.shape.programs.at(actor.role).args_json,
                           .run_dir = job.run_dir}});
}

void end_overdue_program(Turn& turn, const JobRecord& job, ActorRecord& actor) {
  if (!program_of(job.shape, actor.role) || actor.ending || !alive(actor)) return;
  const auto* draining = std::get_if<scheduler::Draining>(&actor.status.reason);
  if (draining && turn.now >= draining->deadline)
    kill(turn, actor, why_drained(actor), kProgramGraceMs);
}

Result<node::RankId> program_to_ask(const ControllerState& state, const std::string& asked) {
  const auto job = state.jobs.find(asked.substr(0, asked.find('/')));
  if (job == state.jobs.end() || !job->second.actors.contains(asked))
    return Error{ErrorCode::kNotFound, "there is no actor " + asked, "",
                 "`tandem get actors` lists them"};
  const ActorRecord& actor = job->second.actors.at(asked);
  if (!program_of(job->second.shape, actor.role))
    return Error{ErrorCode::kInvalid, asked + " takes no questions", "",
                 "only actors of the section `actors:` of a job file can be asked"};
  if (actor.status.state != scheduler::ActorState::kReady)
    return Error{ErrorCode::kUnreachable,
                 asked + " is " + scheduler::name(actor.status.state) + ": " +
                     scheduler::message(reason_shown(job->second, actor), state.now_last),
                 "", "`tandem why " + asked + "` says more"};
  return node::RankId{actor.name, actor.incarnation, 0};
}

}  // namespace tandem::controller
