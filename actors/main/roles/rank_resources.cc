#include "actors/main/roles/rank_resources.h"

#include <algorithm>

#include "actors/broadcast/broadcast_actor.h"
#include "actors/rank/rank_failure.h"
#include "runtime/device/cuda_module.h"

namespace tandem::app {
namespace {

// How long a rollout that is cut off keeps a version from being replaced; less where that would
// outlast the time for which the learner waits for a free place.
constexpr Duration kSubscriberSilenceMax = std::chrono::seconds(20);

}  // namespace

payload::PayloadReader RankResources::payload_reader() {
  return [client = bulk.get()](std::vector<wire::PayloadRef> refs, auto done) {
    client->get_many(std::move(refs), kPayloadTimeout, std::move(done));
  };
}

std::string RankResources::listening_address() const {
  return network.bind.empty() ? link::kLoopback : network.bind;
}

// Half of stall_max leaves the learner time after a silent subscriber has been given up.
std::optional<weights::Serving> RankResources::serving_of(
    const weights::WeightsConfig& weights) const {
  const weights::ServedOverTcp served = weights::traits_of(weights.type).served;
  const bool others_may_come =
      served == weights::ServedOverTcp::kToOtherHosts && !network.bind.empty();
  if (served != weights::ServedOverTcp::kAlways && !others_may_come) return std::nullopt;
  return weights::Serving{.bind = listening_address(),
                          .advertise = network.advertise,
                          .ports = network.ports,
                          .silence_max = std::min(kSubscriberSilenceMax, weights.stall_max / 2)};
}

Result<void> RankResources::prepare_broadcasts(weights::WeightsConfig& weights,
                                               const std::string& job) {
  if (!weights::traits_of(weights.type).nccl) return {};
  if (const auto ready = open_nccl(); !ready) return ready.error();
  weights.broadcasting = {.nccl = &device.nccl->process(),
                          .device = device::DeviceKind::kCuda,
                          .name = job + "/weights"};
  return {};
}

Result<void> RankResources::open_nccl() {
  if (device.nccl) return {};
  auto opened = RankNccl::open();
  if (!opened) return opened.error();
  device.nccl = *std::move(opened);
  return {};
}

void RankResources::take_part_in_broadcasts(const messages::StartRank& start,
                                            const weights::WeightsConfig& weights,
                                            std::shared_ptr<weights::BroadcastRank> rank) {
  if (!rank) return;
  const collective::NcclProcess& nccl = *weights.broadcasting->nccl;
  auto ref = spawn_made(
      system,
      std::make_unique<broadcast::BroadcastActor>(
          broadcast::BroadcastActorConfig{.self = {start.actor, start.incarnation},
                                          .leads = start.role == messages::Role::kLearner,
                                          .nccl_version = nccl.api.version,
                                          .layout = weights.layout,
                                          .communicator = weights.broadcasting->name},
          std::move(rank), nccl.records, exchange_for<messages::BroadcastPeer>(start.job)),
      "broadcast");
  expose_as<messages::BroadcastPeer>(ref);
  begin_broadcasts = [ref] {
    CHECK(ref.tell(broadcast::StartBroadcast{}) == actor::Delivery::kAccepted);
  };
  meet_again_in_broadcasts = [ref] {
    return ref.tell(broadcast::MeetAgain{}) == actor::Delivery::kAccepted;
  };
}

std::function<void(const char*, Time)> RankResources::phase_reporter() {
  return [p = &progress](const char* phase, Time now) { p->enter(phase, now); };
}

std::unique_ptr<device::ThreadPool> make_threads(std::int64_t threads) {
  if (threads <= 1) return nullptr;
  return std::make_unique<device::ThreadPool>(static_cast<int>(threads));
}

Result<device::DeviceKind> device_of(double gpus_per_actor) {
  if (gpus_per_actor <= 0) return device::DeviceKind::kCpu;
  if (const auto& module = device::cuda_module(); !module) return rank::of_input(module.error());
  return device::DeviceKind::kCuda;
}

Result<link::Dial> payload_dial(const std::vector<std::string>& offered, const link::Dial& dial) {
  for (const std::string& text : offered) {
    auto endpoint = link::parse_endpoint(text);
    if (!endpoint) return endpoint.error();
    if (endpoint->is_local() != dial.to.is_local()) continue;
    if (!endpoint->is_local()) endpoint->host = dial.to.host;
    return link::Dial{std::move(*endpoint), dial.keys};
  }
  return Error{ErrorCode::kUnreachable, "the controller has no payload socket for this host",
               to_string(dial.to)};
}

}  // namespace tandem::app
