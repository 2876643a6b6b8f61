// Wired values as JSON and back, by the fields of TANDEM_WIRE, for questions from people and
// scripts.
//
//   C++                                       JSON
//   a struct                                  object of its fields by name
//   bool, numbers, std::string                true, 7, 0.5, "text"
//   Id<>                                      the number
//   an enum                                   the enumerator, kTooLarge: "too_large"
//   Time, Duration                            nanoseconds
//   std::optional                             null or the value; the field may be left out
//   std::vector, std::map                     list, object
//   std::variant                              [index, value]; std::monostate is null
//
// Reading takes the number of an enumerator as well. It refuses unknown and missing fields, values
// of another kind, and numbers that do not fit (kInvalid, with the place, "add.amount"). Pure; from
// any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "actors/program/json_checks.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/wire/codec_parts.h"
#include "runtime/wire/fields.h"

namespace tandem::program {

namespace json_detail {

using wire::wire_detail::is_a;
using wire::wire_detail::is_id;

template <class T>
Result<void> read(const json& value, T& out, const std::string& at);
template <class T>
json write(const T& value);

template <class T>
Result<void> read_integer(const json& value, T& out, const std::string& at) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_signed_v<T>) {
    const auto read = integer(value, at, Limits::min(), Limits::max());
    if (!read) return read.error();
    out = static_cast<T>(*read);
  } else {
    const auto read = unsigned_integer(value, at, Limits::max());
    if (!read) return read.error();
    out = static_cast<T>(*read);
  }
  return {};
}

template <class Struct, auto... kMembers>
Result<void> read_fields(const json& value, Struct& out,
                         wire::WireFields<Struct, kMembers...> fields, const std::string& at) {
  if (!value.is_object()) return mismatch(at, "an object", value);
  if (auto known = only_known(value, fields.names, at); !known) return known;
  std::size_t index = 0;
  Result<void> result;
  [[maybe_unused]] const auto one = [&]<class Member>(Member Struct::*field) {
    const std::string_view name = wire::field_name(fields.names, index++);
    const json* const found = member(value, name);
    if (found)
      result = read(*found, out.*field, at + "." + std::string(name));
    else if constexpr (!is_a<Member, std::optional>)
      result = missing(at, name, fields.names);
    return result.has_value();
  };
  (void)(one(kMembers) && ...);
  return result;
}

template <class... Alternatives>
Result<void> read_variant(const json& value, std::variant<Alternatives...>& out,
                          const std::string& at) {
  constexpr std::size_t kCount = sizeof...(Alternatives);
  if (!value.is_array() || value.size() != 2) return mismatch(at, "[index, value]", value);
  const auto index = unsigned_integer(value[0], at + "[0]", kCount - 1);
  if (!index) return index.error();
  Result<void> result;
  const auto one = [&]<std::size_t i>(std::integral_constant<std::size_t, i>) {
    if (i == *index) result = read(value[1], out.template emplace<i>(), at + "[1]");
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (one(std::integral_constant<std::size_t, I>{}), ...);
  }
  (std::make_index_sequence<kCount>());
  return result;
}

template <class T>
Result<void> read_list(const json& value, std::vector<T>& out, const std::string& at) {
  if (!value.is_array()) return mismatch(at, "a list", value);
  out.clear();
  for (const json& element : value) {
    T one{};
    const std::string place = at + "[" + std::to_string(out.size()) + "]";
    if (auto result = read(element, one, place); !result) return result;
    out.push_back(std::move(one));
  }
  return {};
}

template <class T>
Result<void> read_enum(const json& value, T& out, const std::string& at) {
  constexpr auto kAll = wire_enumerators(static_cast<const T*>(nullptr));
  std::underlying_type_t<T> number{};
  if (value.is_number() && read_integer(value, number, at) && wire_has(static_cast<T>(number))) {
    out = static_cast<T>(number);
    return {};
  }
  const auto index = enumerator_at(value, at, kAll.names, kAll.values.size());
  if (!index) return index.error();
  out = kAll.values[*index];
  return {};
}

template <class T>
Result<void> read_map(const json& value, std::map<std::string, T>& out, const std::string& at) {
  if (!value.is_object()) return mismatch(at, "an object", value);
  out.clear();
  for (const auto& [key, element] : value.items())
    if (auto result = read(element, out[key], at + "." + key); !result) return result;
  return {};
}

