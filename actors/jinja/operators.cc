// Arithmetic, comparison, and how attributes and items are looked up. The order of the look-ups is
// Jinja's: `message.items` is the method even where the dict has the key, and `message['items']`
// is the item.
#include "actors/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "actors/jinja/formatting.h"
#include "actors/jinja/iteration.h"
#include "actors/jinja/loop.h"
#include "actors/jinja/methods.h"
#include "actors/jinja/python_text.h"

namespace tandem::jinja {
namespace {

constexpr const char* kTooLarge =
    "an integer has more than 64 bits, more than Tandem computes with";

const char* symbol(Arithmetic operation) {
  switch (operation) {
    case Arithmetic::kAdd:
      return "+";
    case Arithmetic::kSub:
      return "-";
    case Arithmetic::kMul:
      return "*";
    case Arithmetic::kDiv:
      return "/";
    case Arithmetic::kFloorDiv:
      return "//";
    case Arithmetic::kMod:
      return "%";
    case Arithmetic::kPow:
      return "**";
  }
  return "";
}

Value wrong_types(Run& run, const char* sign, const Value& left, const Value& right) {
  for (const Value* value : {&left, &right})
    if (value->is_undefined()) return run.fail(value->as_undefined().message());
  return run.fail(std::string("unsupported operand type(s) for ") + sign + ": '" + type_name(left) +
                  "' and '" + type_name(right) + "'");
}

Value int_power(Run& run, std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result))
      return run.fail(kTooLarge);
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return run.fail(kTooLarge);
  }
  return result;
}

double python_mod(double left, double right) {
  const double rest = std::fmod(left, right);
  if (rest == 0) return std::copysign(0.0, right);
  return (right < 0) != (rest < 0) ? rest + right : rest;
}

double python_floor_div(double left, double right) {
  const double quotient = (left - python_mod(left, right)) / right;
  if (quotient == 0) return std::copysign(0.0, left / right);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

Value of_floats(Run& run, Arithmetic operation, double left, double right) {
  const bool divides = operation == Arithmetic::kDiv || operation == Arithmetic::kFloorDiv ||
                       operation == Arithmetic::kMod;
  if (divides && right == 0) return run.fail("division by zero");
  switch (operation) {
    case Arithmetic::kAdd:
      return left + right;
    case Arithmetic::kSub:
      return left - right;
    case Arithmetic::kMul:
      return left * right;
    case Arithmetic::kDiv:
      return left / right;
    case Arithmetic::kFloorDiv:
      return python_floor_div(left, right);
    case Arithmetic::kMod:
      return python_mod(left, right);
    case Arithmetic::kPow:
      if (left == 0 && right < 0) return run.fail("0.0 cannot be raised to a negative power");
      if (left < 0 && std::isfinite(left) && right != std::floor(right))
        return run.fail("a complex number is no value of a template");
      return std::pow(left, right);
  }
  return {};
}

Value of_ints(Run& run, Arithmetic operation, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  bool overflow = false;
  const bool floors = operation == Arithmetic::kFloorDiv || operation == Arithmetic::kMod;
  if (floors && right == 0) return run.fail("integer division or modulo by zero");
  if (floors && right == -1) {  // the least integer has no counterpart
    if (operation == Arithmetic::kMod) return std::int64_t{0};
    return __builtin_sub_overflow(0, left, &result) ? run.fail(kTooLarge) : Value(result);
  }
  switch (operation) {
    case Arithmetic::kAdd:
      overflow = __builtin_add_overflow(left, right, &result);
      break;
    case Arithmetic::kSub:
      overflow = __builtin_sub_overflow(left, right, &result);
      break;
    case Arithmetic::kMul:
      overflow = __builtin_mul_overflow(left, right, &result);
      break;
    case Arithmetic::kDiv:
      return of_floats(run, operation, static_cast<double>(left), static_cast<double>(right));
    case Arithmetic::kFloorDiv:
      result = left / right - (left % right != 0 && (left < 0) != (right < 0) ? 1 : 0);
      break;
    case Arithmetic::kMod:
      result = left % right;
      if (result != 0 && (result < 0) != (right < 0)) result += right;
      break;
    case Arithmetic::kPow:
      if (right >= 0) return int_power(run, left, right);
      return of_floats(run, operation, static_cast<double>(left), static_cast<double>(right));
  }
  return overflow ? run.fail(kTooLarge) : Value(result);
}

Value repeated(Run& run, const Value& value, std::int64_t times) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  const std::size_t size =
      value.is_string() ? value.text().size() : value.as_sequence().items.size() * sizeof(Value);
  const bool fits = size == 0 || count <= run.limits().allocated_bytes / size;
  if (!run.charge(fits ? size * count : run.limits().allocated_bytes + 1)) return {};
  if (value.is_string()) {
    std::string text;
    text.reserve(size * count);
    for (std::size_t i = 0; i < count; ++i) text += value.text();
    return run.string(std::move(text), value.is_markup());
  }
  Values items;
  const Values& part = value.as_sequence().items;
  for (std::size_t i = 0; i < count && !part.empty(); ++i)
    items.insert(items.end(), part.begin(), part.end());
  return value.as_sequence().tuple ? run.tuple(std::move(items)) : run.list(std::move(items));
}

