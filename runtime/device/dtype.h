// Element types of tensors, and conversion to and from f32.
//
// bf16 and f16 exist in storage only, f16 in checkpoints alone; arithmetic is f32. Narrowing
// rounds to nearest, ties to even; NaN stays NaN (quiet), overflow becomes infinity, and f16
// subnormals are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem::device {

enum class DType : std::uint8_t { kF32, kBF16, kF16, kI32, kU8 };

std::size_t size_bytes(DType dtype);
const char* name(DType dtype);  // "f32", "bf16", "f16", "i32", "u8"

float bf16_to_f32(std::uint16_t bits);
float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_bf16(float value);
std::uint16_t f32_to_f16(float value);

// Converts between bytes of a floating dtype and f32, element by element. Both sides hold the same
// number of elements (CHECKed), and the bytes need no alignment. An integer dtype is a bug and is
// CHECKed.
void to_f32(std::span<const std::byte> from, DType dtype, std::span<float> to);
void from_f32(std::span<const float> from, DType dtype, std::span<std::byte> to);

}  // namespace tandem::device
