// TANDEM_WIRE(Type, field, …): makes a plain struct encodable, beside its definition and without a
// method in it. Light on purpose: message headers include this, only senders and receivers include
// codec.h.
//
//   struct Generate { GroupId group; std::vector<std::int32_t> prompt_tokens; };
//   TANDEM_WIRE(Generate, group, prompt_tokens)
//
// Place it at namespace scope in the struct's own namespace (it is found by argument-dependent
// lookup). The order of the fields is the schema; every field of the struct must be listed.
// TANDEM_WIRE_EMPTY(Type) is for a struct without fields. TANDEM_WIRE_ENUM(Type, kA, kB, …) lists
// every enumerator: decoding refuses all other values. The codec takes no enum without it, and the
// compiler none that is listed in part (-Wswitch).
#pragma once

#include <tuple>

namespace tandem::runtime {

template <class Struct, class... Members>
struct WireFields {
  const char* type;   // "Generate"
  const char* names;  // "group, prompt_tokens"
  std::tuple<Members Struct::*...> members;
};

template <class Struct, class... Members>
constexpr WireFields<Struct, Members...> wire_fields_of(const char* type, const char* names,
                                                        Members Struct::*... members) {
  return {type, names, std::tuple<Members Struct::*...>(members...)};
}

}  // namespace tandem::runtime

// Expands to `, &Type::a, &Type::b, …` by recursive rescanning, for up to 39 fields.
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

#define TANDEM_WIRE(Type, ...)                                       \
  [[maybe_unused]] constexpr auto wire_fields(const Type*) {         \
    return ::tandem::runtime::wire_fields_of<Type>(                  \
        #Type, #__VA_ARGS__ TANDEM_WIRE_MEMBERS(Type, __VA_ARGS__)); \
  }
#define TANDEM_WIRE_EMPTY(Type)                                \
  [[maybe_unused]] constexpr auto wire_fields(const Type*) {   \
    return ::tandem::runtime::wire_fields_of<Type>(#Type, ""); \
  }
#define TANDEM_WIRE_ENUM(Type, ...)                           \
  [[maybe_unused]] constexpr bool wire_has(Type value) {      \
    switch (value) {                                          \
      TANDEM_WIRE_EXPAND(TANDEM_WIRE_CASE(Type, __VA_ARGS__)) \
      return true;                                            \
    }                                                         \
    return false;                                             \
  }
