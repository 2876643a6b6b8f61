// Plain structs ↔ msgpack bytes: encode(value), decode<T>(bytes). A struct becomes an array of its
// fields in the order of TANDEM_WIRE (fields.h). That order is the whole schema: both ends have the
// same (schema.h), so a missing or an extra field is an error and versions are never mixed. Include
// this where messages are sent or received, never in a header of messages. bytes.h writes and reads
// the bytes themselves.
//
//   C++                                      msgpack
//   bool                                     bool
//   integers, enums, Id<>, Time, Duration    int
//   float, double                            float 32, float 64
//   std::string                              str
//   std::optional<T>                         nil, or the T
//   std::monostate                           nil
//   std::variant                             array of the index and the value
//   a struct with TANDEM_WIRE                array of its fields
//   std::map<std::string, T>                 map
//   std::vector of numbers, Id<>, std::byte  bin, little endian, as the elements lie in memory
//   std::vector of anything else             array
//
// Decoding trusts nothing: bytes of any content give a value or an Error (kInvalid) that names the
// type, the field and the place, such as "cannot decode Generate.prompt_tokens: the bytes end
// early", byte 17. Memory is checked against WireLimits before it is allocated. Encoding cannot
// fail.
//
// All functions are pure and may be called from any thread.
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
// This is here and not in result.h, since runtime/base does not know runtime/wire.
TANDEM_WIRE_ENUM(ErrorCode, kInvalid, kFailed, kOutOfMemory, kInfeasible, kNotFound, kUnauthorised,
                 kTimedOut, kUnreachable)
TANDEM_WIRE(FurtherError, message, where, help)
TANDEM_WIRE(Error, code, message, where, help, os_error, further, further_left_out)
}  // namespace tandem

namespace tandem::wire {

// The bytes of one value.
template <class T>
std::string encode(const T& value) {
  std::string bytes;
  WireWriter out(bytes);
  encode_to(out, value);
  return bytes;
}

// The value of a whole message; bytes behind the value are an error. T must be
// default-constructible. `limits` bound the cost of a message from a peer; readers of files of our
// own pass larger ones.
template <class T>
Result<T> decode(std::string_view bytes, WireLimits limits = {}) {
  WireReader in(bytes, limits);
  T value{};
  if (decode_from(in, value) && in.finish()) return value;
  return in.error();
}

// Appends one value. The order of the branches matters where kinds overlap: bool is an integral
// type too, and an enum or an Id is written as its number.
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
    // An optional in an optional could not tell which of the two is empty.
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

// Takes one value off, by the same branches. After a failure, which `in` remembers, the content of
// `value` is undefined.
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
    // Charged before the copy, as in every branch that allocates.
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

}  // namespace tandem::wire
