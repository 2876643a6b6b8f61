#include "actors/learner/trainer_arenas.h"

#include <utility>

#include "actors/learner/sharded_update.h"

namespace tandem::learner {
namespace {

Result<Optimizer> allocate_optimizer(const NativeTrainerSetup& setup) {
  const auto floats =
      static_cast<std::int64_t>(setup.model.weights.manifest().bytes_total / sizeof(float));
  std::vector<collective::ShardRange> own{{.begin = 0, .end = floats}};
  if (setup.shards)
    own = shards_of_rank(cut_buckets(setup.model.config, setup.buckets), setup.shards->rank(),
                         setup.shards->size());
  return Optimizer::allocate(floats, std::move(own), setup.device);
}

}  // namespace

Result<TrainerArenas> allocate_arenas(NativeTrainerSetup& setup) {
  auto gradients = device::Arena::allocate(setup.model.weights.manifest(), "gradients",
                                           device::operand_place(setup.device));
  if (!gradients) return gradients.error();
  // Weights come last, because allocating them consumes setup.model.weights.
  auto optimizer = allocate_optimizer(setup);
  if (!optimizer) return optimizer.error();
  auto pass = LossPass::make(setup.model.config, setup.config, setup.device, setup.beat);
  if (!pass) return pass.error();
  auto weights = TrainerWeights::allocate({.model = setup.model.config,
                                           .device = setup.device,
                                           .reference = setup.config.algorithm.needs_reference()},
                                          std::move(setup.model.weights));
  if (!weights) return weights.error();
  return TrainerArenas{.weights = *std::move(weights),
                       .gradients = *std::move(gradients),
                       .optimizer = *std::move(optimizer),
                       .pass = *std::move(pass)};
}

}  // namespace tandem::learner
