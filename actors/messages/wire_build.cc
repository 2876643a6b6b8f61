#include "actors/messages/wire_build.h"

#include "actors/messages/broadcast.h"
#include "actors/messages/learner.h"
#include "actors/messages/program.h"
#include "actors/messages/rank.h"
#include "actors/messages/reward.h"
#include "actors/messages/rollout.h"
#include "runtime/node/agent_messages.h"
#include "runtime/wire/codec.h"
#include "runtime/wire/schema.h"

namespace tandem::messages {

std::string wire_build() {
  const std::string schema =
      wire::wire_schema<RankInbox, RankEvents, ProgramInbox, RolloutInbox, RolloutEvents,
                        LearnerInbox, LearnerEvents, RewardInbox, RewardEvents, BroadcastInbox,
                        BroadcastEvents, node::AgentInbox, node::AgentEvents, Error>();
  return "tandem-wire " + std::to_string(kWireProtocol) + "/" + wire::schema_hash(schema);
}

}  // namespace tandem::messages
