// Each call of a rank is a post, in that rank's queue. Ranks post in the same order (SH-2), so
// calls become complete in order: the rank whose post completes one carries it out under the lock.
// The lock also keeps SH-3: once the exchange is broken no rank touches another's memory.
#include "tests/runtime/collective/local_shards.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/collective/call.h"
#include "runtime/collective/collective.h"
#include "runtime/device/queue.h"

namespace tandem::collective {
namespace {

class LocalShardGang {
 public:
  LocalShardGang(int size, Duration timeout)
      : timeout_(timeout), ranks_(static_cast<std::size_t>(size)) {}

  int size() const { return static_cast<int>(ranks_.size()); }
  Result<void> post(int rank, Operation operation, const device::TensorView& bucket,
                    const device::Stream& stream);
  Result<void> wait(int rank);
  Result<void> hold_back(int rank, std::uint64_t calls);
  void leave(int rank);

 private:
  struct Post {
    Call call;
    device::TensorView bucket;
    Time deadline;
  };
  struct Rank {
    std::deque<Post> posts;  // not carried out yet; a rank may be ahead of others by several
    std::uint64_t made = 0;  // posts, since the last wait()
    bool gone = false;
  };

  std::optional<int> missing() const;  // the first rank that the oldest call waits for
  void fail(Error error);
  Result<void> await(std::unique_lock<std::mutex>& lock, int rank, std::size_t left);
  void carry_out(const device::Stream& stream);
  void reduce_scatter(const device::Stream& stream, std::int64_t floats);
  void all_gather(const device::Stream& stream, std::int64_t floats);
  float* memory(std::size_t rank) const { return ranks_[rank].posts.front().bucket.f32(); }

  const Duration timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::vector<Rank> ranks_;
  std::optional<Error> failure_;
};

std::optional<int> LocalShardGang::missing() const {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_[rank].posts.empty()) return static_cast<int>(rank);
  return std::nullopt;
}

void LocalShardGang::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
  changed_.notify_all();
}

Result<void> LocalShardGang::post(int rank, Operation operation, const device::TensorView& bucket,
                                  const device::Stream& stream) {
  CHECK(bucket.rank == 1 && bucket.dense());
  synchronize(stream);  // until the bucket is complete; without the lock, as it may take a while
  const std::lock_guard lock(mutex_);
  if (failure_) return *failure_;
  const Call call{.operation = operation,
                  .bytes = static_cast<std::uint64_t>(bucket.elements()) * sizeof(float)};
  Rank& own = ranks_[static_cast<std::size_t>(rank)];
  own.posts.push_back({.call = call, .bucket = bucket, .deadline = steady_now() + timeout_});
  ++own.made;
  for (std::size_t other = 0; other < ranks_.size() && !failure_; ++other)
    // A rank that has left can still be part of calls that it had posted, but of no new one.
    if (ranks_[other].gone && ranks_[other].posts.empty())
      fail(rank_gone(call, static_cast<int>(other)));
  if (!failure_ && !missing()) carry_out(stream);
  if (failure_) return *failure_;
  return {};
}

void LocalShardGang::carry_out(const device::Stream& stream) {
  const Call call = ranks_[0].posts.front().call;
  for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
    const Call& other = ranks_[rank].posts.front().call;
    if (other != call) return fail(ranks_disagree(static_cast<int>(rank), other, 0, call));
  }
  const auto floats = static_cast<std::int64_t>(call.bytes / sizeof(float));
  if (call.operation == Operation::kReduceScatter) reduce_scatter(stream, floats);
  if (call.operation == Operation::kGatherShards) all_gather(stream, floats);
  for (Rank& rank : ranks_) rank.posts.pop_front();
  changed_.notify_all();
}

