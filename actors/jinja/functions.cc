#include "actors/jinja/functions.h"

#include <array>
#include <memory>
#include <string>

#include "actors/jinja/iteration.h"
#include "actors/jinja/printing.h"

namespace tandem::jinja {
namespace {

constexpr std::int64_t kRangeMax = 100'000;  // jinja2.sandbox.MAX_RANGE

Value range(Run& run, const Value&, const Arguments& arguments) {
  const Values& given = arguments.positional;
  if (given.empty() || given.size() > 3 || !arguments.named.empty())
    return run.fail("range() takes one to three integers");
  const auto part = [&](std::size_t i, std::int64_t otherwise) {
    if (i < given.size() && given[i].is_none())
      run.fail("'NoneType' object cannot be interpreted as an integer");
    return int_or(run, i < given.size() ? &given[i] : nullptr, otherwise);
  };
  Range made;
  made.start = given.size() > 1 ? part(0, 0) : 0;
  made.stop = part(given.size() > 1 ? 1 : 0, 0);
  made.step = part(2, 1);
  if (!run.ok()) return {};
  if (made.step == 0) return run.fail("range() arg 3 must not be zero");
  if (made.size() > kRangeMax)
    return run.fail("Range too big. The sandbox blocks ranges larger than " +
                    std::to_string(kRangeMax) + ".");
  return std::make_shared<const Range>(made);
}

// The pairs of a dict, or of a list of pairs, and the named arguments.
std::optional<Dict> dict_of(Run& run, std::string_view who, const Arguments& arguments) {
  Dict dict;
  if (arguments.positional.size() > 1) {
    run.fail(std::string(who) + " expected at most 1 argument");
    return {};
  }
  for (const Value& given : arguments.positional) {
    const bool pairs = !given.is(Type::kDict);
    const auto items = all_items(run, pairs ? given : run.view(given, View::Part::kItems));
    if (!items) return {};
    for (const Value& item : *items) {
      const auto pair = all_items(run, item);
      if (!pair) return {};
      if (pair->size() != 2 || !hashable((*pair)[0])) {
        run.fail(std::string(who) + " needs pairs of a key and a value");
        return {};
      }
      if (!(*pair)[0].is_string() && !run.step(dict.size())) return {};
      dict.set((*pair)[0], (*pair)[1]);
    }
  }
  for (const auto& [name, value] : arguments.named) dict.set(run.string(name), value);
  if (!run.ok()) return {};
  return dict;
}

Value make_dict(Run& run, const Value&, const Arguments& arguments) {
  auto dict = dict_of(run, "dict", arguments);
  return dict ? run.dict(*std::move(dict)) : Value();
}

Value make_namespace(Run& run, const Value&, const Arguments& arguments) {
  const auto attributes = dict_of(run, "namespace", arguments);
  if (!attributes) return {};
  Namespace* const made = run.keep(std::make_unique<Namespace>());
  for (const auto& [name, value] : attributes->items()) {
    if (!name.is_string()) continue;
    if (name.text().starts_with('_'))
      return run.fail("an attribute of a namespace may not begin with an underscore, as '" +
                      name.text() + "' does");
    made->set(name.text(), value);
  }
  return made;
}

Value raise_exception(Run& run, const Value&, const Arguments& arguments) {
  const auto given = bind_arguments(run, "raise_exception", arguments, {"message"}, 1);
  if (!given) return {};
  const std::string message = text_of(run, *(*given)[0]);
  return run.fail("the template refuses this conversation: " + message);
}

Value strftime_now(Run& run, const Value&, const Arguments& arguments) {
  const auto given = bind_arguments(run, "strftime_now", arguments, {"format"}, 1);
  if (!given) return {};
  const std::string form(text_or(run, "strftime_now", (*given)[0], ""));
  if (!run.ok()) return {};
  if (!run.now()) return run.fail("strftime_now() was called, and no date is set");
  constexpr std::size_t kFormMax = 200;
  if (form.size() > kFormMax) return run.fail("a format of a date with more than 200 bytes");
  char text[4096];
  return run.string(std::string(text, std::strftime(text, sizeof text, form.c_str(), &*run.now())));
}

struct FunctionRow {
  std::string_view name;
  Callable::Function function;
};
constexpr auto kFunctions = std::to_array<FunctionRow>({{"dict", make_dict},
                                                        {"namespace", make_namespace},
                                                        {"raise_exception", raise_exception},
                                                        {"range", range},
                                                        {"strftime_now", strftime_now}});

}  // namespace

Value find_function(std::string_view name) {
  for (const FunctionRow& row : kFunctions)
    if (row.name == name)
      return Value(std::make_shared<const Callable>(Callable{row.name, row.function}));
  return Undefined{};
}

}  // namespace tandem::jinja
