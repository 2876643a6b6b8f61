// Rank 0 makes the unique id and broadcasts it with its layout; each rank compares the layout with
// its own, and a barrier follows. Only then NCCL is started: its start waits for all ranks, and a
// rank that has refused would never come.
#include "actors/main/roles/gang_shards.h"

#include <span>
#include <utility>
#include <vector>

#include "kernels/ops/sum_pieces.h"
#include "runtime/collective/nccl_rendezvous.h"
#include "runtime/collective/nccl_shards.h"

namespace tandem::app {

using collective::NcclCommunicator;
using collective::NcclProcess;
using collective::NcclRendezvous;

namespace {

// The bytes that rank 0 broadcasts. The struct travels as it lies in memory, without padding; a
// change of it raises kWireProtocol (actors/messages/wire_build.h).
struct Invitation {
  collective::NcclUniqueId unique_id;
  std::uint64_t layout_hash = 0;
  std::uint64_t layout_bytes = 0;  // the size of rank 0's manifest_json, which follows
};
static_assert(std::has_unique_object_representations_v<Invitation>);

Result<Invitation> invite(const GangShardsConfig& config, collective::Collective& gang,
                          const NcclProcess& process) {
  Invitation invitation{.unique_id = {},
                        .layout_hash = config.layout.hash,
                        .layout_bytes = config.layout.manifest_json.size()};
  if (gang.rank() == 0) {
    const auto made = collective::make_nccl_unique_id(process, config.timeout);
    if (!made) return made.error();
    invitation.unique_id = *made;
  }
  const auto bytes = std::as_writable_bytes(std::span(&invitation, 1));
  if (const auto sent = gang.broadcast(bytes, 0, config.timeout); !sent) return sent.error();
  return invitation;
}

// Broadcasts the text of rank 0's manifest. All ranks take part, also those with equal hashes, so
// that a rank which differs can say how.
Result<void> check_layout(const GangShardsConfig& config, const Invitation& invitation,
                          collective::Collective& gang) {
  std::string theirs = config.layout.manifest_json;
  theirs.resize(invitation.layout_bytes);
  const auto bytes = std::as_writable_bytes(std::span(theirs));
  if (auto sent = gang.broadcast(bytes, 0, config.timeout); !sent) return sent;
  if (invitation.layout_hash == config.layout.hash) return {};
  return Error{.code = ErrorCode::kInvalid,
               .message = "the weights of rank " + std::to_string(gang.rank()) +
                          " have another layout than those of rank 0: " +
                          weights::layout_difference(config.layout.manifest_json, theirs)};
}

// Adds the pieces in their order.
void sum_on_gpu(const device::Stream& stream, std::span<const float* const> pieces, float* out,
                std::int64_t count) {
  std::vector<device::TensorView> views;
  for (const float* piece : pieces) views.push_back(device::tensor(piece, {count}));
  kernels::sum_pieces(stream, {.pieces = views, .out = device::tensor(out, {count})});
}

}  // namespace

Result<std::unique_ptr<collective::ShardExchange>> make_gang_shards(const GangShardsConfig& config,
                                                                    collective::Collective& gang,
                                                                    const NcclProcess& process) {
  const auto invitation = invite(config, gang, process);
  if (!invitation) return invitation.error();
  if (const auto same = check_layout(config, *invitation, gang); !same) return same.error();
  const NcclRendezvous offered{.epoch = config.epoch,
                               .unique_id = invitation->unique_id,
                               .size = gang.size(),
                               .layout_hash = invitation->layout_hash};
  // The same check as for broadcasts of weights (NV-1), with the epoch's size and this rank's
  // place.
  const auto fits = collective::check_rendezvous(offered, gang.rank(), config.layout.hash);
  if (!fits) return fits.error();
  if (const auto agreed = gang.barrier(config.timeout); !agreed) return agreed.error();
  auto communicator = NcclCommunicator::start(process,
                                              {.epoch = config.epoch,
                                               .unique_id = offered.unique_id,
                                               .rank = gang.rank(),
                                               .size = gang.size(),
                                               .name = config.name},
                                              config.timeout);
  if (!communicator) return communicator.error();
  if (const auto started = (*communicator)->wait_started(); !started) return started.error();
  const bool on_gpu = config.device == device::DeviceKind::kCuda;
  return collective::make_nccl_shards(
      {.communicator = *std::move(communicator),
       .rank = gang.rank(),
       .size = gang.size(),
       .bucket_floats_max = config.bucket_floats_max,
       .timeout = config.timeout,
       .device = config.device,
       .sum = on_gpu ? collective::SumPieces(sum_on_gpu)
                     : collective::SumPieces(collective::sum_on_host)});
}

}  // namespace tandem::app
