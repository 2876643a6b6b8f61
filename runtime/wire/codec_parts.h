// The parts of codec.h: predicates that tell the kind of a type, and the encoding and decoding of
// structs and containers, field by field and element by element. Included by codec.h alone.
//
// A decode_* function returns false after a failure; the reader then knows why and where. Depth is
// counted by enter_* and leave(); after a failure no leave() is needed, since the reader is done.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/wire/bytes.h"
#include "runtime/wire/fields.h"

namespace tandem::wire {

// T is a struct with a TANDEM_WIRE beside it.
template <class T>
concept Wired = requires {
  wire_fields(static_cast<const T*>(nullptr));
};

// T is an enum with a TANDEM_WIRE_ENUM beside it.
template <class T>
concept WiredEnum = std::is_enum_v<T> && requires(T value) {
  wire_has(value);
};

// The two of codec.h, which these parts call for fields and elements.
template <class T>
void encode_to(WireWriter& out, const T& value);
template <class T>
bool decode_from(WireReader& in, T& value);

namespace wire_detail {

static_assert(std::endian::native == std::endian::little, "packed vectors are copied as they lie");

// T is an Id<> (runtime/base/ids.h), which travels as its number.
template <class T>
inline constexpr bool is_id = false;
template <class Tag, class Value>
inline constexpr bool is_id<Id<Tag, Value>> = true;

// Elements whose vectors travel as one bin: copied as they lie, without a tag for each, which makes
// long vectors of tokens many times cheaper. Not bool, since std::vector<bool> has no such memory.
template <class T>
inline constexpr bool is_packed = (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) ||
                                  std::is_same_v<T, std::byte> || is_id<T>;

// T is an instance of the class template Of.
template <class T, template <class...> class Of>
inline constexpr bool is_a = false;
template <template <class...> class Of, class... Args>
inline constexpr bool is_a<Of<Args...>, Of> = true;

// Stands for a value of any type in the check below. Never evaluated, and so not defined.
struct AnyField {
  template <class T>
  operator T() const;
};

// Whether Struct can be initialised with sizeof...(I) values. If it can with more values than
// TANDEM_WIRE lists fields, a field was forgotten there. A field whose type takes no AnyField
// without ambiguity escapes the check.
template <class Struct, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { Struct{(void(I), AnyField{})...}; };
}

// A struct is an array of its fields, without names: the order is the schema.
template <class Struct, auto... kMembers>
void encode_fields(WireWriter& out, const Struct& value, WireFields<Struct, kMembers...>) {
  static_assert(!takes<Struct>(std::make_index_sequence<sizeof...(kMembers) + 1>()),
                "TANDEM_WIRE does not list every field");
  out.array(sizeof...(kMembers));
  (encode_to(out, value.*kMembers), ...);
}

// A failure adds the field's name on the way out of each struct, so that the error has the whole
// path.
template <class Struct, auto... kMembers>
bool decode_fields(WireReader& in, Struct& value, WireFields<Struct, kMembers...> fields) {
  if (!in.enter_struct(fields.type, sizeof...(kMembers))) return false;
  std::uint32_t index = 0;
  const bool ok = ((decode_from(in, value.*kMembers) && ++index > 0) && ...);
  if (!ok) return in.failed_in(fields.type, fields.names, index);
  in.leave();
  return ok;
}

// An array of two: the index, then the value of that alternative.
template <class... Alternatives>
bool decode_variant(WireReader& in, std::variant<Alternatives...>& value) {
  std::uint64_t index = 0;
  if (!in.enter_struct("variant", 2) || !in.unsigned_integer(index)) return false;
  if (index >= sizeof...(Alternatives)) return in.fail("a variant's index is out of range");
  // Walks over the alternatives at compile time; only the one with the received index is decoded.
  std::uint64_t i = 0;
  bool ok = false;
  const auto one = [&]<class Alternative>(std::type_identity<Alternative>) {
    if (i++ == index) ok = decode_from(in, value.template emplace<Alternative>());
  };
  (one(std::type_identity<Alternatives>{}), ...);
  in.leave();
  return ok;
}

// The memory of the elements is charged before it is reserved; memory that elements own in turn
// (strings, vectors) is charged as each of them is decoded.
template <class T>
bool decode_vector(WireReader& in, std::vector<T>& value) {
  if constexpr (is_packed<T>) {
    std::string_view bytes;
    if (!in.bin(bytes)) return false;
    // bin counts bytes and knows no elements.
    if (bytes.size() % sizeof(T) != 0) return in.fail("a numeric array ends inside an element");
    if (!in.charge(bytes.size())) return false;
    value.resize(bytes.size() / sizeof(T));
    copy_bytes(value.data(), bytes);
    return true;
  } else {
    std::uint32_t count = 0;
    if (!in.enter_array(count)) return false;
    if (!in.charge(count * std::uint64_t{sizeof(T)})) return false;
    value.clear();
    value.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      // std::vector<bool> has no references to its elements.
      if constexpr (std::is_same_v<T, bool>) {
        bool element = false;
        if (!decode_from(in, element)) return false;
        value.push_back(element);
      } else {
        if (!decode_from(in, value.emplace_back())) return false;
      }
    }
    in.leave();
    return true;
  }
}

// Where keys are equal, the last one counts. Each pair is charged on its own: a map has no
// reserve().
template <class T>
bool decode_map(WireReader& in, std::map<std::string, T>& value) {
  std::uint32_t count = 0;
  if (!in.enter_map(count)) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::string key;
    T element{};
    if (!in.charge(sizeof(T) + sizeof(key))) return false;
    if (!decode_from(in, key) || !decode_from(in, element)) return false;
    value.insert_or_assign(std::move(key), std::move(element));
  }
  in.leave();
  return true;
}

// A number that does not fit T is a failure and is never cut off.
template <class T>
bool decode_integer(WireReader& in, T& value) {
  // The integer is read at full width first: msgpack does not say how wide the sender's type was.
  std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t> wide = 0;
  bool ok = false;
  if constexpr (std::is_signed_v<T>) {
    ok = in.integer(wide);
  } else {
    ok = in.unsigned_integer(wide);
  }
  if (!ok) return false;
  if (!std::in_range<T>(wide)) return in.fail("an integer does not fit its field");
  value = static_cast<T>(wide);
  return true;
}

// A number that is none of the listed enumerators is a failure.
template <class T>
bool decode_enum(WireReader& in, T& value) {
  std::underlying_type_t<T> number{};
  if (!decode_integer(in, number)) return false;
  value = static_cast<T>(number);
  return wire_has(value) || in.fail("an enum has no such value");
}

}  // namespace wire_detail

}  // namespace tandem::wire