Value added(Run& run, const Value& left, const Value& right) {
  if (left.is_string() && right.is_string()) {
    const bool markup = left.is_markup() || right.is_markup();
    const auto part = [&](const Value& value) {
      return markup && !value.is_markup() ? escaped(value.text()) : value.text();
    };
    return run.charge(left.text().size()) ? run.string(part(left) + part(right), markup) : Value();
  }
  if (left.is_string() && !right.is_undefined())
    return run.fail(std::string("can only concatenate str (not \"") + type_name(right) +
                    "\") to str");
  if (!left.is(Type::kSequence) || !right.is(Type::kSequence) ||
      left.as_sequence().tuple != right.as_sequence().tuple)
    return wrong_types(run, "+", left, right);
  Values items = left.as_sequence().items;
  const Values& more = right.as_sequence().items;
  items.insert(items.end(), more.begin(), more.end());
  return left.as_sequence().tuple ? run.tuple(std::move(items)) : run.list(std::move(items));
}

bool multiplies(const Value& value) { return value.is_string() || value.is(Type::kSequence); }

// The name of a type as Jinja's messages about undefined attributes have it.
const char* described(const Value& object) {
  switch (object.type()) {
    case Type::kNone:
      return "None";
    case Type::kBool:
      return "bool object";
    case Type::kInt:
      return "int object";
    case Type::kFloat:
      return "float object";
    case Type::kString:
      return "str object";
    case Type::kSequence:
      return object.as_sequence().tuple ? "tuple object" : "list object";
    case Type::kDict:
      return "dict object";
    case Type::kNamespace:
      return "jinja2.utils.Namespace object";
    case Type::kLoop:
      return "jinja2.runtime.LoopContext object";
    default:
      return "object";
  }
}

Value no_attribute(const Value& object, std::string_view name) {
  return Undefined{.text = name, .owner = described(object), .kind = Undefined::Kind::kAttribute};
}

// Every object of Python has such attributes, which the sandbox hides.
bool is_internal(std::string_view name) {
  return name.size() > 4 && name.starts_with("__") && name.ends_with("__");
}

// str.format(), whose fields look up attributes and items by the rules of this file.
Value format_of(const Value& text) {
  const auto format = [](Run& run, const Value& self, const Arguments& arguments) {
    return brace_format(run, self, arguments, {get_attribute, get_item});
  };
  return std::make_shared<const Callable>(Callable{"format", format, text});
}

// An attribute in Python's sense; nothing where the object has none of that name.
std::optional<Value> own_attribute(Run& run, const Value& object, std::string_view name) {
  if (is_internal(name) || is_hidden_method(object, name))
    return run.undefined("access to attribute '" + std::string(name) + "' of '" +
                         type_name(object) + "' object is unsafe.");
  if (object.is(Type::kNamespace)) {
    const Value* const value = object.as_namespace().find(name);
    return value != nullptr ? std::optional(*value) : std::nullopt;
  }
  if (object.is(Type::kLoop)) return object.as_loop().attribute(run, object, name);
  if (object.is_string() && name == "format") return format_of(object);
  return bound_method(object, name);
}

