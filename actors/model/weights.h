// One version of the parameters on one device, in the forms that the decoder multiplies with.
//
// install() copies and packs everything out of an arena, which may change afterwards (but see
// kTrainingInPlace), and install_master() does so for a part of it. They write in place: what was
// captured with the addresses of one version computes with the next. The decoder only reads: a
// Weights that is not being installed may be shared by threads.
//
// A CPU packs its matrices; a GPU reads them as they are, so there both forms are one memory. For
// inference on a CPU a tied embedding is the packed head and nothing else.
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

namespace tandem::actors {

enum class WeightsUse : std::uint8_t {
  kInference,  // forward passes only
  kTraining,   // backward as well, which reads the matrices unpacked
  // The same without a copy of what is read unpacked, on a CPU that computes in f32: that is read
  // in the arena of the install, part by part, which has to stay, and whose content may change only
  // while nothing computes and an install of it follows. Elsewhere as kTraining.
  kTrainingInPlace,
};

// A matrix in both forms; `plain` is empty in kInference on a CPU (but see embedding()).
struct MatrixOperand {
  kernels::PackedWeight packed;
  runtime::TensorView plain;
};

struct LayerWeights {
  runtime::TensorView input_norm;           // [H]
  MatrixOperand qkv;                        // [Q, H]
  runtime::TensorView qkv_bias;             // [Q, 1], or empty
  runtime::TensorView q_norm, k_norm;       // [D], or empty
  MatrixOperand o;                          // [H, A D]
  runtime::TensorView post_attention_norm;  // [H]
  MatrixOperand gate_up;                    // [2 F, H]
  MatrixOperand down;                       // [H, F]
};

// A part of an arena, in floats.
struct FloatRange {
  std::int64_t begin, end;
};

// Returns what a learner with these master weights publishes: the weights rounded to config.dtype,
// in f32 the same arena. `master` has make_manifest(config)'s layout and lies in the host's memory.
// Fails only for want of memory.
Result<runtime::Arena> as_published(const ModelConfig& config, runtime::Arena master);

class Weights {
 public:
  // The error is want of memory.
  static Result<Weights> allocate(const ModelConfig& config, WeightsUse use,
                                  runtime::DeviceKind device);
  static std::size_t bytes(const ModelConfig& config, WeightsUse use, runtime::DeviceKind device);

  // Reads all of `arena`: published_manifest(config)'s layout, in the host's memory or the
  // device's. It must stay as it is until the stream has done this.
  void install(const runtime::Stream& stream, std::span<const std::byte> arena);
  // The same from master weights, make_manifest(config)'s layout, on the device: rounded. Reads the
  // floats of `range` alone, which begins and ends where a layer does (layer_begins in
  // parameters.h) or where the arena does. Of bf16 on a CPU not for kInference, which keeps no copy
  // to round into.
  void install_master(const runtime::Stream& stream, const runtime::Arena& master,
                      const FloatRange& range);

  // What install() would have to read, to the host; where all of it is kept: of kTraining or a
  // GPU's.
  void fetch(const runtime::Stream& stream, std::span<std::byte> arena) const;

  WeightsUse use() const { return use_; }
  // Of what install() reads.
  const runtime::Manifest& manifest() const { return manifest_; }
  // [V, H]: plain, or packed where `plain` is empty.
  const MatrixOperand& embedding() const { return forms_->embedding; }
  const LayerWeights& layer(std::int64_t index) const {
    return forms_->layers[static_cast<std::size_t>(index)];
  }
  const runtime::TensorView& final_norm() const { return forms_->final_norm; }  // [H]
  const MatrixOperand& head() const { return forms_->head; }                    // [V, H]

 private:
  Weights(const ModelConfig& config, WeightsUse use, runtime::Arena kept, runtime::Buffer packed);
  bool in_place() const { return kept_.manifest().parameters.empty(); }
  void lay_out_layer(const ModelConfig& config, std::int64_t index);
  void place(const std::string& first, const runtime::TensorView& shape, runtime::TensorView& view);
  void operand(const std::string& first, std::int64_t n, std::int64_t k, MatrixOperand& operand);

  // Bytes of an arena.
  struct ByteRange {
    std::size_t begin, end;
    // Whether the `bytes` bytes from `from` on lie in the range. A range that cuts them is a bug.
    bool holds(std::size_t from, std::size_t bytes) const;
  };
  void install_part(const runtime::Stream& stream, const std::byte* arena, const ByteRange& part);
  void pack_part(const runtime::Stream& stream, const std::byte* arena, const ByteRange& part);
  void install_rounded(const runtime::Stream& stream, const runtime::Arena& master,
                       const ByteRange& part);

  // Offsets in bytes into the arena that install() reads, and into kept_.
  struct Copy {
    std::size_t from, to, bytes;
  };
  struct Packing {
    std::size_t from;
    kernels::PackedWeight packed;
  };

  // A view of what lies in the arena of an install.
  struct Borrowed {
    std::size_t from, bytes;
    runtime::TensorView* view;  // in forms_
  };
  struct Forms {
    MatrixOperand embedding, head;
    runtime::TensorView final_norm;
    std::vector<LayerWeights> layers;
  };

  WeightsUse use_;
  runtime::Manifest manifest_;
  // What is read unpacked: on a CPU for kInference, norms, biases and an embedding that is not the
  // head. Nothing where all of it is borrowed.
  runtime::Arena kept_;
  runtime::Buffer packed_;       // empty on a GPU
  std::size_t packed_used_ = 0;  // bytes
  std::vector<Copy> copies_;
  std::vector<Packing> packings_;
  std::vector<Borrowed> borrowed_;
  std::unique_ptr<Forms> forms_;
};

}  // namespace tandem::actors
