#include "actors/controller/controller_state.h"

#include <algorithm>

namespace tandem::controller {

bool trains(const JobShape& shape) { return has_role(shape, messages::Role::kLearner); }

bool has_role(const JobShape& shape, const messages::Role& role) {
  return std::ranges::find(shape.roles, role) != shape.roles.end();
}

const RoleProgram* program_of(const JobShape& shape, const messages::Role& role) {
  const auto program = shape.programs.find(role);
  return program == shape.programs.end() ? nullptr : &program->second;
}

std::int32_t ranks_of(const JobShape& shape, const messages::Role& role) {
  return role == messages::Role::kLearner ? shape.learner_ranks : 1;
}

bool ended_unresumed(const JobRecord& job) {
  return job.shape.resume_dir && job.outcome && !job.outcome->has_result;
}

// An actor of a run that is resumed, or was taken up, counts as having worked: nobody knows better.
bool has_worked(const JobRecord& job, const ActorRecord& actor) {
  return actor.ever_ready || job.shape.resume_dir.has_value();
}

bool alive(const ActorRecord& actor) {
  return std::ranges::any_of(actor.ranks, &RankRecord::alive);
}

bool wanted(const JobRecord& job, const ActorRecord& actor) {
  const auto it = job.desired.find(actor.role);
  return it != job.desired.end() && actor.index < it->second;
}

JobRecord* ControllerState::job(const std::string& id) {
  const auto it = jobs.find(id);
  return it == jobs.end() ? nullptr : &it->second;
}

JobRecord* ControllerState::job_of(const std::string& actor) {
  return job(actor.substr(0, actor.find('/')));
}

ActorRecord* ControllerState::actor_of(const ActorId& id) {
  JobRecord* job = job_of(id.name);
  if (!job) return nullptr;
  const auto it = job->actors.find(id.name);
  if (it == job->actors.end() || it->second.incarnation != id.incarnation) return nullptr;
  return &it->second;
}

RankRecord* ControllerState::rank_of(const node::RankId& id) {
  ActorRecord* actor = actor_of({id.actor, id.incarnation});
  if (!actor || id.rank < 0 || id.rank >= std::ssize(actor->ranks)) return nullptr;
  return &actor->ranks[static_cast<std::size_t>(id.rank)];
}

bool ControllerState::has_agent(const std::string& node) const {
  const auto at = nodes.find(node);
  return at != nodes.end() && at->second.up;
}

bool idle(const ControllerState& state) { return state.jobs.size() == state.found.ended.size(); }

}  // namespace tandem::controller
