// A gang of threads. The ranks meet under one lock: each posts its call and waits, and the rank
// that comes last does the work for all of them, because their memory is all in this process.
//
// A meeting has a number. A waiting rank knows by a higher number that its call was carried out,
// even if others have begun the next one meanwhile. Easy to get wrong: after a failure no rank
// touches another's memory any more, since a rank whose call has returned may free its own.
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>

#include "runtime/collective/call.h"
#include "runtime/collective/collective.h"

namespace tandem::collective {
namespace {

class LocalGang {
 public:
  LocalGang(int size, AddFloats add) : add_(add), posts_(static_cast<std::size_t>(size)) {}

  struct Post {
    bool here = false;
    Call call;
    std::span<std::byte> bytes;  // in and out
    std::string_view blob;       // in, of an all_gather
  };

  // Returns once all ranks have met in this call; `gathered` may be null.
  Result<void> meet(int rank, const Post& post, Duration timeout,
                    std::vector<std::string>* gathered);
  void leave(int rank);

  int size() const { return static_cast<int>(posts_.size()); }

 private:
  void perform();
  void sum();
  std::optional<int> first_missing() const;
  void fail(Error error);

  const AddFloats add_;
  std::mutex mutex_;
  std::condition_variable met_;
  // Guarded by mutex_.
  std::vector<Post> posts_;
  std::vector<std::string> gathered_;
  std::vector<float> total_;
  std::uint64_t meetings_ = 0;
  std::optional<Error> failure_;
};

Result<void> LocalGang::meet(int rank, const Post& post, Duration timeout,
                             std::vector<std::string>* gathered) {
  std::unique_lock lock(mutex_);
  if (failure_) return *failure_;
  // The number is read before perform(), which raises it.
  const std::uint64_t meeting = meetings_;
  Post& ours = posts_[static_cast<std::size_t>(rank)];
  ours = post;
  ours.here = true;
  if (!first_missing()) {
    perform();
  } else {
    met_.wait_for(lock, timeout, [&] { return meetings_ != meeting || failure_; });
    // CO-2: the rank whose time runs out breaks the gang for all (CO-4), and names one that did not
    // come.
    if (meetings_ == meeting && !failure_) fail(timed_out(post.call, *first_missing()));
  }
  if (meetings_ == meeting) return *failure_;
  // gathered_ is still that of this meeting: the next one needs this rank as well.
  if (gathered != nullptr) *gathered = gathered_;
  return {};
}

std::optional<int> LocalGang::first_missing() const {
  for (std::size_t rank = 0; rank < posts_.size(); ++rank) {
    if (!posts_[rank].here) return static_cast<int>(rank);
  }
  return std::nullopt;
}

void LocalGang::perform() {
  const Call& call = posts_[0].call;
  // CO-3: the calls are compared before any memory is touched.
  for (std::size_t rank = 1; rank < posts_.size(); ++rank) {
    if (posts_[rank].call == call) continue;
    return fail(ranks_disagree(static_cast<int>(rank), posts_[rank].call, 0, call));
  }
  gathered_.clear();
  if (call.operation == Operation::kAllReduceSum) sum();
  for (Post& post : posts_) {
    const std::span<std::byte> source = posts_[call.root].bytes;
    if (call.operation == Operation::kBroadcast && post.bytes.data() != source.data()) {
      std::memcpy(post.bytes.data(), source.data(), source.size());
    }
    if (call.operation == Operation::kAllGather) gathered_.emplace_back(post.blob);
    post.here = false;
  }
  ++meetings_;
  met_.notify_all();
}

void LocalGang::sum() {
  const std::size_t bytes = posts_[0].bytes.size();
  if (bytes == 0 || posts_.size() == 1) return;
  total_.resize(bytes / sizeof(float));
  // CO-1: rank 0's values first, then the others in rank order, in memory of its own, because ranks
  // may not be overwritten before they are read.
  std::memcpy(total_.data(), posts_[0].bytes.data(), bytes);
  for (std::size_t rank = 1; rank < posts_.size(); ++rank) {
    add_(total_.data(), reinterpret_cast<const float*>(posts_[rank].bytes.data()), total_.size());
  }
  for (Post& post : posts_) std::memcpy(post.bytes.data(), total_.data(), bytes);
}

void LocalGang::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
  met_.notify_all();
}

void LocalGang::leave(int rank) {
  const std::lock_guard lock(mutex_);
  // The error names the call that a waiting rank has posted.
  Call call;
  for (const Post& post : posts_) {
    if (post.here) call = post.call;
  }
  fail(rank_gone(call, rank));
}

class LocalCollective : public Collective {
 public:
  LocalCollective(std::shared_ptr<LocalGang> gang, int rank, Duration await_max)
      : gang_(std::move(gang)), rank_(rank), await_max_(await_max) {}
  ~LocalCollective() override { gang_->leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return gang_->size(); }

  Result<void> all_reduce_sum(std::span<float> values, Duration timeout) override {
    const auto bytes = std::as_writable_bytes(values);
    return meet({.operation = Operation::kAllReduceSum, .bytes = bytes.size()}, bytes, timeout);
  }

  Result<void> broadcast(std::span<std::byte> bytes, int root, Duration timeout) override {
    CHECK(root >= 0 && root < size());
    return meet({.operation = Operation::kBroadcast,
                 .root = static_cast<std::uint32_t>(root),
                 .bytes = bytes.size()},
                bytes, timeout);
  }

  Result<void> await_broadcast(std::span<std::byte> bytes, std::string_view) override {
    CHECK(rank_ > 0);
    return broadcast(bytes, 0, await_max_);
  }

  Result<std::vector<std::string>> all_gather(std::string_view blob, Duration timeout) override {
    CHECK(blob.size() <= kBlobBytesMax);
    LocalGang::Post post;
    post.call.operation = Operation::kAllGather;
    post.blob = blob;
    std::vector<std::string> blobs;
    if (auto met = gang_->meet(rank_, post, timeout, &blobs); !met) return met.error();
    return blobs;
  }

  Result<void> barrier(Duration timeout) override {
    return meet({.operation = Operation::kBarrier}, {}, timeout);
  }

 private:
  Result<void> meet(const Call& call, std::span<std::byte> bytes, Duration timeout) {
    LocalGang::Post post;
    post.call = call;
    post.bytes = bytes;
    return gang_->meet(rank_, post, timeout, nullptr);
  }

  std::shared_ptr<LocalGang> gang_;
  int rank_;
  Duration await_max_;
};

}  // namespace

void add_floats(float* accumulator, const float* addend, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) accumulator[i] += addend[i];
}

std::vector<std::unique_ptr<Collective>> make_local_collectives(int size, AddFloats add,
                                                                Duration await_max) {
  CHECK(size >= 1 && size <= kRanksMax);
  auto gang = std::make_shared<LocalGang>(size, add);
  std::vector<std::unique_ptr<Collective>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<LocalCollective>(gang, rank, await_max));
  }
  return ranks;
}

}  // namespace tandem::collective
