// The tables by which filters and tests are found, and those of them that look into the tables
// themselves: `map` applies a filter to each item, `select` and its likes a test.
#include "actors/jinja/builtins.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "actors/jinja/attributes.h"
#include "actors/jinja/item_filters.h"
#include "actors/jinja/iteration.h"
#include "actors/jinja/text_filters.h"
#include "actors/jinja/value_tests.h"

namespace tandem::jinja {
namespace {

// The items that `compute` makes of those of `value`; nothing: it leaves one out.
template <class Compute>
Value generated(Run& run, const Value& value, const Compute& compute) {
  Cursor cursor(run, value);
  Values items;
  while (const auto item = cursor.next()) {
    std::optional<Value> made = compute(*item);
    if (!run.ok()) break;
    if (made) items.push_back(*std::move(made));
  }
  return run.ok() ? run.iterator(std::move(items)) : Value();
}

Value map_filter(Run& run, const Value& value, const Arguments& arguments) {
  if (arguments.positional.empty()) {
    const auto given = bind_arguments(run, "map", arguments, {"attribute", "default"});
    if (!given) return {};
    if ((*given)[0] == nullptr) return run.fail("map requires a filter argument");
    const AttributePath path(run, *(*given)[0]);
    return generated(run, value, [&](const Value& item) -> std::optional<Value> {
      return path.of(run, item, (*given)[1]);
    });
  }
  const std::string_view name = text_or(run, "map", arguments.positional.data(), "");
  const Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()},
                       arguments.named};
  return generated(run, value, [&](const Value& item) -> std::optional<Value> {
    return apply_filter(run, name, item, rest);
  });
}

template <bool kKeep, bool kAttribute>
Value select(Run& run, const Value& value, const Arguments& arguments) {
  if (!value.is(Type::kIterator) && !truthy(value)) return run.iterator({});
  const Values& given = arguments.positional;
  std::size_t at = 0;
  if (kAttribute && given.empty()) return run.fail("Missing parameter for attribute name");
  const AttributePath path(run, kAttribute ? given[at++] : Value());
  const Value* const test = at < given.size() ? &given[at++] : nullptr;
  const std::string_view name = text_or(run, "select", test, "");
  const Arguments rest{{given.begin() + static_cast<std::ptrdiff_t>(at), given.end()},
                       arguments.named};
  return generated(run, value, [&](const Value& item) -> std::optional<Value> {
    const Value found = path.of(run, item);
    if (!run.ok()) return {};
    const bool holds = test != nullptr ? apply_test(run, name, found, rest) : truthy(found);
    return holds == kKeep ? std::optional(item) : std::nullopt;
  });
}

bool is_filter(Run& run, const Value& value, const Arguments& arguments) {
  return bind_no_arguments(run, "filter", arguments) && value.is_string() &&
         find_filter(value.text()) != nullptr;
}

bool is_test(Run& run, const Value& value, const Arguments& arguments) {
  return bind_no_arguments(run, "test", arguments) && value.is_string() &&
         find_test(value.text()) != nullptr;
}

constexpr FilterRow kSelections[] = {
    {"map", map_filter},
    {"reject", select<false, false>},
    {"rejectattr", select<false, true>},
    {"select", select<true, false>},
    {"selectattr", select<true, true>},
};
constexpr TestRow kTableTests[] = {{"filter", is_filter}, {"test", is_test}};

}  // namespace

Filter find_filter(std::string_view name) {
  for (const auto rows : {text_filters(), item_filters(), std::span<const FilterRow>(kSelections)})
    if (const auto found = std::ranges::find(rows, name, &FilterRow::name); found != rows.end())
      return found->filter;
  return nullptr;
}

Test find_test(std::string_view name) {
  for (const auto rows : {value_tests(), std::span<const TestRow>(kTableTests)})
    if (const auto found = std::ranges::find(rows, name, &TestRow::name); found != rows.end())
      return found->test;
  return nullptr;
}

Value apply_filter(Run& run, std::string_view name, const Value& value,
                   const Arguments& arguments) {
  const Filter filter = find_filter(name);
  if (filter == nullptr) return run.fail("No filter named '" + std::string(name) + "'.");
  const Run::Level level(run);
  return run.step() ? filter(run, value, arguments) : Value();
}

bool apply_test(Run& run, std::string_view name, const Value& value, const Arguments& arguments) {
  const Test test = find_test(name);
  if (test == nullptr) run.fail("No test named '" + std::string(name) + "'.");
  return test != nullptr && run.step() && test(run, value, arguments);
}

}  // namespace tandem::jinja
