#include "tests/actors/rollout/external/fake_nccl_worker.h"

#include "runtime/base/base64.h"

namespace tandem::rollout {
namespace {

constexpr Duration kWorkerPatience = std::chrono::seconds(30);

}  // namespace

FakeNcclWorker::FakeNcclWorker()
    : fake_(collective::open_fake_nccl()),
      process_{.api = fake_.api, .streams = fake_.streams, .thread = &thread_} {}

std::optional<std::string> FakeNcclWorker::join(const nlohmann::json& init_info) {
  const auto bytes = decode_base64(init_info.value("nccl_unique_id_b64", ""));
  if (!bytes || bytes->size() != collective::kNcclUniqueIdBytes)
    return "nccl_unique_id_b64 must decode to 128 bytes";
  packed_ = init_info.value("packed", false);
  chunk_bytes_ = init_info.value("packed_buffer_size_bytes", std::size_t{1} << 30);
  if (const auto why =
          start(*bytes, init_info.value("rank_offset", 0), init_info.value("world_size", 0)))
    return why;
  float first = 0;
  return perform(collective::NcclKind::kAllReduce, std::as_writable_bytes(std::span(&first, 1)));
}

std::optional<std::string> FakeNcclWorker::join_late(std::string_view unique_id) {
  if (unique_id.size() != collective::kNcclUniqueIdBytes) return "no unique id of NCCL";
  packed_ = false;
  return start(unique_id, 1, 2);
}

std::optional<std::string> FakeNcclWorker::start(std::string_view unique_id, int rank, int size) {
  collective::NcclEpoch epoch{.epoch = ++joins_, .rank = rank, .size = size, .name = "worker"};
  unique_id.copy(epoch.unique_id.internal, unique_id.size());
  communicator_.reset();
  auto started = collective::NcclCommunicator::start(process_, epoch, kWorkerPatience);
  if (!started) return started.error().message;
  communicator_ = *std::move(started);
  const auto ready = communicator_->wait_started();
  return ready ? std::nullopt : std::optional(ready.error().message);
}

std::optional<std::string> FakeNcclWorker::perform(collective::NcclKind kind,
                                                   std::span<std::byte> bytes) {
  auto ticket = communicator_->submit({.label = "worker",
                                       .transfers = {{kind, bytes.data(), bytes.size(), 0}},
                                       .stream = this,
                                       .timeout = kWorkerPatience});
  if (!ticket) return ticket.error().message;
  const auto done = ticket->wait();
  return done ? std::nullopt : std::optional(done.error().message);
}

// Chunks end as vLLM's packed_tensor.py has it, written anew: a tensor is added, and the chunk ends
// where it has become larger than the buffer.
std::optional<std::string> FakeNcclWorker::receive(const std::vector<std::span<std::byte>>& tensors,
                                                   bool breaks) {
  if (!communicator_) return "update_weights before init_weight_transfer_engine";
  std::size_t first = 0, bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    bytes += tensors[i].size();
    if (packed_ && bytes <= chunk_bytes_ && i + 1 < tensors.size()) continue;
    std::vector<std::byte> chunk(bytes);
    if (const auto why = perform(collective::NcclKind::kBroadcast, chunk)) return why;
    if (breaks) {
      communicator_.reset();
      return "a worker has failed";
    }
    std::size_t at = 0;
    for (; first <= i; ++first) {
      std::copy_n(chunk.begin() + static_cast<std::ptrdiff_t>(at), tensors[first].size(),
                  tensors[first].begin());
      at += tensors[first].size();
    }
    bytes = 0;
  }
  return std::nullopt;
}

}  // namespace tandem::rollout
