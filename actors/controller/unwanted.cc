#include "actors/controller/unwanted.h"

#include "actors/controller/job_end.h"
#include "actors/controller/stopping.h"

namespace tandem::controller {

void end_unwanted(Turn& turn, NodeRecord& node, const std::vector<node::RankId>& ranks) {
  for (const node::RankId& id : ranks) {
    node.unwanted.insert(id);
    turn.send(KillRankOn{node.name, id, kStopGraceMs});
  }
}

bool take_end_of_unwanted(Turn& turn, const node::RankId& id) {
  for (auto& [name, node] : turn.state.nodes) {
    if (node.unwanted.erase(id) == 0) continue;
    if (JobRecord* job = turn.state.job_of(id.actor)) finish_job_if_gone(turn, *job);
    turn.note_change();
    if (node.unwanted.empty()) turn.state.nodes_awaited.erase(name);
    return true;
  }
  return false;
}

}  // namespace tandem::controller
