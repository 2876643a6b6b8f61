#include "actors/messages/wire_build.h"

#include "actors/messages/peers.h"
#include "actors/messages/program.h"
#include "actors/messages/rank.h"
#include "runtime/node/agent_messages.h"
#include "runtime/wire/codec.h"
#include "runtime/wire/schema.h"

namespace tandem::messages {

std::string wire_build() {
  std::string schema = wire::wire_schema<RankInbox, RankEvents, ProgramInbox, node::AgentInbox,
                                         node::AgentEvents, Error>();
  for_each_peer([&schema]<class Peer> {
    schema += wire::wire_schema<typename Peer::Inbox, typename Peer::Events>();
  });
  return "tandem-wire " + std::to_string(kWireProtocol) + "/" + wire::schema_hash(schema);
}

}  // namespace tandem::messages