void LocalShardGang::reduce_scatter(const device::Stream& stream, std::int64_t floats) {
  const auto bytes = static_cast<std::size_t>(floats) * sizeof(float);
  // The buckets are copied to the host first, because the sums replace parts of the same buckets.
  std::vector<std::vector<float>> copies;
  std::vector<const float*> pieces;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    copies.emplace_back(static_cast<std::size_t>(floats));
    copy(stream, copies.back().data(), memory(rank), bytes);
    pieces.push_back(copies.back().data());
  }
  synchronize(stream);
  std::vector<float> sums(static_cast<std::size_t>(floats));
  sum_on_host(device::Stream{}, pieces, sums.data(), floats);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const ShardRange shard = shard_of(floats, static_cast<int>(rank), size());
    // Each rank gets its own shard alone; the contract leaves the rest unspecified.
    copy(stream, memory(rank) + shard.begin, sums.data() + shard.begin,
         static_cast<std::size_t>(shard.size()) * sizeof(float));
  }
  synchronize(stream);
}

void LocalShardGang::all_gather(const device::Stream& stream, std::int64_t floats) {
  for (std::size_t owner = 0; owner < ranks_.size(); ++owner) {
    const ShardRange shard = shard_of(floats, static_cast<int>(owner), size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      if (rank != owner)
        copy(stream, memory(rank) + shard.begin, memory(owner) + shard.begin,
             static_cast<std::size_t>(shard.size()) * sizeof(float));
  }
  synchronize(stream);
}

// Waits until at most `left` posts of the rank are not carried out.
Result<void> LocalShardGang::await(std::unique_lock<std::mutex>& lock, int rank, std::size_t left) {
  const std::deque<Post>& posts = ranks_[static_cast<std::size_t>(rank)].posts;
  // The oldest call's deadline is the first; it moves on as calls are carried out.
  while (!failure_ && posts.size() > left) {
    const Time deadline = posts.front().deadline;
    const std::chrono::steady_clock::time_point until{Duration(deadline.ns)};
    if (changed_.wait_until(lock, until) == std::cv_status::timeout && !failure_ &&
        posts.size() > left && steady_now() >= posts.front().deadline)
      fail(timed_out(posts.front().call, *missing()));
  }
  if (failure_) return *failure_;
  return {};
}

Result<void> LocalShardGang::wait(int rank) {
  std::unique_lock lock(mutex_);
  ranks_[static_cast<std::size_t>(rank)].made = 0;
  return await(lock, rank, 0);
}

Result<void> LocalShardGang::hold_back(int rank, std::uint64_t calls) {
  std::unique_lock lock(mutex_);
  const std::uint64_t made = ranks_[static_cast<std::size_t>(rank)].made;
  CHECK(failure_ || calls <= made);
  return await(lock, rank, failure_ ? 0 : static_cast<std::size_t>(made - calls));
}

void LocalShardGang::leave(int rank) {
  const std::lock_guard lock(mutex_);
  Rank& own = ranks_[static_cast<std::size_t>(rank)];
  own.gone = true;
  // Buckets may be freed once their rank has left, and calls that it has not made never complete.
  // Without any post nothing is lost: ranks leave one after the other at the end.
  for (const Rank& other : ranks_)
    if (!own.posts.empty() || !other.posts.empty())
      return fail(rank_gone((own.posts.empty() ? other : own).posts.front().call, rank));
}

class LocalShards : public ShardExchange {
 public:
  LocalShards(std::shared_ptr<LocalShardGang> gang, int rank)
      : gang_(std::move(gang)), rank_(rank) {}
  ~LocalShards() override { gang_->leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return gang_->size(); }

  Result<void> reduce_scatter(const device::TensorView& bucket,
                              const device::Stream& producer) override {
    return gang_->post(rank_, Operation::kReduceScatter, bucket, producer);
  }
  Result<void> all_gather(const device::TensorView& bucket,
                          const device::Stream& producer) override {
    return gang_->post(rank_, Operation::kGatherShards, bucket, producer);
  }
  Result<void> hold_back(const device::Stream&, std::uint64_t calls) override {
    return gang_->hold_back(rank_, calls);
  }
  Result<void> wait() override { return gang_->wait(rank_); }

 private:
  const std::shared_ptr<LocalShardGang> gang_;
  const int rank_;
};

}  // namespace

std::vector<std::unique_ptr<ShardExchange>> make_local_shards(int size, Duration timeout) {
  CHECK(size >= 1 && size <= kRanksMax);
  const auto gang = std::make_shared<LocalShardGang>(size, timeout);
  std::vector<std::unique_ptr<ShardExchange>> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(std::make_unique<LocalShards>(gang, rank));
  return ranks;
}

}  // namespace tandem::collective
