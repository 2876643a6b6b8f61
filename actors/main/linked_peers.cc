#include "actors/main/linked_peers.h"

#include <cstdlib>

namespace tandem::app {

node::RankId rank_of(const ActorId& peer, const link::Hello& hello) {
  return {hello.opaque, peer.incarnation, hello.rank};
}

node::RankId rank_of(const ActorId& peer) {
  const auto at = peer.name.find('@');
  const int rank = at == std::string::npos ? 0 : std::atoi(peer.name.c_str() + at + 1);
  return {peer.name.substr(0, at), peer.incarnation, rank};
}

bool has_died(link::Down::Reason reason) {
  return reason == link::Down::Reason::kDisconnected || reason == link::Down::Reason::kSuperseded;
}

}  // namespace tandem::app
