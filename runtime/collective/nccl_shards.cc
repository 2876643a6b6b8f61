// Two lanes take the calls in turn. A lane is a stream, room for received pieces and a thread. The
// thread gives its call to NCCL as soon as the call before it was given, waits for the ticket,
// queues the sum on the stream, and takes its next call. It must wait for the ticket because NCCL's
// own thread puts the transfers on the stream later, and a sum that is queued before them would run
// too early.
//
// Each lane's stream waits for one producer at a time, so a bucket that is ready never waits for
// the producer of a later one. Only a call of the other kind than the call before it waits for that
// one's end, because both may be of the same bucket.
#include "runtime/collective/nccl_shards.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/collective/call.h"
#include "runtime/collective/nccl_operation.h"
#include "runtime/device/memory.h"
#include "runtime/device/queue.h"

namespace tandem::collective {
namespace {

struct ShardCall {
  std::uint64_t number = 0;  // from 1
  Operation operation = Operation::kReduceScatter;
  bool turns = false;  // the call before it is of the other kind
  float* bucket = nullptr;
  std::int64_t floats = 0;
  device::Event ready;  // the producer's work at the time of the call
  Time deadline;
};

struct ShardLane {
  ShardLane(device::Buffer room, device::DeviceKind device)
      : staging(std::move(room)), queue(device) {}

  // A CPU has no streams. The NCCL of the tests takes a lane's address for one.
  void* native() { return queue.stream().native == nullptr ? this : queue.stream().native; }

  device::Buffer staging;
  device::Queue queue;
  device::Event done;           // behind the last call that succeeded; guarded as `calls` is
  std::deque<ShardCall> calls;  // the first one is under way; guarded by the exchange's mutex
  std::thread thread;
};

class NcclShards : public ShardExchange {
 public:
  NcclShards(NcclShardsConfig config, std::array<device::Buffer, 2> staging);
  ~NcclShards() override;

  int rank() const override { return config_.rank; }
  int size() const override { return config_.size; }
  Result<void> reduce_scatter(const device::TensorView& bucket,
                              const device::Stream& producer) override {
    return queue(Operation::kReduceScatter, bucket, producer);
  }
  Result<void> all_gather(const device::TensorView& bucket,
                          const device::Stream& producer) override {
    return queue(Operation::kGatherShards, bucket, producer);
  }
  Result<void> hold_back(const device::Stream& consumer, std::uint64_t calls) override;
  Result<void> wait() override;

  static std::int64_t piece_floats_max(const NcclShardsConfig& config) {
    return (config.bucket_floats_max / config.size / kShardAlignFloats + 2) * kShardAlignFloats;
  }

 private:
  Result<void> queue(Operation operation, const device::TensorView& bucket,
                     const device::Stream& producer);
  void run(ShardLane& lane);
  bool may_begin(const ShardLane& lane) const;
  bool await_turn(std::unique_lock<std::mutex>& lock, const ShardLane& lane);
  Result<void> carry_out(ShardLane& lane, ShardCall& call);
  Result<std::optional<NcclTicket>> submit(ShardLane& lane, ShardCall& call);
  std::vector<NcclTransfer> transfers(ShardLane& lane, const ShardCall& call) const;
  void sum(ShardLane& lane, const ShardCall& call) const;
  Result<void> await_calls(std::unique_lock<std::mutex>& lock, std::uint64_t last);
  ShardLane& lane_of(std::uint64_t number) const { return *lanes_[number % lanes_.size()]; }
  ShardRange shard(const ShardCall& call, int rank) const {
    return shard_of(call.floats, rank, config_.size);
  }
  float* piece_of(ShardLane& lane, int rank) const {
    const int place = rank < config_.rank ? rank : rank - 1;
    return reinterpret_cast<float*>(lane.staging.data()) + place * piece_floats_max(config_);
  }

