// One contiguous block that holds a manifest's parameters: weights, gradients or optimizer state.
// Optimizer, checkpoint, collectives and weight sync work on flat ranges of it.
//
// It owns its block, begins as zeros, and can be moved: views stay valid because the block does
// not move with it.
#pragma once

#include <span>
#include <string_view>

#include "runtime/device/manifest.h"
#include "runtime/device/memory.h"

namespace tandem::runtime {

class Arena {
 public:
  Arena() = default;
  static Result<Arena> allocate(Manifest manifest, const char* purpose, Place place = Place::kHost);

  const Manifest& manifest() const { return manifest_; }
  std::span<std::byte> bytes() const { return buffer_.bytes(); }  // of host memory
  // The whole block as one vector, gaps included (they are zeros and stay zeros under every flat
  // operation). Only for a manifest whose parameters are all of one dtype.
  TensorView flat() const;
  // The same, of f32 in host memory.
  std::span<float> f32() const;

  // The parameter of that name; asking for one that the manifest lacks is a bug.
  TensorView view(std::string_view name) const;
  TensorView fused(std::string_view first, std::string_view last) const;  // see fused_view

 private:
  Manifest manifest_;
  Buffer buffer_;
};

}  // namespace tandem::runtime
