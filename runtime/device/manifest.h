// The layout of an arena: the parameters of a model in layer order, by their Hugging Face names.
//
// MF-1  Offsets ascend in the order of `parameters`, each a multiple of kAlignmentBytes; the gaps
//       between parameters are zero bytes and belong to no parameter.
// MF-2  A parameter whose size is a multiple of kAlignmentBytes is followed by the next without a
//       gap, so that q|k|v or gate|up can be one fused operand (see fused_view).
//
// Two processes that add the same parameters in the same order have the same manifest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/dtype.h"
#include "runtime/device/tensor_view.h"

namespace tandem::device {

struct ParameterSpec {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;  // 1 … kRankMax dimensions, outermost first
  std::size_t offset_bytes = 0;
  std::size_t bytes = 0;  // without the gap that follows

  bool operator==(const ParameterSpec&) const = default;
};

struct Manifest {
  std::vector<ParameterSpec> parameters;
  std::size_t bytes_total = 0;  // the gap after the last one included

  // Appends a parameter at the end; its name must be new.
  void add(std::string name, DType dtype, std::vector<std::int64_t> shape);

  const ParameterSpec* find(std::string_view name) const;  // null: no such parameter
  std::size_t elements() const;  // the elements of all parameters, without gaps

  bool operator==(const Manifest&) const = default;
};

// A parameter inside a block that is laid out by the manifest and begins at `base`.
TensorView parameter_view(const ParameterSpec& spec, std::byte* base);

// The parameters first … last as one tensor whose dimension 0 is the sum of theirs. They must be
// adjacent in the manifest, without gaps, of one dtype, and equal but for dimension 0 (CHECKed).
TensorView fused_view(const Manifest& manifest, std::string_view first, std::string_view last,
                      std::byte* base);

}  // namespace tandem::device