  std::array<std::unique_ptr<ShardLane>, 2> lanes_;
  const NcclShardsConfig config_;  // after lanes_: its communicator ends before their memory does

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::uint64_t made_ = 0;    // calls
  std::uint64_t waited_ = 0;  // calls made before the last wait(); hold_back() counts from here
  Operation last_made_ = Operation::kReduceScatter;
  std::uint64_t submitted_ = 0;  // calls that NCCL was given; the same order on all ranks
  bool closing_ = false;
  std::optional<Error> error_;
};

NcclShards::NcclShards(NcclShardsConfig config, std::array<device::Buffer, 2> staging)
    : config_(std::move(config)) {
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    lanes_[i] = std::make_unique<ShardLane>(std::move(staging[i]), config_.device);
  for (const auto& lane : lanes_) lane->thread = std::thread([this, &lane] { run(*lane); });
}

NcclShards::~NcclShards() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  config_.communicator->abort("its owner left it");  // ends every wait for a ticket
  for (const auto& lane : lanes_) lane->thread.join();
}

Result<void> NcclShards::queue(Operation operation, const device::TensorView& bucket,
                               const device::Stream& producer) {
  CHECK(bucket.rank == 1 && bucket.dense() && bucket.elements() <= config_.bucket_floats_max);
  ShardCall call{.operation = operation,
                 .bucket = bucket.f32(),
                 .floats = bucket.elements(),
                 .ready = {},
                 .deadline = steady_now() + config_.timeout};
  // The event is recorded on the caller's thread: work that is queued on the producer later does
  // not belong to the bucket.
  call.ready.record(producer);
  const std::lock_guard lock(mutex_);
  if (error_) return *error_;
  call.number = ++made_;
  call.turns = std::exchange(last_made_, operation) != operation;
  lane_of(call.number).calls.push_back(std::move(call));
  changed_.notify_all();
  return {};
}

bool NcclShards::may_begin(const ShardLane& lane) const {
  if (lane.calls.empty()) return false;
  const ShardCall& call = lane.calls.front();
  const auto& before = lane_of(call.number - 1).calls;
  // The lane of the call before may have begun a later call, or still have that call at its front.
  const bool before_ended = before.empty() || before.front().number > call.number;
  return call.number == submitted_ + 1 && (!call.turns || before_ended);
}

// Waits until the lane's first call may be given to NCCL. False: there is an error, or the end.
bool NcclShards::await_turn(std::unique_lock<std::mutex>& lock, const ShardLane& lane) {
  changed_.wait(lock, [&] {
    return closing_ || (error_ && !lane.calls.empty()) || (!error_ && may_begin(lane));
  });
  return !closing_ && !error_;
}

void NcclShards::run(ShardLane& lane) {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    if (await_turn(lock, lane)) {
      ShardCall& call = lane.calls.front();
      lock.unlock();
      // The call is carried out without the mutex; it stays at the front, by which wait() sees that
      // it is under way.
      const Result<void> done = carry_out(lane, call);
      lock.lock();
      if (!done && !error_) {
        error_ = done.error();
        config_.communicator->abort(error_->message);
      }
    }
    if (error_) {
      lane.calls.clear();
    } else if (!lane.calls.empty()) {
      lane.calls.pop_front();
    }
    changed_.notify_all();
  }
}

Result<void> NcclShards::carry_out(ShardLane& lane, ShardCall& call) {
  const Result<std::optional<NcclTicket>> ticket = submit(lane, call);
  if (!ticket) return ticket.error();
  {
    const std::lock_guard lock(mutex_);
    submitted_ = call.number;
    changed_.notify_all();
  }
  if (*ticket) {
    if (auto done = (*ticket)->wait(); !done) return done.error();
  }
  if (call.operation == Operation::kReduceScatter) sum(lane, call);
  const std::lock_guard lock(mutex_);
  lane.done.record(lane.queue.stream());
  return {};
}

// Gives the call to NCCL. No ticket: this rank has nothing to send or receive in it.
Result<std::optional<NcclTicket>> NcclShards::submit(ShardLane& lane, ShardCall& call) {
  call.ready.hold_back(lane.queue.stream());
  if (call.turns) {
    const std::lock_guard lock(mutex_);
    lane_of(call.number - 1).done.hold_back(lane.queue.stream());
  }
  NcclOperation operation{
      .label = (call.operation == Operation::kReduceScatter ? "reduce_scatter " : "all_gather ") +
               std::to_string(call.number) + " of " + std::to_string(call.floats) + " floats",
      .transfers = transfers(lane, call),
      .stream = lane.native(),
      .timeout = std::max<Duration>(call.deadline - steady_now(), std::chrono::milliseconds(1))};
  if (operation.transfers.empty()) return std::optional<NcclTicket>();
  // If the start failed, its own error says more than that of a submit.
  if (auto started = config_.communicator->wait_started(); !started) return started.error();
  auto ticket = config_.communicator->submit(std::move(operation));
  if (!ticket) return ticket.error();
  return std::optional(std::move(*ticket));
}

