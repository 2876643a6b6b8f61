#include "runtime/device/arena.h"

#include <utility>

namespace tandem::device {

Result<Arena> Arena::allocate(Manifest manifest, const char* purpose, MemoryKind kind) {
  Result<Buffer> buffer = Buffer::allocate(manifest.bytes_total, purpose, kind);
  if (!buffer) return buffer.error();
  Arena arena;
  arena.manifest_ = std::move(manifest);
  arena.buffer_ = *std::move(buffer);
  return arena;
}

TensorView Arena::flat() const {
  CHECK(!manifest_.parameters.empty());
  const DType dtype = manifest_.parameters.front().dtype;
  for (const ParameterSpec& spec : manifest_.parameters) CHECK(spec.dtype == dtype);
  // The size divides evenly: kAlignmentBytes is a multiple of every dtype's size (MF-1).
  return tensor(buffer_.data(), dtype,
                {static_cast<std::int64_t>(buffer_.size() / size_bytes(dtype))});
}

std::span<float> Arena::f32() const {
  CHECK(manifest_.parameters.empty() || flat().dtype == DType::kF32);
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

}  // namespace tandem::device
