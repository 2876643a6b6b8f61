#include "actors/learner/trainer_arenas.h"

#include <utility>

#include "actors/learner/sharded_update.h"
#include "actors/model/parameters.h"

namespace tandem::actors {
namespace {

Result<Optimizer> allocate_optimizer(const NativeTrainerSetup& setup) {
  const auto floats =
      static_cast<std::int64_t>(setup.model.weights.manifest().bytes_total / sizeof(float));
  std::vector<runtime::ShardRange> own{{.begin = 0, .end = floats}};
  if (setup.shards)
    own = shards_of_rank(cut_buckets(setup.model.config, setup.buckets), setup.shards->rank(),
                         setup.shards->size());
  return Optimizer::allocate(floats, std::move(own), setup.device);
}

}  // namespace

Result<TrainerArenas> allocate_arenas(const NativeTrainerSetup& setup) {
  const runtime::Manifest& manifest = setup.model.weights.manifest();
  const runtime::DeviceKind device = setup.device;
  const runtime::Place place = runtime::operand_place(device);
  auto gradients = runtime::Arena::allocate(manifest, "gradients", place);
  if (!gradients) return gradients.error();
  auto optimizer = allocate_optimizer(setup);
  if (!optimizer) return optimizer.error();
  auto policy = Weights::allocate(setup.model.config, WeightsUse::kTraining, device);
  if (!policy) return policy.error();
  auto pass = LossPass::make(setup.model.config, setup.config, device, setup.beat);
  if (!pass) return pass.error();
  TrainerArenas arenas{.master = {},
                       .rounded = {},
                       .gradients = *std::move(gradients),
                       .optimizer = *std::move(optimizer),
                       .policy = *std::move(policy),
                       .reference = {},
                       .reference_policy = {},
                       .pass = *std::move(pass)};
  if (device != runtime::DeviceKind::kCpu) {
    auto master = runtime::Arena::allocate(manifest, "the weights", place);
    if (!master) return master.error();
    arenas.master = *std::move(master);
  }
  const runtime::Manifest published = published_manifest(setup.model.config);
  if (published != manifest) {
    auto rounded = runtime::Arena::allocate(published, "the published weights",
                                            runtime::staging_place(device));
    if (!rounded) return rounded.error();
    arenas.rounded = *std::move(rounded);
  }
  if (setup.config.algorithm.use_kl_loss) {
    auto reference = runtime::Arena::allocate(published, "the reference's weights");
    if (!reference) return reference.error();
    auto packed = Weights::allocate(setup.model.config, WeightsUse::kInference, device);
    if (!packed) return packed.error();
    arenas.reference = *std::move(reference);
    arenas.reference_policy = *std::move(packed);
  }
  return arenas;
}

}  // namespace tandem::actors
