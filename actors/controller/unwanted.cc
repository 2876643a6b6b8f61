#include "actors/controller/unwanted.h"

#include <set>
#include <string>
#include <utility>

#include "actors/controller/job_end.h"
#include "actors/controller/room.h"
#include "actors/controller/stopping.h"

namespace tandem::controller {

void end_unwanted(Turn& turn, NodeRecord& node, const std::vector<node::RankId>& ranks) {
  for (const node::RankId& id : ranks) {
    node.unwanted.insert(id);
    turn.state.found.unwanted.emplace(id, node.name);
    turn.send(KillRankOn{node.name, id, kStopGraceMs});
  }
  renew_room(turn.state, node);
}

bool take_end_of_unwanted(Turn& turn, const node::RankId& id) {
  const auto found = turn.state.found.unwanted.lower_bound({id, ""});
  if (found == turn.state.found.unwanted.end() || found->first != id) return false;
  NodeRecord& node = turn.state.nodes.at(found->second);
  turn.state.found.unwanted.erase(found);
  node.unwanted.erase(id);
  renew_room(turn.state, node);
  if (JobRecord* job = turn.state.job_of(id.actor)) {
    finish_job_if_gone(turn, *job);
    if (job->line.queued.contains(id.actor)) job->line.fresh.insert(id.actor);
  }
  turn.note_change();
  if (node.unwanted.empty()) turn.state.nodes_awaited.erase(node.name);
  return true;
}

void forget_unwanted(Turn& turn, NodeRecord& node) {
  std::set<std::string> actors, jobs;
  for (const node::RankId& id : std::exchange(node.unwanted, {})) {
    turn.state.found.unwanted.erase({id, node.name});
    actors.insert(id.actor);
    jobs.insert(job_of_actor(id.actor));
  }
  for (const std::string& actor : actors)
    if (JobRecord* const job = turn.state.job_of(actor); job && job->line.queued.contains(actor))
      job->line.fresh.insert(actor);
  for (const std::string& id : jobs)
    if (JobRecord* const job = turn.state.job(id)) finish_job_if_gone(turn, *job);
}

}  // namespace tandem::controller
