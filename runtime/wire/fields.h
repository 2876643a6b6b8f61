// TANDEM_WIRE(Type, field, …) makes a plain struct encodable by codec.h. It stands beside the
// struct, which stays free of methods. This header is light on purpose: headers of messages include
// it, and only senders and receivers include codec.h.
//
//   struct Generate { GroupId group; std::vector<std::int32_t> prompt_tokens; };
//   TANDEM_WIRE(Generate, group, prompt_tokens)
//
// The macro stands at namespace scope in the struct's own namespace, because the codec finds its
// function by argument-dependent lookup. The order of the fields is the schema. Every field must be
// listed; codec_parts.h checks that at compile time. For a struct without fields there is
// TANDEM_WIRE_EMPTY(Type).
//
// TANDEM_WIRE_ENUM(Type, kA, kB, …) lists every enumerator of an enum; decoding refuses all other
// values. The codec does not take an enum without this list, and the compiler does not take a list
// that lacks an enumerator (-Wswitch).
#pragma once

#include <array>
#include <cstddef>

#include "runtime/base/ids.h"

namespace tandem::wire {

// The fields of one struct: their names, for errors, and pointers to the members. The pointers are
// arguments of the template, since a tuple of them would be compiled in every source that includes
// the message.
template <class Struct, auto... kMembers>
struct WireFields {
  const char* type;   // "Generate"
  const char* names;  // "group, prompt_tokens"
};

// The enumerators of one enum: their names in the code, and their values in the same order.
template <class Enum, std::size_t kCount>
struct WireEnumerators {
  const char* names;  // "kA, kB"
  std::array<Enum, kCount> values;
};
template <class Enum, std::size_t kCount>
WireEnumerators(const char*, std::array<Enum, kCount>) -> WireEnumerators<Enum, kCount>;

}  // namespace tandem::wire

// TANDEM_WIRE_MEMBERS expands to `, &Type::a, &Type::b, …` for up to 39 fields. A macro cannot call
// itself; TANDEM_WIRE_STEP leaves a call behind that becomes one only when its text is scanned
// again, and each TANDEM_WIRE_EXPAND scans the text many times. TANDEM_WIRE_CASE and
// TANDEM_WIRE_VALUE do the same for the enumerators of an enum.
#define TANDEM_WIRE_PARENS ()
#define TANDEM_WIRE_EXPAND(...) \
  TANDEM_WIRE_EXPAND3(TANDEM_WIRE_EXPAND3(TANDEM_WIRE_EXPAND3(__VA_ARGS__)))
#define TANDEM_WIRE_EXPAND3(...) \
  TANDEM_WIRE_EXPAND2(TANDEM_WIRE_EXPAND2(TANDEM_WIRE_EXPAND2(__VA_ARGS__)))
#define TANDEM_WIRE_EXPAND2(...) \
  TANDEM_WIRE_EXPAND1(TANDEM_WIRE_EXPAND1(TANDEM_WIRE_EXPAND1(__VA_ARGS__)))
#define TANDEM_WIRE_EXPAND1(...) __VA_ARGS__
#define TANDEM_WIRE_STEP(Type, field, ...) \
  , &Type::field __VA_OPT__(TANDEM_WIRE_AGAIN TANDEM_WIRE_PARENS(Type, __VA_ARGS__))
#define TANDEM_WIRE_AGAIN() TANDEM_WIRE_STEP
#define TANDEM_WIRE_MEMBERS(Type, ...) TANDEM_WIRE_EXPAND(TANDEM_WIRE_STEP(Type, __VA_ARGS__))
#define TANDEM_WIRE_CASE(Type, value, ...) \
  case Type::value:                        \
    __VA_OPT__(TANDEM_WIRE_CASE_AGAIN TANDEM_WIRE_PARENS(Type, __VA_ARGS__))
#define TANDEM_WIRE_CASE_AGAIN() TANDEM_WIRE_CASE
#define TANDEM_WIRE_VALUE(Type, value, ...) \
  Type::value __VA_OPT__(, TANDEM_WIRE_VALUE_AGAIN TANDEM_WIRE_PARENS(Type, __VA_ARGS__))
#define TANDEM_WIRE_VALUE_AGAIN() TANDEM_WIRE_VALUE

// wire_fields(const Type*) is the function by which the codec knows a struct, and wire_has(Type)
// the one by which it knows an enum; wire_enumerators(const Type*) has the names of the enum's
// values, for people. The pointers only select the overload; they may be null.
#define TANDEM_WIRE(Type, ...)                                                                    \
  [[maybe_unused]] constexpr auto wire_fields(const Type*) {                                      \
    return ::tandem::wire::WireFields<Type TANDEM_WIRE_MEMBERS(Type, __VA_ARGS__)>{#Type,         \
                                                                                   #__VA_ARGS__}; \
  }
#define TANDEM_WIRE_EMPTY(Type)                              \
  [[maybe_unused]] constexpr auto wire_fields(const Type*) { \
    return ::tandem::wire::WireFields<Type>{#Type, ""};      \
  }
#define TANDEM_WIRE_ENUM(Type, ...)                                                          \
  [[maybe_unused]] constexpr bool wire_has(Type value) {                                     \
    switch (value) {                                                                         \
      TANDEM_WIRE_EXPAND(TANDEM_WIRE_CASE(Type, __VA_ARGS__))                                \
      return true;                                                                           \
    }                                                                                        \
    return false;                                                                            \
  }                                                                                          \
  [[maybe_unused]] constexpr auto wire_enumerators(const Type*) {                            \
    return ::tandem::wire::WireEnumerators{                                                  \
        #__VA_ARGS__, std::array{TANDEM_WIRE_EXPAND(TANDEM_WIRE_VALUE(Type, __VA_ARGS__))}}; \
  }

// Most messages carry an ActorId, and runtime/base knows nothing of the wire.
namespace tandem {
TANDEM_WIRE(ActorId, name, incarnation)
}  // namespace tandem
