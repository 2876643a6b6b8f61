#include "actors/jinja/run.h"

#include <algorithm>

namespace tandem::jinja {

Run::Run(const Limits& limits, std::optional<std::tm> now) : limits_(limits), now_(now) {}

Value Run::fail(std::string message) {
  if (!failure_) failure_ = Failure{std::move(message), line};
  return Undefined{};
}

bool Run::step(std::uint64_t count) {
  steps_ += count;
  if (steps_ > limits_.steps)
    fail("the template takes more than " + std::to_string(limits_.steps) + " steps");
  return ok();
}

bool Run::charge(std::size_t bytes) {
  bytes_ = bytes_ + bytes < bytes_ ? limits_.allocated_bytes + 1 : bytes_ + bytes;
  if (bytes_ > limits_.allocated_bytes)
    fail("the template makes more than " + std::to_string(limits_.allocated_bytes >> 20) +
         " MiB of values");
  return ok();
}

Run::Level::Level(Run& run) : run_(run) {
  if (++run.nesting_ > run.limits_.nesting)
    run.fail("the template is nested more than " + std::to_string(run.limits_.nesting) +
             " levels deep, in itself or by macros that call one another");
}

Value Run::string(std::string text, bool markup) {
  if (!charge(text.size() + sizeof(Text))) return {};
  return std::make_shared<const Text>(std::move(text), markup);
}

namespace {

// Whether a value of this extent may be made (JV-1).
bool fits(Run& run, const Extent& extent) {
  if (extent.nesting > kValueNestingMax)
    run.fail("a value is nested more than " + std::to_string(kValueNestingMax) + " levels deep");
  else if (extent.items > kValueItemsMax)
    run.fail("a value has more than " + std::to_string(kValueItemsMax) + " items within it");
  return run.ok();
}

Value sequence(Run& run, Values items, bool tuple) {
  const Extent extent = extent_of(std::span<const Value>(items));
  if (!fits(run, extent) || !run.charge(sizeof(Sequence) + items.size() * sizeof(Value))) return {};
  return std::make_shared<const Sequence>(Sequence{std::move(items), tuple, extent});
}

}  // namespace

Value Run::list(Values items) { return sequence(*this, std::move(items), false); }
Value Run::tuple(Values items) { return sequence(*this, std::move(items), true); }

Value Run::dict(Dict dict) {
  const std::size_t bytes = sizeof(Dict) + dict.size() * 4 * sizeof(Value);
  if (!fits(*this, dict.extent()) || !charge(bytes)) return {};
  return std::make_shared<const Dict>(std::move(dict));
}

Value Run::iterator(Values items, std::string failure) {
  const Extent extent = extent_of(std::span<const Value>(items));
  if (!fits(*this, extent) || !charge(sizeof(Iterator) + items.size() * sizeof(Value))) return {};
  return std::make_shared<Iterator>(Iterator{
      .items = std::move(items), .next = 0, .failure = std::move(failure), .extent = extent});
}

Value Run::view(const Value& dict, View::Part part) {
  if (!charge(sizeof(View))) return {};
  return std::make_shared<const View>(View{dict.dict_pointer(), part});
}

Value Run::undefined(std::string message) {
  return Undefined{.text = keep(std::move(message)), .kind = Undefined::Kind::kMessage};
}

std::string_view Run::keep(std::string text) {
  if (!charge(text.size() + sizeof text)) return {};
  return texts_.emplace_back(std::move(text));
}

bool bind_arguments(Run& run, std::string_view who, const Arguments& arguments,
                    std::span<const std::string_view> names, std::size_t required,
                    std::span<const Value*> values) {
  const std::string called(who);
  if (arguments.positional.size() > names.size()) {
    run.fail(called + "() takes at most " + std::to_string(names.size()) + " arguments, and has " +
             std::to_string(arguments.positional.size()));
    return false;
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i)
    values[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::ranges::find(names, name);
    const auto at = static_cast<std::size_t>(found - names.begin());
    if (found == names.end() || values[at] != nullptr) {
      run.fail(called +
               (found == names.end() ? "() got an unexpected keyword argument '"
                                     : "() got multiple values for argument '") +
               name + "'");
      return false;
    }
    values[at] = &value;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (values[i] == nullptr) {
      run.fail(called + "() missing the argument '" + std::string(names[i]) + "'");
      return false;
    }
  return true;
}

bool bind_no_arguments(Run& run, std::string_view who, const Arguments& arguments) {
  if (arguments.positional.empty() && arguments.named.empty()) return true;
  run.fail(std::string(who) + " takes no arguments");
  return false;
}

std::int64_t int_or(Run& run, const Value* value, std::int64_t otherwise) {
  if (value == nullptr || value->is_none()) return otherwise;
  if (value->is_int() || value->is(Type::kBool)) return value->as_int();
  run.fail(value->is_undefined() ? value->as_undefined().message()
                                 : std::string("'") + type_name(*value) +
                                       "' object cannot be interpreted as an integer");
  return otherwise;
}

std::string_view text_or(Run& run, std::string_view who, const Value* value,
                         std::string_view otherwise) {
  if (value == nullptr) return otherwise;
  if (value->is_string()) return value->text();
  run.fail(std::string(who) + "() needs a str, not '" + type_name(*value) + "'");
  return otherwise;
}

}  // namespace tandem::jinja
