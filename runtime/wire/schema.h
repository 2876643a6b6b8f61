// The schema of wired types as text, by which two programs find out whether they encode the same
// messages in the same way: names of structs and fields, the kind of each field, the number of
// enumerators of each enum, and the order of a variant's alternatives.
//
//   wire_schema<Add>()                           Add(amount:i8)
//   wire_schema<std::variant<Ask<Add>, Reset>>() <ask Add(amount:i8)->i8|Reset()>
//
// A struct is written out wherever it is used, so the text of large inboxes has some kilobytes; it
// is compared by its hash. Pure; from any thread.
#pragma once

#include <chrono>
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
#include "runtime/wire/bytes.h"
#include "runtime/wire/codec_parts.h"
#include "runtime/wire/fields.h"

namespace tandem::wire {

// M is an Ask<Q> (runtime/actor/ref.h), of which this folder knows only the form.
template <class M>
concept AskShaped = requires(M ask) {
  typename std::remove_reference_t<decltype(ask.question)>::Reply;
  ask.reply;
};

// Sixteen hexadecimal digits.
std::string schema_hash(std::string_view schema);

namespace wire_detail {

template <class T>
void add_schema(std::string& out);

template <class Struct, auto... kMembers>
void add_fields(std::string& out, WireFields<Struct, kMembers...> fields) {
  out.append(fields.type).append("(");
  std::size_t index = 0;
  [[maybe_unused]] const auto one = [&]<class Member>(Member Struct::*) {
    if (index > 0) out += ',';
    out.append(field_name(fields.names, index++)).append(":");
    add_schema<Member>(out);
  };
  (one(kMembers), ...);
  out += ')';
}

template <class... Alternatives>
void add_alternatives(std::string& out, std::type_identity<std::variant<Alternatives...>>) {
  char separator = '<';
  ((out += separator, separator = '|', add_schema<Alternatives>(out)), ...);
  out += '>';
}

// The branches of encode_to (codec.h), in the same order.
template <class T>
void add_schema(std::string& out) {
  if constexpr (AskShaped<T>) {
    using Q = std::remove_cvref_t<decltype(std::declval<T&>().question)>;
    out += "ask ";
    add_schema<Q>(out);
    out += "->";
    if constexpr (!std::is_void_v<typename Q::Reply>) add_schema<typename Q::Reply>(out);
  } else if constexpr (Wired<T>) {
    add_fields(out, wire_fields(static_cast<const T*>(nullptr)));
  } else if constexpr (std::is_same_v<T, bool>) {
    out += 'b';
  } else if constexpr (WiredEnum<T>) {
    const auto all = wire_enumerators(static_cast<const T*>(nullptr));
    out.append("e").append(std::to_string(all.values.size()));
  } else if constexpr (std::is_integral_v<T>) {
    out.append(std::is_signed_v<T> ? "i" : "u").append(std::to_string(sizeof(T)));
  } else if constexpr (std::is_floating_point_v<T>) {
    out.append("f").append(std::to_string(sizeof(T)));
  } else if constexpr (std::is_same_v<T, std::string>) {
    out += 's';
  } else if constexpr (is_id<T>) {
    out += '#';
    add_schema<decltype(T::value)>(out);
  } else if constexpr (std::is_same_v<T, Time>) {
    out += 't';
  } else if constexpr (std::is_same_v<T, Duration>) {
    out += 'd';
  } else if constexpr (std::is_same_v<T, std::byte>) {
    out += 'y';
  } else if constexpr (std::is_same_v<T, std::monostate>) {
    out += '0';
  } else if constexpr (is_a<T, std::optional>) {
    out += '?';
    add_schema<typename T::value_type>(out);
  } else if constexpr (is_a<T, std::variant>) {
    add_alternatives(out, std::type_identity<T>{});
  } else if constexpr (is_a<T, std::vector>) {
    out += '*';
    add_schema<typename T::value_type>(out);
  } else if constexpr (is_a<T, std::map>) {
    out += '%';
    add_schema<typename T::mapped_type>(out);
  } else {
    static_assert(sizeof(T) == 0, "not wired: is TANDEM_WIRE or TANDEM_WIRE_ENUM missing?");
  }
}

}  // namespace wire_detail

// The schemas of all types, one behind the other.
template <class... T>
std::string wire_schema() {
  std::string schema;
  ((wire_detail::add_schema<T>(schema), schema += ';'), ...);
  return schema;
}

}  // namespace tandem::wire