std::vector<NcclTransfer> NcclShards::transfers(ShardLane& lane, const ShardCall& call) const {
  std::vector<NcclTransfer> all;
  const auto add = [&](NcclKind kind, float* memory, std::int64_t floats, int peer) {
    if (floats > 0)
      all.push_back({.kind = kind,
                     .memory = reinterpret_cast<std::byte*>(memory),
                     .bytes = static_cast<std::size_t>(floats) * sizeof(float),
                     .peer = peer});
  };
  const bool gather = call.operation == Operation::kGatherShards;
  const ShardRange own = shard(call, config_.rank);
  for (int peer = 0; peer < config_.size; ++peer) {
    if (peer == config_.rank) continue;
    const ShardRange theirs = shard(call, peer), sent = gather ? own : theirs;
    float* const to = gather ? call.bucket + theirs.begin : piece_of(lane, peer);
    add(NcclKind::kSend, call.bucket + sent.begin, sent.size(), peer);
    add(NcclKind::kReceive, to, gather ? theirs.size() : own.size(), peer);
  }
  return all;
}

void NcclShards::sum(ShardLane& lane, const ShardCall& call) const {
  const ShardRange own = shard(call, config_.rank);
  if (config_.size == 1 || own.size() == 0) return;
  float* const ours = call.bucket + own.begin;
  std::vector<const float*> pieces;
  for (int rank = 0; rank < config_.size; ++rank)
    pieces.push_back(rank == config_.rank ? ours : piece_of(lane, rank));
  config_.sum(lane.queue.stream(), pieces, ours, own.size());
}

// Waits until no call up to `last` is under way; each ends by its deadline. Sums of these calls may
// still be queued on the lanes' streams.
Result<void> NcclShards::await_calls(std::unique_lock<std::mutex>& lock, std::uint64_t last) {
  changed_.wait(lock, [&] {
    return std::ranges::all_of(lanes_, [&](const auto& lane) {
      return lane->calls.empty() || lane->calls.front().number > last;
    });
  });
  if (error_) return *error_;
  return {};
}

// `done` of a lane may stand behind later calls as well. Their transfers are over, so waiting for
// them costs nothing.
Result<void> NcclShards::hold_back(const device::Stream& consumer, std::uint64_t calls) {
  std::unique_lock lock(mutex_);
  CHECK(error_ || waited_ + calls <= made_);
  if (!await_calls(lock, waited_ + calls)) {
    lock.unlock();
    return wait();
  }
  for (const auto& lane : lanes_) lane->done.hold_back(consumer);
  return {};
}

Result<void> NcclShards::wait() {
  std::unique_lock lock(mutex_);
  auto ended = await_calls(lock, made_);
  waited_ = made_;
  for (const auto& lane : lanes_) lane->done.wait();
  return ended;
}

}  // namespace

Result<std::unique_ptr<ShardExchange>> make_nccl_shards(NcclShardsConfig config) {
  if (config.size < 1 || config.size > kShardRanksMax)
    return refusal("cannot share shards between " + std::to_string(config.size) + " ranks",
                   "not 1 to " + std::to_string(kShardRanksMax));
  CHECK(config.communicator && config.rank >= 0 && config.rank < config.size);
  const auto floats = NcclShards::piece_floats_max(config) * (config.size - 1);
  std::array<device::Buffer, 2> staging;
  for (device::Buffer& room : staging) {
    auto made =
        device::Buffer::allocate(static_cast<std::size_t>(floats) * sizeof(float),
                                 "received pieces of gradients", operand_memory(config.device));
    if (!made) return made.error();
    room = std::move(*made);
  }
  return std::unique_ptr<ShardExchange>(
      std::make_unique<NcclShards>(std::move(config), std::move(staging)));
}

}  // namespace tandem::collective
