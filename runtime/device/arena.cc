#include "runtime/device/arena.h"

#include <utility>

namespace tandem::runtime {

Result<Arena> Arena::allocate(Manifest manifest, const char* purpose) {
  Result<HostBuffer> buffer = HostBuffer::allocate(manifest.bytes_total, purpose);
  if (!buffer) return buffer.error();
  Arena arena;
  arena.manifest_ = std::move(manifest);
  arena.buffer_ = *std::move(buffer);
  return arena;
}

std::span<float> Arena::f32() const {
  for (const ParameterSpec& spec : manifest_.parameters) CHECK(spec.dtype == DType::kF32);
  return buffer_.as<float>();
}

TensorView Arena::view(std::string_view name) const {
  const ParameterSpec* spec = manifest_.find(name);
  CHECK(spec != nullptr);
  return parameter_view(*spec, buffer_.data());
}

TensorView Arena::fused(std::string_view first, std::string_view last) const {
  return fused_view(manifest_, first, last, buffer_.data());
}

}  // namespace tandem::runtime
