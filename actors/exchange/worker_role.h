// The differences between the roles whose actors work under leases of the exchange: the part of
// each in a decision, in evaluations and in reports. The rows are in worker_roles.h; the parts of
// the exchange find them in their Turn or RunView.
#pragma once

#include <vector>

#include "actors/messages/exchange.h"
#include "actors/messages/roles.h"
#include "runtime/base/ids.h"

namespace tandem::exchange {

class Evaluation;
class Turn;
struct RunView;
struct WorkerFacts;

struct WorkerRole {
  messages::Role role;
  const char* one;  // how reports call one of its actors: "a reward actor"
  // Leases waiting groups to actors that have room for them.
  void (*lease)(Turn& turn);
  // Gives actors the part of an evaluation that is theirs. Null: they have none.
  void (*evaluate)(Turn& turn, Evaluation& evaluation);
  // Takes these groups back from an actor, or everything where the list is empty. Null: the actors
  // need not hear it, since an answer under a lease that has ended is refused.
  void (*hand_back)(Turn& turn, const ActorId& who, std::vector<GroupId> groups);
  // How much an actor holds, for people.
  messages::ActorLoad (*load)(const RunView& view, const WorkerFacts& worker);
};

}  // namespace tandem::exchange
