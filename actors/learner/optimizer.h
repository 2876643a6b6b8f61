// AdamW over an arena: moments, step count, clipping by the global norm.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/learner/learner_config.h"
#include "runtime/base/result.h"
#include "runtime/device/arena.h"
#include "runtime/device/memory.h"
#include "runtime/device/stream.h"

namespace tandem::actors {

inline constexpr double kClipEps = 1.0e-6;  // as torch.nn.utils.clip_grad_norm_

class Optimizer {
 public:
  static Result<Optimizer> allocate(std::size_t arena_bytes);

  void reset();  // no history: as before the first step

  // Returns the global norm of `gradients` before clipping. If it is not finite, nothing changes.
  double apply(const runtime::Stream& stream, const OptimizerConfig& config, double lr,
               const runtime::Arena& weights, const runtime::Arena& gradients);

  std::span<std::byte> m() const { return m_.bytes(); }
  std::span<std::byte> v() const { return v_.bytes(); }
  std::uint64_t steps() const { return steps_; }
  void set_steps(std::uint64_t steps) { steps_ = steps; }  // after m() and v() were read back

 private:
  Optimizer(runtime::HostBuffer m, runtime::HostBuffer v);

  runtime::HostBuffer m_, v_;
  std::vector<double> norm_workspace_;
  std::uint64_t steps_ = 0;
};

}  // namespace tandem::actors
