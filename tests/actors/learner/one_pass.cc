#include "tests/actors/learner/one_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "actors/learner/packing.h"
#include "actors/model/parameters.h"
#include "runtime/device/queue.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::learner::testing {
namespace {

device::Arena round_to_bf16(device::Arena weights) {
  for (float& w : weights.f32()) w = device::bf16_to_f32(device::f32_to_bf16(w));
  return weights;
}

}  // namespace

TrainerConfig one_pass_config(const std::filesystem::path& folder) {
  TrainerConfig config = trainer_config(folder);
  config.optimizer.eps = 1e-2;
  config.optimizer.weight_decay = 0.01;
  config.algorithm.entropy_coeff = 0.01;
  config.algorithm.use_kl_loss = true;
  config.algorithm.kl_loss_coef = 0.1;
  // The references are far away, where low_var_kl is at its bound: a rounding may cross it, and the
  // gradient jumps there.
  config.algorithm.kl_loss_type = KlPenalty::kMse;
  // The same holds where a ratio is near a bound of its clip.
  config.algorithm.clip_ratio_c.reset();
  config.algorithm.clip_ratio_low = 0.99;
  config.algorithm.clip_ratio_high = 100;
  return config;
}

Pass pass_on(device::DeviceKind device, const TrainBatch& batch, device::DType dtype,
             bool checkpointing, kernels::Rows products, model::Family family) {
  TrainerConfig config = one_pass_config("unused");
  config.enable_gradient_checkpointing = checkpointing;
  config.products = products;
  model::ModelConfig model = learner_model(family);
  EXPECT_TRUE(compute_in(dtype, model));
  const device::Arena weights =
      model::testing::published(model, round_to_bf16(model::testing::random_weights(model, 3)));
  const device::Arena other =
      model::testing::published(model, round_to_bf16(model::testing::random_weights(model, 4)));
  const device::Arena gradients = model::testing::must(
      device::Arena::allocate(make_manifest(model), "gradients", device::operand_memory(device)));
  model::Weights policy =
      model::testing::must(model::Weights::allocate(model, model::WeightsUse::kTraining, device));
  model::Weights reference =
      model::testing::must(model::Weights::allocate(model, model::WeightsUse::kInference, device));
  LossPass loss_pass = model::testing::must(LossPass::make(model, config, device, {}));
  const device::Queue queue(device);
  policy.install(queue.stream(), weights.bytes());
  reference.install(queue.stream(), other.bytes());

  Pass result;
  const BatchAdvantages advantages = compute_advantages(config.algorithm, config.batch, batch);
  loss_pass.begin(batch, advantages);
  for (const MicroBatch& micro :
       model::testing::must(pack(share_of(batch, advantages.learns, 0, 1), config.rows_max))) {
    loss_pass.add(queue.stream(), {policy, &reference}, micro, gradients);
    result.logprobs.insert(result.logprobs.end(), loss_pass.last_logprobs().begin(),
                           loss_pass.last_logprobs().end());
  }
  result.loss = loss_pass.objective().sums().loss;
  result.gradients.resize(static_cast<std::size_t>(gradients.flat().elements()));
  device::copy(queue.stream(), result.gradients.data(), gradients.flat().data,
               result.gradients.size() * sizeof(float));
  device::synchronize(queue.stream());
  return result;
}

double furthest(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double apart = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(apart <= most)) most = apart;  // a NaN stays
  }
  return most;
}

double relative_error(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double apart = 0, whole = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = double{a[i]} - double{b[i]};
    apart += difference * difference;
    whole += double{b[i]} * double{b[i]};
  }
  return std::sqrt(apart / whole);
}

}  // namespace tandem::learner::testing
