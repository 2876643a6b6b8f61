// The end of an actor, which has one path, whatever began it: stopping.h asks agents to end its
// processes, rank_gone() hears of each end, and after the last one the actor is stopped, restarted
// or failed (CC-1). A reason is kept in ActorRecord::ending from the first sign, so that the end of
// the processes does not hide its cause.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/controller/turn.h"

namespace tandem::controller {

// The process of a rank has ended. The others of its gang are ended too. After the last one the
// record of the actor may be erased.
void rank_gone(Turn& turn, JobRecord& job, ActorRecord& actor, std::int32_t rank,
               scheduler::Reason why);

// The actor has outlived the controller before this one, and not all of its links are up again yet.
bool comes_back(const ActorRecord& actor);
// Ranks that count as gone with their node: all, those without a link, or also those that are
// silent. kUnlinked and kUnheard leave those of an actor that comes back; kGivenUp does not.
enum class Lost { kAll, kUnlinked, kUnheard, kGivenUp };
// The living ranks on the node that are not lost by that measure.
std::vector<node::RankId> ranks_left(ControllerState& state, const std::string& node,
                                     Lost lost = Lost::kUnlinked);
// They count as gone. A link that such a rank has is cut, which ends the rank.
void lose_ranks(Turn& turn, const std::string& node, Lost which);
// So do those that have outlived the controller before and whose node has not come back in time,
void give_up_unreturned(Turn& turn);
// and those whose agent has died and has not come back in time (NodeRecord::agent_until).
void give_up_agents(Turn& turn);

void take(Turn& turn, const node::RankSpawnFailed& failed);
void take(Turn& turn, const node::RankExited& exited);

}  // namespace tandem::controller
