// One version of the parameters on one device, in the forms that the decoder multiplies with.
//
// install() copies and packs everything out of an arena, which may change afterwards (except with
// kTrainingInPlace); install_master() does the same from a part of the master weights. Both write
// in place: a CUDA graph that was recorded with the addresses of one version computes with the next
// version. The decoder only reads, so threads may share a Weights that is not being installed.
//
// A CPU packs its matrices; a GPU reads them as they are, so on a GPU both forms are one memory.
// For inference on a CPU a tied embedding exists only as the packed head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/model/model_config.h"
#include "kernels/ops/matmul.h"
#include "runtime/base/result.h"
#include "runtime/device/arena.h"
#include "runtime/device/manifest.h"
#include "runtime/device/memory.h"
#include "runtime/device/stream.h"

namespace tandem::model {

enum class WeightsUse : std::uint8_t {
  kInference,  // forward passes only
  kTraining,   // backward as well, which reads the matrices unpacked
  // The same as kTraining, but on a CPU that computes in f32 the unpacked parameters are not
  // copied: they are read in the arena that was installed last. That arena must stay in its place,
  // and its content may change only while no decoder computes and if an install follows. On a GPU,
  // or in bf16, this is the same as kTraining.
  kTrainingInPlace,
};

// A matrix in both forms. In kInference on a CPU `plain` is empty, except for an embedding that is
// not tied to the head.
struct MatrixOperand {
  kernels::PackedWeight packed;
  device::TensorView plain;
};

struct LayerWeights {
  device::TensorView input_norm;           // [H]
  MatrixOperand qkv;                       // [Q, H]
  device::TensorView qkv_bias;             // [Q, 1], or empty
  device::TensorView q_norm, k_norm;       // [D], or empty
  MatrixOperand o;                         // [H, A D]
  device::TensorView post_attention_norm;  // [H]
  MatrixOperand gate_up;                   // [2 F, H]
  MatrixOperand down;                      // [H, F]
};

// A part of an arena, in floats.
struct FloatRange {
  std::int64_t begin, end;
};

// Returns the weights that a learner with these master weights publishes: rounded to config.dtype,
// or in f32 the same arena. `master` has make_manifest(config)'s layout and lies in the host's
// memory. The only error is too little memory.
Result<device::Arena> as_published(const ModelConfig& config, device::Arena master);

class Weights {
 public:
  // The error means too little memory. The values are undefined before the first install.
  static Result<Weights> allocate(const ModelConfig& config, WeightsUse use,
                                  device::DeviceKind device);
  // Bytes that allocate() takes on the device.
  static std::size_t bytes(const ModelConfig& config, WeightsUse use, device::DeviceKind device);

  // Takes over all of `arena`, which has published_manifest(config)'s layout and lies in the host's
  // memory or the device's. The arena must stay unchanged until the stream has done this work.
  void install(const device::Stream& stream, std::span<const std::byte> arena);
  // The same from master weights, which have make_manifest(config)'s layout and lie on the device;
  // the values are rounded to config.dtype. Only the floats of `range` are read, which begins and
  // ends where a layer does (layer_begins in parameters.h) or where the arena does. Not for
  // kInference in bf16 on a CPU, which keeps no copy to round into (CHECKed).
  void install_master(const device::Stream& stream, const device::Arena& master,
                      const FloatRange& range);

  // Copies the parameters to `arena` in the host's memory, in the form that install() reads. It may
  // be called only where all of them are kept (CHECKed): on a GPU, with kTraining, and with
  // kTrainingInPlace in bf16.
  void fetch(const device::Stream& stream, std::span<std::byte> arena) const;

  WeightsUse use() const { return use_; }
  // The layout that install() reads.
  const device::Manifest& manifest() const { return manifest_; }
  // [V, H]: plain, or packed where `plain` is empty.
  const MatrixOperand& embedding() const { return forms_->embedding; }
  const LayerWeights& layer(std::int64_t index) const {
    return forms_->layers[static_cast<std::size_t>(index)];
  }
  const device::TensorView& final_norm() const { return forms_->final_norm; }  // [H]
  const MatrixOperand& head() const { return forms_->head; }                   // [V, H]

 private:
  Weights(const ModelConfig& config, WeightsUse use, device::Arena kept, device::Buffer packed);
  bool in_place() const { return kept_.manifest().parameters.empty(); }
  void lay_out_layer(const ModelConfig& config, std::int64_t index);
  void place(const std::string& first, const device::TensorView& shape, device::TensorView& view);
  void operand(const std::string& first, std::int64_t n, std::int64_t k, MatrixOperand& operand);

  // Bytes of an arena.
  struct ByteRange {
    std::size_t begin, end;
    // Whether the `bytes` bytes from `from` on lie in the range. A range that cuts them is a bug.
    bool holds(std::size_t from, std::size_t bytes) const;
  };
  void install_part(const device::Stream& stream, const std::byte* arena, const ByteRange& part);
  void pack_part(const device::Stream& stream, const std::byte* arena, const ByteRange& part);
  void install_rounded(const device::Stream& stream, const device::Arena& master,
                       const ByteRange& part);

  // Offsets in bytes into the arena that install() reads, and into kept_.
  struct Copy {
    std::size_t from, to, bytes;
  };
  struct Packing {
    std::size_t from;
    kernels::PackedWeight packed;
  };

  // A view that every install points at parameters in its arena (kTrainingInPlace).
  struct Borrowed {
    std::size_t from, bytes;
    device::TensorView* view;  // in forms_
  };
  struct Forms {
    MatrixOperand embedding, head;
    device::TensorView final_norm;
    std::vector<LayerWeights> layers;
  };

  WeightsUse use_;
  device::Manifest manifest_;
  // The parameters that are read unpacked. On a CPU for kInference these are norms, biases and an
  // embedding that is not the head. Empty where all of them are borrowed (in_place()).
  device::Arena kept_;
  device::Buffer packed_;        // empty on a GPU
  std::size_t packed_used_ = 0;  // bytes
  std::vector<Copy> copies_;
  std::vector<Packing> packings_;
  std::vector<Borrowed> borrowed_;
  std::unique_ptr<Forms> forms_;
};

}  // namespace tandem::model
