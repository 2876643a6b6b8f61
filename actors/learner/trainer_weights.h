// One rank's weights in all forms that NativeTrainer keeps of them:
//
//   host       f32, in the host's memory: a checkpoint has them
//   master     f32, on the device: AdamW updates them. On a CPU they are the host's.
//   policy     rounded to the dtype that the model computes in, and packed
//   (actors/model/weights.h).
//              Of f32 on a CPU it reads the master weights where it needs them unpacked.
//   published  in that dtype, in the host's memory. For f32 they are the host's.
//   reference  the weights that were published when RL began; only where the KL loss needs them
//
// A step changes master; the other forms follow when a function here says so. The policy may follow
// in parts, from the arena's beginning on, so that a forward can begin while the end of the master
// weights is still on its way from other ranks. Work on the device is given to the stream that a
// function is called with. One thread at a time.
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

namespace tandem::actors {

class TrainerWeights {
 public:
  struct Shape {
    const ModelConfig& model;
    runtime::DeviceKind device;
    bool reference;
  };
  // `host`: make_manifest(model)'s layout. The other forms follow in restart(). The error is want
  // of memory.
  static Result<TrainerWeights> allocate(const Shape& shape, runtime::Arena host);

  const runtime::Arena& master() const { return master_ ? *master_ : host_; }
  const Weights& policy() const { return policy_; }
  const Weights* reference() const { return reference_ ? &reference_->packed : nullptr; }
  std::span<const std::byte> published() const;
  std::span<std::byte> reference_bytes() const;  // empty where there is no reference

  // RL starts from the newest weights: all forms become them, the reference too.
  void restart(const runtime::Stream& stream);
  // The host's weights, for a loader to write to. All other forms but the reference are undefined
  // from now on, until loaded() makes them the host's again.
  const runtime::Arena& begin_load();
  void loaded(const runtime::Stream& stream);
  // After reference_bytes() were written.
  void install_reference(const runtime::Stream& stream);
  // AdamW has changed the master weights, or is about to: the other forms are older from now on.
  void master_changed();
  // The policy follows the master weights before float `end`, where a layer ends (WeightsNeeded in
  // decoder.h). Those before the last call's `end` it has already.
  void follow_master(const runtime::Stream& stream, std::int64_t end);
  void follow_master(const runtime::Stream& stream) { follow_master(stream, floats()); }
  // The published weights become what the policy is, which has followed all of the master weights.
  // They are there on return.
  void publish(const runtime::Stream& stream);
  // The host's weights become the master weights.
  const runtime::Arena& fetch(const runtime::Stream& stream);
  // The host's weights of the last fetch(), restart() or loaded(); on a CPU always the newest.
  const runtime::Arena& host() const { return host_; }
  std::string host_sha256() const;  // of the parameters' bytes in the manifest's order

 private:
  struct Reference {
    runtime::Arena bytes;  // as published
    Weights packed;        // kInference
  };

  TrainerWeights(runtime::Arena host, Weights policy)
      : host_(std::move(host)), policy_(std::move(policy)) {}
  void install_host(const runtime::Stream& stream);
  std::int64_t floats() const { return host_.flat().elements(); }

  runtime::Arena host_;
  std::optional<runtime::Arena> master_;   // of a GPU
  std::optional<runtime::Arena> rounded_;  // of bf16: what is published
  Weights policy_;                         // kTrainingInPlace; of f32 on a CPU it reads master()
  std::optional<Reference> reference_;
  bool host_follows_ = true;   // the host's weights are the master weights
  std::int64_t followed_ = 0;  // floats of the master weights that the policy has
};

}  // namespace tandem::actors
