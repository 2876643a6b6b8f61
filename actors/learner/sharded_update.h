// One rank's part of the update of a gang that shares the optimizer's work (ZeRO-1, Rajbhandari et
// al. 2020, stage 1): gradients are summed bucket by bucket while backward still computes the next
// ones, each rank runs AdamW on its own shard of every bucket and has moments for nothing else, and
// the updated shards go to all ranks while AdamW of the next bucket runs, and while the next
// forward already computes the layers whose weights have come.
//
// Weights and gradients are whole on every rank. A bucket is a range of their arena, in floats;
// buckets are in the order in which backward finishes them, from the arena's end to its beginning.
// Weights are sent in the opposite order, in which forward reads them. Commands, batches and the
// sums of a report are moved by the Gang instead.
//
// Invariants (tests/actors/learner/sharded_trainer_test.cc, sharded_overlap_test.cc)
//   SU-1  Buckets tile the arena without gap or overlap; which ranges they are depends on the
//         model and the limits alone, so all ranks have the same ones (as SH-2 needs).
//   SU-2  Once the weights of an apply() have been waited for, all ranks have the same ones, bit
//         for bit. Without clipping they are the weights of a gang in which every rank sums all
//         gradients and updates all weights.
//   SU-3  The norm has the same bits on all ranks, and in every run with as many ranks: each rank
//         sums over its own shards, and these sums are added in rank order. Another number of
//         ranks, or other buckets, round it differently.
//   SU-4  No rank waits for sums before every rank has asked for all of its own: a rank waits for
//         slower ones in the Gang, which hears of a death at once and sees that the waiting rank
//         lives (CO-3, CO-5). It waits for weights without the Gang: every rank asks for all of
//         them as soon as the Gang has added up the norm.
//   SU-5  gathered() waits for the weights before `end` alone: those behind may be under way, and
//         other ranks may not even have asked for them.
//
// Errors: each error ends the gang and is returned by every further call. The exchange may then
// still touch weights and gradients until this object ends, so this object must end before they do.
// A gradient that is not finite is no error: all ranks get the norm, and no weight and no moment
// has changed. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "actors/learner/gang.h"
#include "actors/learner/optimizer.h"
#include "actors/model/model_config.h"
#include "runtime/base/result.h"
#include "runtime/collective/shard_exchange.h"
#include "runtime/device/arena.h"
#include "runtime/device/stream.h"

namespace tandem::learner {

// Limits of a bucket's size. A bucket takes whole layers until it has floats_min, so that the fixed
// cost of a call is small beside the time of moving. A larger bucket than floats_max is cut into
// pieces, so that AdamW of one piece overlaps with the moving of another.
struct BucketLimits {
  std::int64_t floats_min = std::int64_t{4} << 20;   // 16 MiB
  std::int64_t floats_max = std::int64_t{32} << 20;  // >= kShardAlignFloats
};

// The buckets of a model's arena. The last one, which has the embedding, may be smaller than
// floats_min.
std::vector<collective::ShardRange> cut_buckets(const model::ModelConfig& model,
                                                const BucketLimits& limits);

// The shards of one rank, a range of the arena for each bucket.
std::vector<collective::ShardRange> shards_of_rank(
    const std::vector<collective::ShardRange>& buckets, int rank, int ranks);

class ShardedUpdate {
 public:
  ShardedUpdate(std::unique_ptr<collective::ShardExchange> exchange,
                std::vector<collective::ShardRange> buckets);

  // A step: begin(); finished() as backward of the last micro-batch says (GradientsFinished in
  // decoder.h), or once with 0 where the rank has no micro-batch; then apply().
  void begin();
  // Starts the sums of every bucket that lies behind `from`.
  void finished(const device::Stream& stream, const device::Arena& gradients, std::int64_t from);
  struct Step {
    const OptimizerConfig& config;
    double lr;
    // False, on all ranks alike: there is no gradient, and no weight and no moment changes. AdamW
    // would else follow old moments and decay weights.
    bool teaches = true;
  };
  // Returns the global norm before clipping. The weights are still on their way: until gathered()
  // or settle() has returned, nothing may read or change them. The optimizer's parts are this
  // rank's shards.
  Result<double> apply(const device::Stream& stream, Gang& gang, Optimizer& optimizer,
                       const Step& step, const device::Arena& weights,
                       const device::Arena& gradients);
  // Work that the stream is given after this call finds the new weights before float `end` of the
  // arena. The call may block until they have come, at most until the exchange's deadlines.
  Result<void> gathered(const device::Stream& stream, std::int64_t end);
  // Waits until all weights are there and nothing moves any more.
  Result<void> settle();

  // Gathers the moments of the whole arena for a checkpoint. Called between steps by all ranks at
  // once; `to` gets the moments and is null on ranks that do not need them. `gradients` serves as
  // workspace, so its content is lost. Waits as settle() does.
  Result<void> gather_moments(const device::Stream& stream, const Optimizer& optimizer,
                              const device::Arena& gradients, const Optimizer::HostMoments* to);

 private:
  device::TensorView bucket_of(const device::Arena& arena, std::size_t index) const;
  Result<void> wait();

  std::unique_ptr<collective::ShardExchange> exchange_;
  std::vector<collective::ShardRange> buckets_;
  std::size_t started_ = 0;    // buckets of this step whose sums have been asked for
  bool weights_move_ = false;  // all calls since the exchange's last wait() gather weights
  Result<void> queued_;        // the first error, of asking or of waiting
};

}  // namespace tandem::learner
