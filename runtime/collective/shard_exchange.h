// How the ranks of a gang on GPUs share gradients and weights (ZeRO-1, Rajbhandari et al. 2020,
// stage 1): flat buckets of f32 in device memory, each cut into one shard per rank.
//
//   reduce_scatter  rank r gets, for its shard of the bucket, the sum over the ranks
//   all_gather      every rank gets every shard, each from its owner
//
// Letters: n floats of a bucket, G ranks. Shard r is [n r / G, n (r + 1) / G), rounded down to
// multiples of kShardAlignFloats but for the bucket's end; it may be empty.
//
// Calls only queue work, and return before it is done. Buckets move in the order of the calls,
// which is the same on all ranks (SH-2). Each call waits in the queue for the work that its
// `producer` holds, and sees the results of earlier calls of the other kind in its bucket.
//
// Invariants (tests/runtime/collective/shard_exchange_test.cc)
//   SH-1  Sums have the same bits for the same inputs: ((x0 + x1) + x2) + … in rank order, by one
//         f32 addition each, for every G and bucket (as CO-1).
//   SH-2  All ranks make the same calls with the same n; a rank without work of its own makes them
//         too. Where they do not, the call that is behind fails by its deadline.
//   SH-3  After an error every further call fails at once with the same error; no memory is touched
//         any more once wait() has returned it.
//   SH-4  A part of the calls can be waited for (hold_back) while later ones, which other ranks may
//         not even have made, are still under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/device/stream.h"
#include "runtime/device/tensor_view.h"

namespace tandem::collective {

inline constexpr std::int64_t kShardAlignFloats = 64;

struct ShardRange {
  std::int64_t begin = 0, end = 0;  // floats
  std::int64_t size() const { return end - begin; }
};
ShardRange shard_of(std::int64_t floats, int rank, int ranks);

// out[i] = ((p0[i] + p1[i]) + p2[i]) + … for i < count, each a single f32 addition, as work of the
// stream. `out` may be one of the pieces; there is at least one.
using SumPieces =
    std::function<void(const device::Stream& stream, std::span<const float* const> pieces,
                       float* out, std::int64_t count)>;
void sum_on_host(const device::Stream& stream, std::span<const float* const> pieces, float* out,
                 std::int64_t count);  // the plain loop, of a host's memory

// One thread at a time may call. Buckets must stay where they are until wait() has returned.
class ShardExchange {
 public:
  virtual ~ShardExchange() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // `bucket` [n] f32 on the device. This rank's shard of it holds the sum afterwards; the rest is
  // unspecified. The call waits for the work that `producer` holds when it is made.
  virtual Result<void> reduce_scatter(const device::TensorView& bucket,
                                      const device::Stream& producer) = 0;
  // `bucket` [n] f32 on the device. Each rank's own shard is copied to all ranks, so that the
  // buckets are equal afterwards. The call waits for its producer as above.
  virtual Result<void> all_gather(const device::TensorView& bucket,
                                  const device::Stream& producer) = 0;

  // Work that `consumer` is given from now on waits for the first `calls` calls that were made
  // since the last wait(), and for no later call that is still under way. The caller itself may be
  // held for as long as ranks wait for each other, at most until these calls' own deadlines. Errors
  // as wait().
  virtual Result<void> hold_back(const device::Stream& consumer, std::uint64_t calls) = 0;
  // Waits until everything that was queued is done, or failed; at most the calls' own deadlines. An
  // error names the call and the ranks that it waited for.
  virtual Result<void> wait() = 0;
};

}  // namespace tandem::collective
