#include "actors/learner/trainer_weights.h"

#include <cstring>
#include <utility>

#include "actors/model/parameters.h"
#include "runtime/base/check.h"
#include "runtime/base/digest.h"
#include "runtime/device/queue.h"

namespace tandem::learner {

Result<TrainerWeights> TrainerWeights::allocate(const Shape& shape, device::Arena host) {
  // The manifests are copied before `host` is moved from.
  const device::Manifest manifest = host.manifest(), published = published_manifest(shape.model);
  auto policy =
      model::Weights::allocate(shape.model, model::WeightsUse::kTrainingInPlace, shape.device);
  if (!policy) return policy.error();
  TrainerWeights weights(std::move(host), *std::move(policy));
  if (shape.device != device::DeviceKind::kCpu) {
    auto master =
        device::Arena::allocate(manifest, "the weights", device::operand_memory(shape.device));
    if (!master) return master.error();
    weights.master_ = *std::move(master);
  }
  if (published != manifest) {
    auto rounded = device::Arena::allocate(published, "the published weights",
                                           device::staging_memory(shape.device));
    if (!rounded) return rounded.error();
    weights.rounded_ = *std::move(rounded);
  }
  if (shape.reference) {
    auto bytes = device::Arena::allocate(published, "the reference's weights");
    if (!bytes) return bytes.error();
    auto packed =
        model::Weights::allocate(shape.model, model::WeightsUse::kInference, shape.device);
    if (!packed) return packed.error();
    weights.reference_ = Reference{*std::move(bytes), *std::move(packed)};
  }
  return weights;
}

std::span<const std::byte> TrainerWeights::published() const {
  return rounded_ ? rounded_->bytes() : host_.bytes();
}

std::span<std::byte> TrainerWeights::reference_bytes() const {
  return reference_ ? reference_->bytes.bytes() : std::span<std::byte>{};
}

void TrainerWeights::restart(const device::Stream& stream) {
  // The newest weights are the master's; all other forms are then made from the host's copy.
  fetch(stream);
  install_host(stream);
  if (!reference_) return;
  CHECK(reference_bytes().size() == published().size());
  std::memcpy(reference_bytes().data(), published().data(), published().size());
  install_reference(stream);
}

const device::Arena& TrainerWeights::begin_load() {
  master_changed();
  return host_;
}

void TrainerWeights::loaded(const device::Stream& stream) { install_host(stream); }

void TrainerWeights::install_host(const device::Stream& stream) {
  if (master_)
    device::copy(stream, master_->flat().data, host_.bytes().data(), host_.bytes().size());
  master_changed();
  follow_master(stream);
  host_follows_ = true;
  publish(stream);
}

void TrainerWeights::install_reference(const device::Stream& stream) {
  CHECK(reference_);
  reference_->packed.install(stream, reference_->bytes.bytes());
  device::synchronize(stream);
}

void TrainerWeights::master_changed() {
  followed_ = 0;
  // Without a GPU the host's weights are the master weights.
  host_follows_ = !master_;
}

void TrainerWeights::follow_master(const device::Stream& stream, std::int64_t end) {
  // Every float is installed once per change of the master weights.
  if (end <= followed_) return;
  policy_.install_master(stream, master(), {.begin = followed_, .end = end});
  followed_ = end;
}

void TrainerWeights::publish(const device::Stream& stream) {
  // A partly followed policy would publish a mixture of two versions.
  CHECK(followed_ == floats());
  // In f32 the host's weights are published as they are.
  if (rounded_) {
    policy_.fetch(stream, rounded_->bytes());
    device::synchronize(stream);
  } else {
    fetch(stream);
  }
}

const device::Arena& TrainerWeights::fetch(const device::Stream& stream) {
  if (!host_follows_)
    device::copy(stream, host_.bytes().data(), master_->flat().data, host_.bytes().size());
  host_follows_ = true;
  device::synchronize(stream);
  return host_;
}

std::string TrainerWeights::host_sha256() const {
  Sha256 digest;
  for (const device::ParameterSpec& spec : host_.manifest().parameters)
    digest.update(host_.bytes().subspan(spec.offset_bytes, spec.bytes));
  return digest.hex();
}

}  // namespace tandem::learner
