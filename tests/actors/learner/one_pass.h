// One pass over a batch on a device and in a dtype, and how far the results of two passes are
// apart.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "actors/learner/loss_pass.h"
#include "actors/learner/train_batch.h"
#include "tests/actors/learner/learner_builder.h"

namespace tandem::learner::testing {

// bf16 has 8 bits: a rounding is 2e-3 at most, and some twenty of them lie on the longest way to
// logits of size 3. A log-probability's error is also an error of its ratio to the old one, and so
// of the whole gradient, to which the way back adds its own. (Each operator is held to 3e-3 by
// itself, in tests/kernels.)
inline constexpr double kBf16LogprobTolerance = 0.06, kBf16GradientTolerance = 0.1;

// Entropy, a reference, and AdamW with an eps as large as the gradients: with a tiny one, an
// element whose gradient is rounding noise takes a whole step whichever way the noise points.
TrainerConfig one_pass_config(const std::filesystem::path& folder);

struct Pass {
  std::vector<float> logprobs, gradients;
  double loss = 0;
};

// Computes one micro-batch after another with weights and a reference that are far apart. All
// weights are numbers that bf16 has, whatever `dtype` is.
Pass pass_on(device::DeviceKind device, const TrainBatch& batch,
             device::DType dtype = device::DType::kF32, bool checkpointing = false,
             kernels::Rows products = kernels::Rows::kInvariant,
             model::Family family = model::Family::kQwen3);

// The largest difference of two elements; a NaN where there is one.
double furthest(std::span<const float> a, std::span<const float> b);

// The relative error of a: sqrt(sum (a - b)^2 / sum b^2).
double relative_error(std::span<const float> a, std::span<const float> b);

}  // namespace tandem::learner::testing
