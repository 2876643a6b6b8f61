// One rank's weights in all forms that NativeTrainer keeps of them:
//
//   host       f32, in the host's memory: a checkpoint has them
//   master     f32, on the device: AdamW updates them. On a CPU they are the host's.
//   policy     rounded to the dtype that the model computes in, and packed (actors/model/weights.h)
//   published  in that dtype, in the host's memory. For f32 they are the host's.
//   reference  the weights that were published when RL began; only where the KL loss needs them
//
// A step changes master; the other forms follow when a function here says so. Work on the device is
// given to the stream that a function is called with. One thread at a time.
#pragma once

#include <cstddef>
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
  // All forms but the reference become `host`'s.
  void replace(const runtime::Stream& stream, runtime::Arena host);
  // After reference_bytes() were written.
  void install_reference(const runtime::Stream& stream);
  // The policy follows the master weights, which AdamW has changed.
  void follow_master(const runtime::Stream& stream);
  // What is published follows them as well, and is there on return.
  void publish(const runtime::Stream& stream);
  // The host's weights, once they have followed too.
  const runtime::Arena& fetch(const runtime::Stream& stream);
  // The host's weights of the last fetch(), restart() or replace(); on a CPU always the newest.
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

  runtime::Arena host_;
  std::optional<runtime::Arena> master_;   // of a GPU
  std::optional<runtime::Arena> rounded_;  // of bf16: what is published
  Weights policy_;                         // kTraining
  std::optional<Reference> reference_;
  bool host_follows_ = true;  // the host's weights are the master weights
};

}  // namespace tandem::actors