// The branches of encode_to (runtime/wire/codec.h), in the same order.
template <class T>
Result<void> read(const json& value, T& out, const std::string& at) {
  if constexpr (wire::Wired<T>) {
    return read_fields(value, out, wire_fields(&out), at);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) return mismatch(at, "true or false", value);
    out = value.get<bool>();
    return {};
  } else if constexpr (wire::WiredEnum<T>) {
    return read_enum(value, out, at);
  } else if constexpr (std::is_same_v<T, std::byte>) {
    std::uint8_t number = 0;
    auto result = read_integer(value, number, at);
    out = std::byte{number};
    return result;
  } else if constexpr (std::is_integral_v<T>) {
    return read_integer(value, out, at);
  } else if constexpr (std::is_floating_point_v<T>) {
    const auto read = number(value, at, std::numeric_limits<T>::max());
    if (!read) return read.error();
    out = static_cast<T>(*read);
    return {};
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) return mismatch(at, "a string", value);
    out = value.get<std::string>();
    return {};
  } else if constexpr (is_id<T>) {
    return read_integer(value, out.value, at);
  } else if constexpr (std::is_same_v<T, Time>) {
    return read_integer(value, out.ns, at);
  } else if constexpr (std::is_same_v<T, Duration>) {
    std::int64_t ns = 0;
    auto result = read_integer(value, ns, at);
    out = Duration(ns);
    return result;
  } else if constexpr (std::is_same_v<T, std::monostate>) {
    return value.is_null() ? Result<void>() : mismatch(at, "null", value);
  } else if constexpr (is_a<T, std::optional>) {
    out.reset();
    return value.is_null() ? Result<void>() : read(value, out.emplace(), at);
  } else if constexpr (is_a<T, std::variant>) {
    return read_variant(value, out, at);
  } else if constexpr (is_a<T, std::vector>) {
    return read_list(value, out, at);
  } else if constexpr (is_a<T, std::map>) {
    return read_map(value, out, at);
  } else {
    static_assert(sizeof(T) == 0, "not wired: is TANDEM_WIRE or TANDEM_WIRE_ENUM missing?");
  }
}

template <class Struct, auto... kMembers>
json write_fields(const Struct& value, wire::WireFields<Struct, kMembers...> fields) {
  json object = json::object();
  std::size_t index = 0;
  [[maybe_unused]] const auto one = [&](auto field) {
    object[std::string(wire::field_name(fields.names, index++))] = write(value.*field);
  };
  (one(kMembers), ...);
  return object;
}

template <class T>
json write_enum(T value) {
  constexpr auto kAll = wire_enumerators(static_cast<const T*>(nullptr));
  for (std::size_t i = 0; i < kAll.values.size(); ++i)
    if (kAll.values[i] == value) return enumerator(kAll.names, i);
  return static_cast<std::underlying_type_t<T>>(value);
}

template <class T>
json write(const T& value) {
  if constexpr (wire::Wired<T>) {
    return write_fields(value, wire_fields(&value));
  } else if constexpr (wire::WiredEnum<T>) {
    return write_enum(value);
  } else if constexpr (std::is_same_v<T, std::byte>) {
    return std::to_integer<std::uint8_t>(value);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (is_id<T>) {
    return value.value;
  } else if constexpr (std::is_same_v<T, Time>) {
    return value.ns;
  } else if constexpr (std::is_same_v<T, Duration>) {
    return value.count();
  } else if constexpr (std::is_same_v<T, std::monostate>) {
    return nullptr;
  } else if constexpr (is_a<T, std::optional>) {
    return value ? write(*value) : json();
  } else if constexpr (is_a<T, std::variant>) {
    return json::array({value.index(), std::visit([](const auto& v) { return write(v); }, value)});
  } else if constexpr (is_a<T, std::vector>) {
    json list = json::array();
    for (const auto& element : value) list.push_back(write<typename T::value_type>(element));
    return list;
  } else {
    static_assert(is_a<T, std::map>, "not wired: is TANDEM_WIRE or TANDEM_WIRE_ENUM missing?");
    json object = json::object();
    for (const auto& [key, element] : value) object[key] = write(element);
    return object;
  }
}

}  // namespace json_detail

}  // namespace tandem::program
