#include "actors/jinja/value_tests.h"

#include <array>

#include "actors/jinja/iteration.h"
#include "actors/jinja/operators.h"
#include "actors/jinja/printing.h"
#include "actors/jinja/python_text.h"

namespace tandem::jinja {
namespace {

// A test without arguments that looks at the value alone.
template <auto kTest>
bool plain(Run& run, const Value& value, const Arguments& arguments) {
  return bind_no_arguments(run, "this test", arguments) && kTest(value);
}

constexpr auto is_defined = [](const Value& value) { return !value.is_undefined(); };
constexpr auto is_undefined = [](const Value& value) { return value.is_undefined(); };
constexpr auto is_none = [](const Value& value) { return value.is_none(); };
constexpr auto is_boolean = [](const Value& value) { return value.is(Type::kBool); };
constexpr auto is_true = [](const Value& value) {
  return value.is(Type::kBool) && value.as_bool();
};
constexpr auto is_false = [](const Value& value) {
  return value.is(Type::kBool) && !value.as_bool();
};
constexpr auto is_integer = [](const Value& value) { return value.is_int(); };
constexpr auto is_float = [](const Value& value) { return value.is(Type::kFloat); };
constexpr auto is_number = [](const Value& value) { return value.is_number(); };
constexpr auto is_string = [](const Value& value) { return value.is_string(); };
constexpr auto is_mapping = [](const Value& value) { return value.is(Type::kDict); };
constexpr auto is_iterable = [](const Value& value) { return iterable(value); };
// What has a length and items by index; an undefined value has none of the latter.
constexpr auto is_sequence = [](const Value& value) {
  return value.is_string() || value.is(Type::kSequence) || value.is(Type::kDict) ||
         value.is(Type::kRange) || value.is_undefined();
};
constexpr auto is_callable = [](const Value& value) {
  return value.is(Type::kCallable) || value.is(Type::kMacro) || value.is(Type::kLoop) ||
         value.is_undefined();
};
constexpr auto is_escaped = [](const Value& value) { return value.is_markup(); };

template <Class kClass>
bool of_class(Run& run, const Value& value, const Arguments& arguments) {
  return bind_no_arguments(run, "this test", arguments) && all_of(text_of(run, value), kClass);
}

bool remainder_is(Run& run, const Value& value, const Value& divisor, std::int64_t rest) {
  const Value found = arithmetic(run, Arithmetic::kMod, value, divisor);
  return run.ok() && equal(found, rest);
}

template <std::int64_t kRest>
bool parity(Run& run, const Value& value, const Arguments& arguments) {
  return bind_no_arguments(run, "this test", arguments) &&
         remainder_is(run, value, std::int64_t{2}, kRest);
}

bool is_divisible(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "divisibleby", arguments, {"num"}, 1);
  return given && remainder_is(run, value, *(*given)[0], 0);
}

template <Comparison kComparison>
bool comparison(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "this test", arguments, {"other"}, 1);
  return given && compares(run, kComparison, value, *(*given)[0]);
}

bool is_same(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "sameas", arguments, {"other"}, 1);
  return given && value.same_object(*(*given)[0]);
}

constexpr auto kTests = std::to_array<TestRow>({
    {"!=", comparison<Comparison::kNe>},
    {"<", comparison<Comparison::kLt>},
    {"<=", comparison<Comparison::kLe>},
    {"==", comparison<Comparison::kEq>},
    {">", comparison<Comparison::kGt>},
    {">=", comparison<Comparison::kGe>},
    {"boolean", plain<is_boolean>},
    {"callable", plain<is_callable>},
    {"defined", plain<is_defined>},
    {"divisibleby", is_divisible},
    {"eq", comparison<Comparison::kEq>},
    {"equalto", comparison<Comparison::kEq>},
    {"escaped", plain<is_escaped>},
    {"even", parity<0>},
    {"false", plain<is_false>},
    {"float", plain<is_float>},
    {"ge", comparison<Comparison::kGe>},
    {"greaterthan", comparison<Comparison::kGt>},
    {"gt", comparison<Comparison::kGt>},
    {"in", comparison<Comparison::kIn>},
    {"integer", plain<is_integer>},
    {"iterable", plain<is_iterable>},
    {"le", comparison<Comparison::kLe>},
    {"lessthan", comparison<Comparison::kLt>},
    {"lower", of_class<Class::kLower>},
    {"lt", comparison<Comparison::kLt>},
    {"mapping", plain<is_mapping>},
    {"ne", comparison<Comparison::kNe>},
    {"none", plain<is_none>},
    {"number", plain<is_number>},
    {"odd", parity<1>},
    {"sameas", is_same},
    {"sequence", plain<is_sequence>},
    {"string", plain<is_string>},
    {"true", plain<is_true>},
    {"undefined", plain<is_undefined>},
    {"upper", of_class<Class::kUpper>},
});

}  // namespace

std::span<const TestRow> value_tests() { return kTests; }

}  // namespace tandem::jinja
