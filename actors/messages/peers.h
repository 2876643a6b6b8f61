// The peers of an exchange: a row for each kind of actor that it speaks with, with the messages of
// both directions and the ports at which they are heard. This table is the source of all that is
// done for every peer: ports and their doors, the links of an exchange, the messages that it hears
// and sends, and the hash by which two builds find out that they differ.
//
// Two actors of one rank may be peers of their own: a rank that broadcasts weights has an actor for
// that beside the one of its role.
#pragma once

#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "actors/messages/broadcast.h"
#include "actors/messages/learner.h"
#include "actors/messages/reward.h"
#include "actors/messages/roles.h"
#include "actors/messages/rollout.h"

namespace tandem::messages {

inline constexpr const char* kRolePort = "role";            // of a rank: the actor of its role
inline constexpr const char* kBroadcastPort = "broadcast";  // of a rank that broadcasts

// A message that may be longer than a frame names the list at which it is cut, by a function
// cut_at() beside it (rollout.h); any other message that is too long ends the job.
//
// A row has
//   Inbox    every message that the peer can get from the exchange
//   Events   every message that the exchange can get from the peer; each names its sender as `from`
//   kName    the peer's name in the port of the exchange, exchange_port()
//   kPort    the port of the peer's rank
//   roles()  the roles whose ranks are such a peer
struct RolloutPeer {
  using Inbox = RolloutInbox;
  using Events = RolloutEvents;
  static constexpr const char *kName = "rollout", *kPort = kRolePort;
  static std::vector<Role> roles() { return {Role::kRollout}; }
};

struct LearnerPeer {
  using Inbox = LearnerInbox;
  using Events = LearnerEvents;
  static constexpr const char *kName = "learner", *kPort = kRolePort;
  static std::vector<Role> roles() { return {Role::kLearner}; }
};

struct RewardPeer {
  using Inbox = RewardInbox;
  using Events = RewardEvents;
  static constexpr const char *kName = "reward", *kPort = kRolePort;
  static std::vector<Role> roles() { return {Role::kReward}; }
};

struct BroadcastPeer {
  using Inbox = BroadcastInbox;
  using Events = BroadcastEvents;
  static constexpr const char *kName = "broadcast", *kPort = kBroadcastPort;
  static std::vector<Role> roles() { return {Role::kRollout, Role::kLearner}; }
};

// All rows, as a type: Template<Peers...> for a template of a list of peers.
template <template <class... Peers> class Template>
using OfPeers = Template<RolloutPeer, LearnerPeer, RewardPeer, BroadcastPeer>;

// Calls do_it.operator()<Peer>() for each row.
template <class DoIt>
void for_each_peer(const DoIt& do_it) {
  []<class... Peers>(const DoIt& each, std::type_identity<std::variant<Peers...>>) {
    (each.template operator()<Peers>(), ...);
  }(do_it, std::type_identity<OfPeers<std::variant>>{});
}

// The port at which the exchange of a job hears this peer.
template <class Peer>
std::string exchange_port(const std::string& job) {
  return exchange_name(job) + "/" + Peer::kName;
}

// The variant of all alternatives of several variants.
template <class... Variants>
struct Joined;
template <class... A>
struct Joined<std::variant<A...>> {
  using type = std::variant<A...>;
};
template <class... A, class... B, class... More>
struct Joined<std::variant<A...>, std::variant<B...>, More...> {
  using type = typename Joined<std::variant<A..., B...>, More...>::type;
};

// Every message that an exchange can get from its peers.
template <class... Peers>
using EventsOf = typename Joined<typename Peers::Events...>::type;
using PeerEvents = OfPeers<EventsOf>;

template <class Message, class Variant>
constexpr bool kIsOneOf = false;
template <class Message, class... A>
constexpr bool kIsOneOf<Message, std::variant<A...>> = (std::is_same_v<Message, A> || ...);

// The peer that gets such a message from the exchange. No message has two.
template <class Message, class... Peers>
struct PeerOf {
  static_assert((int{kIsOneOf<Message, typename Peers::Inbox>} + ... + 0) == 1,
                "no row of OfPeers has this message in its Inbox, or two have it");
  template <class Peer>
  using IfItGets = std::conditional_t<kIsOneOf<Message, typename Peer::Inbox>, std::variant<Peer>,
                                      std::variant<>>;
  using type = std::variant_alternative_t<0, typename Joined<IfItGets<Peers>...>::type>;
};
template <class Message>
struct PeerThatGets {
  template <class... Peers>
  using Of = typename PeerOf<Message, Peers...>::type;
  using type = OfPeers<Of>;
};

}  // namespace tandem::messages
