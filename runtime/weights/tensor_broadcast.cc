// One buffer is filled while NCCL sends the other. Memory of a GPU is taken with the first version
// and kept: two chunks, so that a version needs no second place on the GPU.
#include "runtime/weights/tensor_broadcast.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/guarded.h"
#include "runtime/device/memory.h"
#include "runtime/device/queue.h"

namespace tandem::weights {
namespace {

using collective::NcclCommunicator;
using collective::NcclKind;
using collective::NcclTicket;

std::size_t bytes_of(TensorBytes tensors) {
  std::size_t bytes = 0;
  for (const auto tensor : tensors) bytes += tensor.size();
  return bytes;
}

}  // namespace

std::vector<std::size_t> chunk_ends(TensorBytes tensors, std::size_t chunk_bytes) {
  std::vector<std::size_t> ends;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    bytes += tensors[i].size();
    if (bytes <= chunk_bytes && i + 1 < tensors.size()) continue;
    ends.push_back(i + 1);
    bytes = 0;
  }
  return ends;
}

struct TensorBroadcast::State {
  explicit State(TensorBroadcastConfig with)
      : config(std::move(with)), copies(config.device), sends(config.device) {}

  const TensorBroadcastConfig config;
  const device::Queue copies, sends;
  std::array<device::Buffer, 2> buffers;
  collective::NcclUniqueId id;
  std::uint64_t meetings = 0;
  Guarded<std::shared_ptr<NcclCommunicator>> communicator;

  Result<void> make_room(std::size_t bytes);
  Result<NcclTicket> submit(NcclCommunicator& with, NcclKind kind, std::size_t buffer,
                            std::size_t bytes, std::string label) const;
  Result<void> send(NcclCommunicator& to, TensorBytes tensors);
  Result<void> ended(Result<void> outcome);  // TX-2
};

Result<void> TensorBroadcast::State::make_room(std::size_t bytes) {
  for (device::Buffer& buffer : buffers) {
    if (buffer.size() >= bytes) continue;
    buffer = {};
    auto made = device::Buffer::allocate(bytes, "chunks of weights for an engine",
                                         device::operand_memory(config.device));
    if (!made) return made.error();
    buffer = *std::move(made);
  }
  return {};
}

// Without a GPU there is no stream; the fake library takes any address for one.
Result<NcclTicket> TensorBroadcast::State::submit(NcclCommunicator& with, NcclKind kind,
                                                  std::size_t buffer, std::size_t bytes,
                                                  std::string label) const {
  void* const stream = sends.stream().native;
  return with.submit({.label = std::move(label),
                      .transfers = {{kind, buffers[buffer].data(), bytes, 0}},
                      .stream = stream != nullptr ? stream : buffers[0].data(),
                      .timeout = config.timeout});
}

Result<void> TensorBroadcast::State::send(NcclCommunicator& to, TensorBytes tensors) {
  const auto ends = chunk_ends(tensors, config.packed ? config.chunk_bytes : 0);
  const auto chunk = [&](std::size_t i) {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    return tensors.subspan(begin, ends[i] - begin);
  };
  std::size_t largest = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) largest = std::max(largest, bytes_of(chunk(i)));
  if (const auto room = make_room(largest); !room) return room;
  std::array<std::optional<NcclTicket>, 2> sent;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (sent[i % 2])
      if (auto done = sent[i % 2]->wait(); !done) return done;
    std::size_t at = 0;
    for (const auto tensor : chunk(i)) {
      copy(copies.stream(), buffers[i % 2].data() + at, tensor.data(), tensor.size());
      at += tensor.size();
    }
    synchronize(copies.stream());
    auto ticket = submit(to, NcclKind::kBroadcast, i % 2, at,
                         "chunk " + std::to_string(i + 1) + " of " + std::to_string(ends.size()));
    if (!ticket) return ticket.error();
    sent[i % 2] = *std::move(ticket);
  }
  for (const auto& last : sent)
    if (last)
      if (auto done = last->wait(); !done) return done;
  return {};
}

Result<void> TensorBroadcast::State::ended(Result<void> outcome) {
  if (outcome) return outcome;
  auto last = communicator.with([](auto& one) { return std::exchange(one, nullptr); });
  if (last) last->abort(outcome.error().message);
  return outcome;
}

TensorBroadcast::TensorBroadcast(TensorBroadcastConfig config)
    : state_(std::make_unique<State>(std::move(config))) {
  CHECK(state_->config.nccl != nullptr);
}

TensorBroadcast::~TensorBroadcast() { cut("it is not needed any more"); }

Result<collective::NcclUniqueId> TensorBroadcast::meet() {
  auto id = collective::make_nccl_unique_id(*state_->config.nccl, state_->config.timeout);
  if (id) state_->id = *id;
  return id;
}

Result<void> TensorBroadcast::connect(int others, const std::function<bool()>& wanted) {
  cut("the peers meet anew");
  const TensorBroadcastConfig& config = state_->config;
  const collective::NcclEpoch epoch{.epoch = ++state_->meetings,
                                    .unique_id = state_->id,
                                    .rank = 0,
                                    .size = 1 + others,
                                    .name = config.name};
  auto started = NcclCommunicator::start(*config.nccl, epoch, config.timeout);
  if (!started) return started.error();
  const std::shared_ptr<NcclCommunicator> communicator = *std::move(started);
  state_->communicator.with([&](auto& one) { one = communicator; });
  if (wanted && !wanted()) cut("nobody waits for it any more");
  if (auto ready = communicator->wait_started(); !ready) return state_->ended(ready);
  if (!config.first_sum) return {};
  if (auto room = state_->make_room(sizeof(float)); !room) return state_->ended(room);
  zero(state_->copies.stream(), state_->buffers[0].data(), sizeof(float));
  synchronize(state_->copies.stream());
  auto ticket =
      state_->submit(*communicator, NcclKind::kAllReduce, 0, sizeof(float), "the first sum");
  return state_->ended(ticket ? ticket->wait() : Result<void>(ticket.error()));
}

Result<void> TensorBroadcast::send(TensorBytes tensors) {
  const auto communicator = state_->communicator.with([](const auto& one) { return one; });
  if (!communicator) return Error{ErrorCode::kFailed, "the engine's ranks are not connected"};
  return state_->ended(state_->send(*communicator, tensors));
}

void TensorBroadcast::cut(const std::string& why) {
  auto last = state_->communicator.with([](auto& one) { return std::exchange(one, nullptr); });
  if (last) last->abort(why);
}

bool TensorBroadcast::connected() const {
  return state_->communicator.with([](const auto& one) { return one != nullptr; });
}

}  // namespace tandem::weights
