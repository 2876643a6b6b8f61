// One rank's weights in all forms that NativeTrainer keeps of them:
//
//   host       f32, in the host's memory: a checkpoint has them
//   master     f32, on the device: AdamW updates them. On a CPU they are the host's.
//   policy     rounded to the dtype that the model computes in, and packed
//              (actors/model/weights.h). In f32 on a CPU the policy reads the master weights where
//              it needs them unpacked.
//   published  in that dtype, in the host's memory. For f32 they are the host's.
//   reference  the weights that were published when RL began; only where KL needs them
//
// A step changes master; the other forms follow only when a function below is called. The policy
// may follow in parts, from the arena's beginning on, so that a forward can begin while the end of
// the master weights is still on its way from other ranks. Work on the device is given to the
// stream that a function is called with. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "actors/model/model_config.h"
#include "actors/model/weights.h"
#include "runtime/base/result.h"
#include "runtime/device/arena.h"
#include "runtime/device/stream.h"

namespace tandem::learner {

class TrainerWeights {
 public:
  struct Shape {
    const model::ModelConfig& model;
    device::DeviceKind device;
    bool reference;
  };
  // `host` has make_manifest(model)'s layout. The other forms are undefined before restart(). The
  // error means too little memory.
  static Result<TrainerWeights> allocate(const Shape& shape, device::Arena host);

  const device::Arena& master() const { return master_ ? *master_ : host_; }
  const model::Weights& policy() const { return policy_; }
  const model::Weights* reference() const { return reference_ ? &reference_->packed : nullptr; }
  std::span<const std::byte> published() const;
  std::span<std::byte> reference_bytes() const;  // empty where there is no reference

  // Makes all forms equal to the newest weights, from which RL starts, the reference included.
  void restart(const device::Stream& stream);
  // Returns the host's weights, for a loader to write to. From now on all other forms except the
  // reference are undefined, until loaded() makes them follow the host's.
  const device::Arena& begin_load();
  void loaded(const device::Stream& stream);
  // Call it after reference_bytes() were written.
  void install_reference(const device::Stream& stream);
  // AdamW has changed the master weights, so the other forms are out of date from now on.
  void master_changed();
  // Makes the policy follow the master weights before float `end`, which is the end of a layer
  // (WeightsNeeded in decoder.h). Weights that the policy already has are not read again.
  void follow_master(const device::Stream& stream, std::int64_t end);
  void follow_master(const device::Stream& stream) { follow_master(stream, floats()); }
  // Copies the policy's weights into the published ones, after the policy has followed all of the
  // master weights. The copy is complete on return.
  void publish(const device::Stream& stream);
  // Copies the master weights into the host's and returns those. The copy is complete on return.
  const device::Arena& fetch(const device::Stream& stream);
  // The host's weights of the last fetch(), restart() or loaded(); on a CPU always the newest.
  const device::Arena& host() const { return host_; }
  std::string host_sha256() const;  // the hash of the parameters' bytes in the manifest's order

 private:
  struct Reference {
    device::Arena bytes;    // as published
    model::Weights packed;  // kInference
  };

  TrainerWeights(device::Arena host, model::Weights policy)
      : host_(std::move(host)), policy_(std::move(policy)) {}
  void install_host(const device::Stream& stream);
  std::int64_t floats() const { return host_.flat().elements(); }

  device::Arena host_;
  std::optional<device::Arena> master_;   // only with a GPU
  std::optional<device::Arena> rounded_;  // the published weights, only in bf16
  model::Weights policy_;                 // kTrainingInPlace; in f32 on a CPU it reads master()
  std::optional<Reference> reference_;
  bool host_follows_ = true;   // the host's weights equal the master weights
  std::int64_t followed_ = 0;  // floats of the master weights that the policy has
};

}  // namespace tandem::learner
