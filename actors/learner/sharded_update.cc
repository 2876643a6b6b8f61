// The stream computes and the exchange moves data. Each call of the exchange waits for the work
// that the stream holds at that moment, so the sum of a bucket runs beside the backward of the
// layers before it, and the weights of a bucket are on their way while AdamW works on the next one.
// The host waits for all sums, because the norm comes before AdamW, and for weights when they are
// needed: a forward needs them layer by layer, a publication or a checkpoint needs all. Each wait
// has the exchange's deadlines.
//
// Rejected: adding up the norm while later buckets are still being summed. Its kernels would have
// to run between the matrix products of backward, and reading the shards once takes little time.
//
// queued_ is the first error, or none. After an error no further call is queued, but wait() is
// still made: the exchange may be using the arenas.
#include "actors/learner/sharded_update.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "actors/model/parameters.h"
#include "runtime/base/check.h"
#include "runtime/device/queue.h"

namespace tandem::learner {
namespace {

using collective::ShardRange;

// The beginnings of the ranges of gradients that backward finishes together, in backward's order.
std::vector<std::int64_t> finishing_order(const model::ModelConfig& model) {
  std::vector<std::int64_t> begins = layer_begins(model);
  std::ranges::reverse(begins);
  begins.push_back(0);
  return begins;
}

// Appends [begin, end) in about equal pieces of at most floats_max, from the end on. Cuts keep the
// alignment, so pieces are rounded up and the one at the end of the range may be smaller.
void append_pieces(std::int64_t begin, std::int64_t end, std::int64_t floats_max,
                   std::vector<ShardRange>& buckets) {
  const std::int64_t pieces = (end - begin + floats_max - 1) / floats_max;
  const std::int64_t even = (end - begin + pieces - 1) / pieces;
  const std::int64_t size = (even + collective::kShardAlignFloats - 1) /
                            collective::kShardAlignFloats * collective::kShardAlignFloats;
  for (std::int64_t last = begin + (end - begin - 1) / size * size; last >= begin; last -= size)
    buckets.push_back({.begin = last, .end = std::min(last + size, end)});
}

}  // namespace

std::vector<ShardRange> cut_buckets(const model::ModelConfig& model, const BucketLimits& limits) {
  CHECK(limits.floats_max >= collective::kShardAlignFloats);
  const std::int64_t floats_max =
      limits.floats_max / collective::kShardAlignFloats * collective::kShardAlignFloats;
  std::vector<ShardRange> buckets;
  auto end = static_cast<std::int64_t>(make_manifest(model).bytes_total / sizeof(float));
  for (const std::int64_t begin : finishing_order(model)) {
    // Too small: the range joins the next one.
    if (end - begin < limits.floats_min && begin > 0) continue;
    append_pieces(begin, end, floats_max, buckets);
    end = begin;
  }
  return buckets;
}

std::vector<ShardRange> shards_of_rank(const std::vector<ShardRange>& buckets, int rank,
                                       int ranks) {
  std::vector<ShardRange> shards;
  for (const ShardRange& bucket : buckets) {
    const ShardRange shard = collective::shard_of(bucket.size(), rank, ranks);
    shards.push_back({.begin = bucket.begin + shard.begin, .end = bucket.begin + shard.end});
  }
  return shards;
}

ShardedUpdate::ShardedUpdate(std::unique_ptr<collective::ShardExchange> exchange,
                             std::vector<ShardRange> buckets)
    : exchange_(std::move(exchange)), buckets_(std::move(buckets)) {}

device::TensorView ShardedUpdate::bucket_of(const device::Arena& arena, std::size_t index) const {
  return device::rows(arena.flat(), buckets_[index].begin, buckets_[index].size());
}

void ShardedUpdate::begin() { started_ = 0; }

void ShardedUpdate::finished(const device::Stream& stream, const device::Arena& gradients,
                             std::int64_t from) {
  for (; started_ < buckets_.size() && buckets_[started_].begin >= from; ++started_)
    if (queued_) queued_ = exchange_->reduce_scatter(bucket_of(gradients, started_), stream);
}

Result<double> ShardedUpdate::apply(const device::Stream& stream, Gang& gang, Optimizer& optimizer,
                                    const Step& step, const device::Arena& weights,
                                    const device::Arena& gradients) {
  CHECK(started_ == buckets_.size() && optimizer.parts() == buckets_.size());
  // SU-4: a rank waits for slower ones in the Gang, which hears of deaths at once, and only then
  // for the exchange.
  if (queued_)
    if (auto met = gang.barrier(); !met) return met.error();
  if (auto summed = wait(); !summed) return summed.error();
  if (!step.teaches) return 0.0;
  double squares = optimizer.squares(stream, gradients), unused = 0;
  if (auto added = gang.reduce(std::span(&squares, 1), unused); !added) return added.error();
  const double norm = optimizer.begin_step(step.config, step.lr, squares);
  if (!std::isfinite(norm)) return norm;
  // Goes from the arena's beginning on, which the next forward reads first (SU-5).
  for (std::size_t i = buckets_.size(); i-- > 0;) {
    optimizer.update(stream, i, weights, gradients);
    if (queued_) queued_ = exchange_->all_gather(bucket_of(weights, i), stream);
  }
  weights_move_ = true;
  if (!queued_) return broken_gang(queued_.error());
  return norm;
}

// Gathers complete in the order of the calls of apply(), so the weights before `end` have come when
// as many gathers have completed as buckets begin before `end`.
Result<void> ShardedUpdate::gathered(const device::Stream& stream, std::int64_t end) {
  const auto needed =
      std::ranges::count_if(buckets_, [&](const ShardRange& bucket) { return bucket.begin < end; });
  if (queued_ && weights_move_)
    queued_ = exchange_->hold_back(stream, static_cast<std::uint64_t>(needed));
  if (!queued_) return broken_gang(queued_.error());
  return {};
}

Result<void> ShardedUpdate::gather_moments(const device::Stream& stream, const Optimizer& optimizer,
                                           const device::Arena& gradients,
                                           const Optimizer::HostMoments* to) {
  using Moment = Optimizer::Moment;
  for (const Moment moment : {Moment::kFirst, Moment::kSecond}) {
    optimizer.lay_out(stream, moment, gradients);
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      if (queued_) queued_ = exchange_->all_gather(bucket_of(gradients, i), stream);
    if (auto there = wait(); !there) return there;
    if (to == nullptr) continue;
    const std::span<std::byte> there = moment == Moment::kFirst ? to->m : to->v;
    CHECK(there.size() == gradients.manifest().bytes_total);
    device::copy(stream, there.data(), gradients.flat().data, there.size());
  }
  device::synchronize(stream);
  return {};
}

Result<void> ShardedUpdate::settle() { return weights_move_ || !queued_ ? wait() : Result<void>{}; }

// Waits until nothing moves any more.
Result<void> ShardedUpdate::wait() {
  const Result<void> settled = exchange_->wait();
  weights_move_ = false;
  if (queued_) queued_ = settled;
  if (!queued_) return broken_gang(queued_.error());
  return {};
}

}  // namespace tandem::learner