// An item in Python's sense; nothing where the object has none, or no items at all.
std::optional<Value> own_item(Run& run, const Value& object, const Value& key) {
  if (object.is(Type::kDict)) {
    const Value* const value = hashable(key) ? object.as_dict().find(key) : nullptr;
    return value != nullptr ? std::optional(*value) : std::nullopt;
  }
  const bool indexed = object.is_string() || object.is(Type::kSequence) || object.is(Type::kRange);
  if (!indexed || (!key.is_int() && !key.is(Type::kBool))) return {};
  const std::int64_t size = *length(object);
  std::int64_t index = key.as_int();
  if (index < 0) index += size;
  if (index < 0 || index >= size) return {};
  const auto at = static_cast<std::size_t>(index);
  if (object.is(Type::kSequence)) return object.as_sequence().items[at];
  if (object.is(Type::kRange)) return Value(object.as_range().at(index));
  const Text& text = object.as_text();
  if (text.ascii()) return run.string(text.bytes.substr(at, 1), text.markup);
  run.step(1 + at / 64);
  const std::size_t begin = byte_of(text.bytes, at);
  return run.string(text.bytes.substr(begin, byte_of(text.bytes.substr(begin), 1)));
}

struct Bounds {
  std::int64_t start = 0, stop = 0, step = 1;
};

// Python's slice.indices(). Nothing after a failure.
std::optional<Bounds> bounds_of(Run& run, const Slice& slice, std::int64_t size) {
  for (const Value* part : {&slice.start, &slice.stop, &slice.step}) {
    if (part->is_none() || part->is_int() || part->is(Type::kBool)) continue;
    run.fail("slice indices must be integers or None");
    return {};
  }
  Bounds bounds{.step = slice.step.is_none() ? 1 : slice.step.as_int()};
  if (bounds.step == 0) {
    run.fail("slice step cannot be zero");
    return {};
  }
  bounds.step = std::max(bounds.step, -std::numeric_limits<std::int64_t>::max());
  const bool back = bounds.step < 0;
  const std::int64_t lowest = back ? -1 : 0, highest = back ? size - 1 : size;
  const auto place = [&](const Value& given, std::int64_t otherwise) {
    if (given.is_none()) return otherwise;
    const std::int64_t at = given.as_int() < 0 ? given.as_int() + size : given.as_int();
    return std::clamp(at, lowest, std::max(lowest, highest));
  };
  bounds.start = place(slice.start, back ? highest : lowest);
  bounds.stop = place(slice.stop, back ? lowest : highest);
  return bounds;
}

Value slice_of_text(Run& run, const Text& text, const Bounds& bounds) {
  const bool markup = text.markup;
  const std::int64_t size = Range{bounds.start, bounds.stop, bounds.step}.size();
  if (size == 0) return run.string({});
  if (bounds.step == 1) {
    const auto start = static_cast<std::size_t>(bounds.start);
    const auto count = static_cast<std::size_t>(size);
    if (text.ascii()) return run.string(text.bytes.substr(start, count), markup);
    run.step(1 + text.bytes.size() / 64);
    const std::string_view rest = std::string_view(text.bytes).substr(byte_of(text.bytes, start));
    return run.string(std::string(rest.substr(0, byte_of(rest, count))), markup);
  }
  std::vector<std::string_view> characters;
  if (!run.charge(text.bytes.size() + text.characters * sizeof(std::string_view))) return {};
  for (std::size_t at = 0; at < text.bytes.size();) {
    const std::size_t here = at;
    next_code_point(text.bytes, at);
    characters.push_back(std::string_view(text.bytes).substr(here, at - here));
  }
  std::string out;
  for (std::int64_t i = 0; i < size; ++i)
    out += characters[static_cast<std::size_t>(bounds.start + i * bounds.step)];
  return run.string(std::move(out), markup);
}

}  // namespace

Value arithmetic(Run& run, Arithmetic operation, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is(Type::kFloat) || right.is(Type::kFloat))
      return of_floats(run, operation, left.as_float(), right.as_float());
    return of_ints(run, operation, left.as_int(), right.as_int());
  }
  if (operation == Arithmetic::kAdd) return added(run, left, right);
  if (operation == Arithmetic::kMod && left.is_string()) return percent_format(run, left, right);
  if (operation == Arithmetic::kMul) {
    const auto counts = [](const Value& value) { return value.is_int() || value.is(Type::kBool); };
    if (multiplies(left) && counts(right)) return repeated(run, left, right.as_int());
    if (multiplies(right) && counts(left)) return repeated(run, right, left.as_int());
  }
  return wrong_types(run, symbol(operation), left, right);
}

Value negated(Run& run, const Value& value) {
  if (value.is(Type::kFloat)) return -value.as_float();
  if (value.is_number()) return arithmetic(run, Arithmetic::kSub, std::int64_t{0}, value);
  if (value.is_undefined()) return run.fail(value.as_undefined().message());
  return run.fail(std::string("bad operand type for unary -: '") + type_name(value) + "'");
}

