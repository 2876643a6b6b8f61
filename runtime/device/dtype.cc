// Conversions work on the bits of IEEE 754 numbers. Rounding to nearest with ties to even is an
// addition: half of the last kept bit, less one, plus that bit itself. A carry out of the mantissa
// raises the exponent, which is the right result, up to infinity.
#include "runtime/device/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/base/check.h"

namespace tandem::device {

std::size_t size_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kU8:
      return 1;
  }
  CHECK(false);
}

const char* name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kI32:
      return "i32";
    case DType::kU8:
      return "u8";
  }
  CHECK(false);
}

float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  // 0x40 is the quiet bit. Without it a NaN whose upper mantissa bits are zero would become
  // infinity.
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  const std::uint32_t round = 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>((bits + round) >> 16);
}

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in f32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  // Infinity or NaN: the exponent's bits are all ones in both formats.
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  // The biases of the exponents are 127 and 15; 112 is their difference.
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  // 65520 lies halfway between the largest f16, 65504, and 65536: the tie goes to infinity.
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // below 2^-14: rounded to a multiple of 2^-24
    // Scaling by a power of two is exact, and nearbyint rounds ties to even. The result 1024 is
    // also right: it is the bit pattern of 2^-14, the smallest normal number.
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(scaled)));
  }
  // 0x38000000 is the difference of the exponents' biases, 112 << 23.
  const std::uint32_t round = 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + round) >> 13));
}

namespace {

template <auto kConvert>
void widen(std::span<const std::byte> from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, from.data() + 2 * i, 2);
    to[i] = kConvert(bits);
  }
}

template <auto kConvert>
void narrow(std::span<const float> from, std::span<std::byte> to) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::uint16_t bits = kConvert(from[i]);
    std::memcpy(to.data() + 2 * i, &bits, 2);
  }
}

}  // namespace

void to_f32(std::span<const std::byte> from, DType dtype, std::span<float> to) {
  CHECK(from.size() == to.size() * size_bytes(dtype));
  if (from.empty()) return;
  switch (dtype) {
    case DType::kF32:
      std::memcpy(to.data(), from.data(), from.size());
      return;
    case DType::kBF16:
      return widen<bf16_to_f32>(from, to);
    case DType::kF16:
      return widen<f16_to_f32>(from, to);
    case DType::kI32:
    case DType::kU8:
      break;
  }
  CHECK(false);
}

void from_f32(std::span<const float> from, DType dtype, std::span<std::byte> to) {
  CHECK(to.size() == from.size() * size_bytes(dtype));
  if (from.empty()) return;
  switch (dtype) {
    case DType::kF32:
      std::memcpy(to.data(), from.data(), to.size());
      return;
    case DType::kBF16:
      return narrow<f32_to_bf16>(from, to);
    case DType::kF16:
      return narrow<f32_to_f16>(from, to);
    case DType::kI32:
    case DType::kU8:
      break;
  }
  CHECK(false);
}

}  // namespace tandem::device
