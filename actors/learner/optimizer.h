// AdamW over an arena: moments, step count, clipping by the global norm. Weights, gradients and
// moments are in the memory of one device; a checkpoint has the moments in the host's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "actors/learner/learner_config.h"
#include "runtime/base/result.h"
#include "runtime/device/arena.h"
#include "runtime/device/memory.h"
#include "runtime/device/staged.h"
#include "runtime/device/stream.h"

namespace tandem::actors {

inline constexpr double kClipEps = 1.0e-6;  // as torch.nn.utils.clip_grad_norm_

class Optimizer {
 public:
  // The error is want of memory.
  static Result<Optimizer> allocate(std::size_t arena_bytes, runtime::DeviceKind device);

  void reset(const runtime::Stream& stream);  // no history: as before the first step

  // Returns the global norm of `gradients` before clipping, for which it waits. If it is not
  // finite, nothing changes.
  double apply(const runtime::Stream& stream, const OptimizerConfig& config, double lr,
               const runtime::Arena& weights, const runtime::Arena& gradients);

  // Both moments in the host's memory. On a CPU they are the optimizer's own, so that fetching and
  // putting cost nothing; for a GPU's it is room for a copy.
  struct HostMoments {
    std::span<std::byte> m, v;
    runtime::Buffer copy;  // empty on a CPU
  };
  Result<HostMoments> host_moments() const;  // the error is want of memory
  void fetch(const runtime::Stream& stream, const HostMoments& to) const;
  void put(const runtime::Stream& stream, const HostMoments& from);

  std::uint64_t steps() const { return steps_; }
  void set_steps(std::uint64_t steps) { steps_ = steps; }  // after the moments were put back

 private:
  Optimizer() = default;

  runtime::Buffer m_, v_;
  runtime::Buffer norm_workspace_;  // doubles
  runtime::Staged squares_;         // one double
  std::uint64_t steps_ = 0;
};

}  // namespace tandem::actors
