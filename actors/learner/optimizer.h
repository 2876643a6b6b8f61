// AdamW over an arena, or over some parts of it: moments, step count, clipping by the global norm.
// A rank of a gang that shares the work updates its own parts only, and has moments for no others.
//
// Weights, gradients and moments are in the memory of one device; a checkpoint has the moments of
// the whole arena in host memory. Which rank updates which part, and everything that ranks
// exchange, is the concern of sharded_update.h. Used by one thread.
//
//   OP-1  AdamW is elementwise: any cut of the arena into parts gives the same weights and moments,
//         bit for bit, for equal norms. (A norm depends on the cut by a few roundings.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/learner/learner_config.h"
#include "runtime/base/result.h"
#include "runtime/collective/shard_exchange.h"
#include "runtime/device/arena.h"
#include "runtime/device/memory.h"
#include "runtime/device/staged.h"
#include "runtime/device/stream.h"

namespace tandem::learner {

inline constexpr double kClipEps = 1.0e-6;  // as torch.nn.utils.clip_grad_norm_

class Optimizer {
 public:
  // `own`: ranges of the arena, in floats, that do not overlap; some may be empty. The error means
  // too little memory. Moments are undefined before reset() or put().
  static Result<Optimizer> allocate(std::int64_t arena_floats,
                                    std::vector<collective::ShardRange> own,
                                    device::DeviceKind device);

  void reset(const device::Stream& stream);  // moments and step count as before the first step

  // The sum of the squares of the own parts of `gradients`, one part after another. Waits for the
  // stream.
  double squares(const device::Stream& stream, const device::Arena& gradients);

  // A step is begin_step(), then update() of each part once, in any order. `squares` is the sum
  // over the whole gradient, of all ranks; its root, the norm before clipping, is returned. If the
  // norm is not finite, no step has begun: steps() stays the same, and no update() may follow.
  double begin_step(const OptimizerConfig& config, double lr, double squares);
  void update(const device::Stream& stream, std::size_t part, const device::Arena& weights,
              const device::Arena& gradients);

  std::size_t parts() const { return parts_.size(); }
  const collective::ShardRange& part(std::size_t index) const { return parts_[index].range; }
  bool whole() const;  // there is one part, and it is the whole arena

  // Both moments of the whole arena in host memory. If the optimizer is whole() and runs on a CPU,
  // m and v are views of its own memory, so that fetch() and put() copy nothing; else they are
  // views of `copy`.
  struct HostMoments {
    std::span<std::byte> m, v;
    device::Buffer copy;  // may be empty
  };
  Result<HostMoments> host_moments() const;  // the error means too little memory
  void fetch(const device::Stream& stream, const HostMoments& to) const;  // only if whole()
  void put(const device::Stream& stream, const HostMoments& from);        // takes the own parts

  enum class Moment : std::uint8_t { kFirst, kSecond };
  // Copies the own parts to their places in `arena`, which lies on the device; the rest of it stays
  // as it is.
  void lay_out(const device::Stream& stream, Moment moment, const device::Arena& arena) const;

  std::uint64_t steps() const { return steps_; }
  void set_steps(std::uint64_t steps) { steps_ = steps; }  // after the moments were put back

 private:
  Optimizer() = default;

  struct Part {
    collective::ShardRange range;  // the part of the arena
    std::int64_t moments;          // where its moments begin in m_ and in v_, in floats
  };

  std::size_t arena_bytes_ = 0;
  std::vector<Part> parts_;
  device::Buffer m_, v_;           // the moments of the parts, one after another
  device::Buffer norm_workspace_;  // doubles
  device::Staged squares_;         // one double
  std::uint64_t steps_ = 0;
  OptimizerConfig config_;  // the configuration of the step that begin_step() began
  double lr_ = 0;
  float grad_scale_ = 1;
};

}  // namespace tandem::learner
