// One contiguous block that holds a manifest's parameters: weights, gradients or optimizer state.
// Optimizer, checkpoint, collectives and weight sync work on flat ranges of it.
//
// An arena owns its block, which begins as zeros. An arena can be moved: views stay valid, because
// the block stays where it is.
#pragma once

#include <span>
#include <string_view>

#include "runtime/device/manifest.h"
#include "runtime/device/memory.h"

namespace tandem::device {

class Arena {
 public:
  Arena() = default;
  // Allocates the block in memory of `kind`; `purpose` and errors as of Buffer::allocate().
  static Result<Arena> allocate(Manifest manifest, const char* purpose,
                                MemoryKind kind = MemoryKind::kHost);

  const Manifest& manifest() const { return manifest_; }
  std::span<std::byte> bytes() const { return buffer_.bytes(); }  // host memory only
  // The whole block as one vector, with the gaps, which are zeros and stay zeros under every flat
  // operation. Only for a manifest that is not empty and whose parameters have one dtype (CHECKed).
  TensorView flat() const;
  // flat() of an arena of f32 in host memory, as a span.
  std::span<float> f32() const;

  // The parameter of that name. A name that the manifest lacks is a bug (CHECKed).
  TensorView view(std::string_view name) const;
  TensorView fused(std::string_view first, std::string_view last) const;  // see fused_view

 private:
  Manifest manifest_;
  Buffer buffer_;
};

}  // namespace tandem::device