Value unary_plus(Run& run, const Value& value) {
  if (value.is(Type::kFloat)) return value;
  if (value.is_number()) return value.as_int();
  if (value.is_undefined()) return run.fail(value.as_undefined().message());
  return run.fail(std::string("bad operand type for unary +: '") + type_name(value) + "'");
}

bool compares(Run& run, Comparison operation, const Value& left, const Value& right) {
  if (operation == Comparison::kIn) return contains(run, right, left);
  if (operation == Comparison::kNotIn) return !contains(run, right, left);
  if (!run.step(extent_of(left).items)) return false;
  if (operation == Comparison::kEq) return equal(left, right);
  if (operation == Comparison::kNe) return !equal(left, right);
  const auto order = compare(left, right);
  const bool less = operation == Comparison::kLt || operation == Comparison::kLe;
  if (!order) {
    for (const Value* value : {&left, &right})
      if (value->is_undefined()) return run.fail(value->as_undefined().message()), false;
    const bool strict = operation == Comparison::kLt || operation == Comparison::kGt;
    run.fail(std::string("'") + (less ? "<" : ">") + (strict ? "" : "=") +
             "' not supported between instances of '" + type_name(left) + "' and '" +
             type_name(right) + "'");
    return false;
  }
  const bool or_equal = operation == Comparison::kLe || operation == Comparison::kGe;
  return *order == (less ? Order::kLess : Order::kGreater) || (or_equal && *order == Order::kEqual);
}

bool contains(Run& run, const Value& container, const Value& item) {
  if (container.is_string()) {
    run.step(1 + container.text().size() / 256);
    if (item.is_string()) return container.text().find(item.text()) != std::string::npos;
    run.fail(std::string("'in <string>' requires string as left operand, not ") + type_name(item));
    return false;
  }
  if (container.is(Type::kDict) ||
      (container.is(Type::kView) && container.as_view().part == View::Part::kKeys)) {
    if (!hashable(item))
      return run.fail(std::string("unhashable type: '") + type_name(item) + "'"), false;
    const Dict& dict = container.is(Type::kDict) ? container.as_dict() : *container.as_view().dict;
    return dict.find(item) != nullptr;
  }
  if (!iterable(container)) {
    run.fail(std::string("argument of type '") + type_name(container) + "' is not iterable");
    return false;
  }
  Cursor cursor(run, container);
  while (const auto one = cursor.next()) {
    if (!run.step(extent_of(*one).items)) return false;
    if (equal(*one, item)) return true;
  }
  return false;
}

Value get_attribute(Run& run, const Value& object, std::string_view name) {
  if (object.is_undefined()) return run.fail(object.as_undefined().message());
  if (auto attribute = own_attribute(run, object, name)) return *std::move(attribute);
  if (object.is(Type::kDict))
    if (const Value* const value = object.as_dict().find_text(name)) return *value;
  return no_attribute(object, name);
}

Value get_item(Run& run, const Value& object, const Value& key) {
  if (object.is_undefined()) return run.fail(object.as_undefined().message());
  if (auto item = own_item(run, object, key)) return *std::move(item);
  if (!key.is_string())
    return run.undefined(std::string(described(object)) + " has no such element");
  const std::string_view name = run.keep(key.text());
  if (auto attribute = own_attribute(run, object, name)) return *std::move(attribute);
  return no_attribute(object, name);
}

Value get_slice(Run& run, const Value& object, const Slice& slice) {
  if (object.is_undefined()) return run.fail(object.as_undefined().message());
  const bool sliced = object.is_string() || object.is(Type::kSequence) || object.is(Type::kRange);
  // Jinja compiles a slice to Python's own, which raises where an index would be undefined.
  if (!sliced) return run.fail(std::string("'") + type_name(object) + "' object has no slices");
  const auto bounds = bounds_of(run, slice, *length(object));
  if (!bounds) return {};
  if (object.is_string()) return slice_of_text(run, object.as_text(), *bounds);
  const Range places{bounds->start, bounds->stop, bounds->step};
  Values items;
  if (!run.charge(static_cast<std::size_t>(places.size()) * sizeof(Value))) return {};
  for (std::int64_t i = 0; i < places.size(); ++i)
    items.push_back(*own_item(run, object, places.at(i)));
  const bool tuple = object.is(Type::kSequence) && object.as_sequence().tuple;
  return tuple ? run.tuple(std::move(items)) : run.list(std::move(items));
}

}  // namespace tandem::jinja
