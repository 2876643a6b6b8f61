// Plain structs ↔ msgpack bytes: encode(value), decode<T>(bytes). A struct becomes an array of its
// fields in the order of TANDEM_WIRE (fields.h); that order is the schema, one binary speaks it, so
// a missing or an extra field is an error. Include this where messages are sent or received, never
// in a header of messages. The bytes themselves are written and read in bytes.h.
//
//   bool, integers, enums     bool, int            std::string              str
//   float, double             float 32, float 64   Id<>, Time, Duration     int
//   std::optional             nil | the value      std::map<std::string,T>  map
//   std::variant              [index, value]       a wired struct           array
//   std::vector of numbers (also of Id<> and std::byte): bin, little endian; of anything else:
//   array
//
// Decoding trusts nothing: bytes of any content give a value or an Error (kInvalid) that names the
// type, the field and the place; memory is bounded by WireLimits before it is allocated.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/wire/bytes.h"
#include "runtime/wire/codec_parts.h"
#include "runtime/wire/fields.h"

namespace tandem {
TANDEM_WIRE_ENUM(ErrorCode, kInvalid, kFailed, kOutOfMemory, kInfeasible, kNotFound, kUnauthorised,
                 kTimedOut, kUnreachable)
TANDEM_WIRE(Error, code, message, where, help, os_error)
}  // namespace tandem

namespace tandem::runtime {

template <class T>
std::string encode(const T& value) {
  std::string bytes;
  WireWriter out(bytes);
  encode_to(out, value);
  return bytes;
}

template <class T>
Result<T> decode(std::string_view bytes, WireLimits limits = {}) {
  WireReader in(bytes, limits);
  T value{};
  if (decode_from(in, value) && in.finish()) return value;
  return in.error();
}

template <class T>
void encode_to(WireWriter& out, const T& value) {
  if constexpr (Wired<T>) {
    wire_detail::encode_fields(out, value, wire_fields(&value));
  } else if constexpr (std::is_same_v<T, bool>) {
    out.boolean(value);
  } else if constexpr (WiredEnum<T>) {
    encode_to(out, static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
    out.integer(value);
  } else if constexpr (std::is_integral_v<T>) {
    out.unsigned_integer(value);
  } else if constexpr (std::is_same_v<T, float>) {
    out.float32(value);
  } else if constexpr (std::is_same_v<T, double>) {
    out.float64(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    out.text(value);
  } else if constexpr (wire_detail::is_id<T>) {
    encode_to(out, value.value);
  } else if constexpr (std::is_same_v<T, Time>) {
    out.integer(value.ns);
  } else if constexpr (std::is_same_v<T, Duration>) {
    out.integer(value.count());
  } else if constexpr (std::is_same_v<T, std::monostate>) {
    out.nil();
  } else if constexpr (wire_detail::is_a<T, std::optional>) {
    static_assert(!wire_detail::is_a<typename T::value_type, std::optional>, "nil is ambiguous");
    value ? encode_to(out, *value) : out.nil();
  } else if constexpr (wire_detail::is_a<T, std::variant>) {
    out.array(2);
    out.unsigned_integer(value.index());
    std::visit([&](const auto& alternative) { encode_to(out, alternative); }, value);
  } else if constexpr (wire_detail::is_a<T, std::vector>) {
    if constexpr (wire_detail::is_packed<typename T::value_type>) {
      out.bin(value.data(), value.size() * sizeof(typename T::value_type));
    } else {
      out.array(value.size());
      for (const auto& element : value) encode_to<typename T::value_type>(out, element);
    }
  } else if constexpr (wire_detail::is_a<T, std::map>) {
    out.map(value.size());
    for (const auto& [key, element] : value) {
      encode_to(out, key);
      encode_to(out, element);
    }
  } else {
    static_assert(sizeof(T) == 0, "not encodable: is TANDEM_WIRE or TANDEM_WIRE_ENUM missing?");
  }
}

template <class T>
bool decode_from(WireReader& in, T& value) {
  if constexpr (Wired<T>) {
    return wire_detail::decode_fields(in, value, wire_fields(&value));
  } else if constexpr (std::is_same_v<T, bool>) {
    return in.boolean(value);
  } else if constexpr (WiredEnum<T>) {
    return wire_detail::decode_enum(in, value);
  } else if constexpr (std::is_integral_v<T>) {
    return wire_detail::decode_integer(in, value);
  } else if constexpr (std::is_same_v<T, float>) {
    return in.float32(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return in.float64(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    std::string_view text;
    if (!in.text(text) || !in.charge(text.size())) return false;
    value.assign(text);
    return true;
  } else if constexpr (wire_detail::is_id<T>) {
    return decode_from(in, value.value);
  } else if constexpr (std::is_same_v<T, Time>) {
    return in.integer(value.ns);
  } else if constexpr (std::is_same_v<T, Duration>) {
    std::int64_t ns = 0;
    if (!in.integer(ns)) return false;
    value = Duration(ns);
    return true;
  } else if constexpr (std::is_same_v<T, std::monostate>) {
    return in.nil() || in.fail("expected nil");
  } else if constexpr (wire_detail::is_a<T, std::optional>) {
    if (in.nil()) {
      value.reset();
      return true;
    }
    return decode_from(in, value.emplace());
  } else if constexpr (wire_detail::is_a<T, std::variant>) {
    return wire_detail::decode_variant(in, value);
  } else if constexpr (wire_detail::is_a<T, std::vector>) {
    return wire_detail::decode_vector(in, value);
  } else if constexpr (wire_detail::is_a<T, std::map>) {
    return wire_detail::decode_map(in, value);
  } else {
    static_assert(sizeof(T) == 0, "not decodable: is TANDEM_WIRE or TANDEM_WIRE_ENUM missing?");
  }
}

}  // namespace tandem::runtime
