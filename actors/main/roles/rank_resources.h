// The parts that a rank process lends to the role that it builds: actors, ports, the payload
// socket, the device, and the ways in which ranks exchange weights and gradients.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/main/roles/rank_nccl.h"
#include "actors/messages/peers.h"
#include "actors/messages/rank.h"
#include "actors/rank/rank_words.h"
#include "runtime/actor/system.h"
#include "runtime/device/parallel.h"
#include "runtime/device/queue.h"
#include "runtime/link/progress.h"
#include "runtime/link/remote.h"
#include "runtime/link/socket_folder.h"
#include "runtime/payload/bulk.h"
#include "runtime/weights/weight_ends.h"
#include "runtime/weights/weights_config.h"

namespace tandem::app {

inline constexpr Duration kPayloadTimeout = std::chrono::seconds(30);

// The device of an engine, and the NCCL by which ranks exchange bytes. Empty until the role is
// built; a member is null where the role does not need it.
struct EngineDevice {
  std::unique_ptr<RankNccl> nccl;  // only if the rank uses NCCL
  std::unique_ptr<device::ThreadPool> threads;
  std::unique_ptr<device::Queue> queue;
};

using rank::RankNetwork;

struct RankResources {
  actor::System& system;
  link::Directory& directory;
  link::IoThread& bulk_io;
  const RankNetwork network;
  EngineDevice& device;
  link::ParcelSender to_controller;
  link::Progress& progress;
  std::optional<link::SocketFolder> sockets;  // set on rank 0 of a gang: where it listens
  std::unique_ptr<payload::BulkClient> bulk;
  std::function<void()> begin_broadcasts = [] {};
  std::function<bool()> meet_again_in_broadcasts = [] { return true; };  // as BuiltRole::meet_again

  // The exchange of a job as an actor of this kind speaks to it (messages/peers.h), and the way in
  // which the exchange reaches that actor.
  template <class Peer>
  actor::Ref<typename Peer::Events> exchange_for(const std::string& job) {
    return directory.remote<typename Peer::Events>({messages::exchange_port<Peer>(job), {}},
                                                   to_controller);
  }
  template <class Peer, class Inbox>
  void expose_as(const actor::Ref<Inbox>& ref) {
    directory.expose(Peer::kPort, actor::narrow<typename Peer::Inbox>(ref));
  }
  payload::PayloadReader payload_reader();
  std::string listening_address() const;
  // How the publisher of `weights` serves other hosts; nullopt where their processes do not come.
  std::optional<weights::Serving> serving_of(const weights::WeightsConfig& weights) const;
  // Opens NCCL for weights that are broadcast; does nothing for other types.
  Result<void> prepare_broadcasts(weights::WeightsConfig& weights, const std::string& job);
  Result<void> open_nccl();
  // Spawns the actor for broadcasts. Does nothing where `rank` is null: those weights are only
  // fetched.
  void take_part_in_broadcasts(const messages::StartRank& start,
                               const weights::WeightsConfig& weights,
                               std::shared_ptr<weights::BroadcastRank> rank);
  std::function<void(const char*, Time)> phase_reporter();
};

// Spawns an actor that has been made already. The factory can be called once, which is enough: the
// actors of a rank are never restarted within their process.
template <class A>
actor::Ref<typename A::Inbox> spawn_made(actor::System& system, std::unique_ptr<A> made,
                                         const std::string& name = "role") {
  auto kept = std::make_shared<std::unique_ptr<A>>(std::move(made));
  return system.spawn<A>(name, [kept] { return std::move(*kept); });
}

// Without a pool an operator runs on the thread that calls it: null for one thread.
std::unique_ptr<device::ThreadPool> make_threads(std::int64_t threads);
// The device of a rank whose pool has so many GPUs. A rank that was given a GPU must find one: the
// error says what is missing.
Result<device::DeviceKind> device_of(double gpus_per_actor);
// The payload socket of the controller that `dial` reaches, among those that are offered: the one
// of the same kind, Unix or TCP. Over TCP the host of `dial` is used, which is known to lead to the
// controller.
Result<link::Dial> payload_dial(const std::vector<std::string>& offered, const link::Dial& dial);

}  // namespace tandem::app
