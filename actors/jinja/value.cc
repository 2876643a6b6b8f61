#include "actors/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem::jinja {
namespace {

// Dicts with more pairs than this have an index of their strings.
constexpr std::size_t kIndexedFrom = 12;

bool equal_sequences(const Sequence& left, const Sequence& right) {
  return left.tuple == right.tuple && std::ranges::equal(left.items, right.items, equal);
}

bool equal_dicts(const Dict& left, const Dict& right) {
  if (left.size() != right.size()) return false;
  return std::ranges::all_of(left.items(), [&](const auto& pair) {
    const Value* const other = right.find(pair.first);
    return other != nullptr && equal(pair.second, *other);
  });
}

bool equal_ranges(const Range& left, const Range& right) {
  const std::int64_t size = left.size();
  if (size != right.size()) return false;
  return size == 0 || (left.start == right.start && (size == 1 || left.step == right.step));
}

template <class T>
Order order_of(const T& left, const T& right) {
  if (left < right) return Order::kLess;
  if (right < left) return Order::kGreater;
  return left == right ? Order::kEqual : Order::kUnordered;
}

Order compare_numbers(const Value& left, const Value& right) {
  if (!left.is(Type::kFloat) && !right.is(Type::kFloat))
    return order_of(left.as_int(), right.as_int());
  // A long double has all bits of both an int64 and a double on x86; elsewhere it has a double's.
  const auto wide = [](const Value& value) -> long double {
    return value.is(Type::kFloat) ? static_cast<long double>(value.as_float())
                                  : static_cast<long double>(value.as_int());
  };
  return order_of(wide(left), wide(right));
}

std::optional<Order> compare_sequences(const Sequence& left, const Sequence& right) {
  if (left.tuple != right.tuple) return std::nullopt;
  const std::size_t both = std::min(left.items.size(), right.items.size());
  for (std::size_t i = 0; i < both; ++i)
    if (!equal(left.items[i], right.items[i])) return compare(left.items[i], right.items[i]);
  return order_of(left.items.size(), right.items.size());
}

}  // namespace

std::string Undefined::message() const {
  if (kind == Kind::kMessage) return std::string(text);
  if (kind == Kind::kName) return "'" + std::string(text) + "' is undefined";
  return "'" + std::string(owner) + "' has no attribute '" + std::string(text) + "'";
}

Text::Text(std::string text, bool is_markup) : bytes(std::move(text)), markup(is_markup) {
  characters = static_cast<std::size_t>(
      std::ranges::count_if(bytes, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::int64_t Range::size() const {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  // The two may lie 2^64 apart, so that only their unsigned difference is exact.
  const auto distance = step > 0
                            ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                            : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
  const auto stride = step > 0 ? static_cast<std::uint64_t>(step)
                               : std::uint64_t{0} - static_cast<std::uint64_t>(step);
  const std::uint64_t size = (distance - 1) / stride + 1;
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(size, std::numeric_limits<std::int64_t>::max()));
}

Value::Value(std::string text) : state_(std::make_shared<const Text>(std::move(text))) {}

std::int64_t Value::as_int() const {
  if (const bool* const truth = std::get_if<bool>(&state_)) return *truth ? 1 : 0;
  return std::get<std::int64_t>(state_);
}

double Value::as_float() const {
  if (const double* const number = std::get_if<double>(&state_)) return *number;
  return static_cast<double>(as_int());
}

bool Value::same_object(const Value& other) const {
  if (type() != other.type()) return false;
  return std::visit(
      [&]<class T>(const T& mine) {
        const T& theirs = std::get<T>(other.state_);
        if constexpr (std::is_same_v<T, None>)
          return true;
        else if constexpr (std::is_same_v<T, Undefined>)
          return false;
        else
          return mine == theirs;
      },
      state_);
}

std::size_t Dict::place_of(std::string_view key) const {
  if (!index_.empty()) {
    const auto found = index_.find(key);
    return found == index_.end() ? items_.size() : found->second;
  }
  for (std::size_t i = 0; i < items_.size(); ++i)
    if (items_[i].first.is_string() && items_[i].first.text() == key) return i;
  return items_.size();
}

std::size_t Dict::place_of(const Value& key) const {
  if (key.is_string()) return place_of(std::string_view(key.text()));
  const auto found =
      std::ranges::find_if(items_, [&](auto& pair) { return equal(pair.first, key); });
  return static_cast<std::size_t>(found - items_.begin());
}

const Value* Dict::find_text(std::string_view key) const {
  const std::size_t at = place_of(key);
  return at < items_.size() ? &items_[at].second : nullptr;
}

const Value* Dict::find(const Value& key) const {
  const std::size_t at = place_of(key);
  return at < items_.size() ? &items_[at].second : nullptr;
}

void Dict::set(Value key, Value value) {
  const Extent of_key = extent_of(key), of_value = extent_of(value);
  extent_.nesting = std::max({extent_.nesting, of_key.nesting + 1, of_value.nesting + 1});
  extent_.items += of_key.items + of_value.items;
  if (const std::size_t at = place_of(key); at < items_.size()) {
    items_[at].second = std::move(value);
    return;
  }
  items_.emplace_back(std::move(key), std::move(value));
  if (items_.size() < kIndexedFrom) return;
  // The views stay valid: a string is shared, and lies where it was made.
  const std::size_t from = index_.empty() ? 0 : items_.size() - 1;
  for (std::size_t i = from; i < items_.size(); ++i)
    if (items_[i].first.is_string()) index_.emplace(items_[i].first.text(), i);
}

Value* Namespace::find(std::string_view name) {
  const auto found = std::ranges::find(attributes, name, [](auto& one) { return one.first; });
  return found == attributes.end() ? nullptr : &found->second;
}

void Namespace::set(std::string_view name, Value value) {
  if (Value* const present = find(name))
    *present = std::move(value);
  else
    attributes.emplace_back(name, std::move(value));
}

const char* type_name(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
      return "Undefined";
    case Type::kNone:
      return "NoneType";
    case Type::kBool:
      return "bool";
    case Type::kInt:
      return "int";
    case Type::kFloat:
      return "float";
    case Type::kString:
      return "str";
    case Type::kSequence:
      return value.as_sequence().tuple ? "tuple" : "list";
    case Type::kDict:
      return "dict";
    case Type::kRange:
      return "range";
    case Type::kView:
      switch (value.as_view().part) {
        case View::Part::kKeys:
          return "dict_keys";
        case View::Part::kValues:
          return "dict_values";
        case View::Part::kItems:
          return "dict_items";
      }
      break;
    case Type::kIterator:
      return "generator";
    case Type::kNamespace:
      return "Namespace";
    case Type::kLoop:
      return "LoopContext";
    case Type::kMacro:
      return "Macro";
    case Type::kCallable:
      return "builtin_function_or_method";
  }
  return "object";
}

Extent extent_of(const Value& value) {
  if (value.is(Type::kSequence)) return value.as_sequence().extent;
  if (value.is(Type::kDict)) return value.as_dict().extent();
  if (value.is(Type::kIterator)) return value.as_iterator().extent;
  if (value.is(Type::kView) || value.is(Type::kCallable)) {
    const Extent inner = value.is(Type::kView) ? value.as_view().dict->extent()
                                               : extent_of(value.as_callable().self);
    return {inner.nesting + 1, inner.items + 1};
  }
  return {};
}

Extent extent_of(std::span<const Value> items) {
  Extent whole{1, 1};
  for (const Value& item : items) {
    const Extent one = extent_of(item);
    whole.nesting = std::max(whole.nesting, one.nesting + 1);
    whole.items += one.items;
  }
  return whole;
}

bool truthy(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
    case Type::kNone:
      return false;
    case Type::kBool:
      return value.as_bool();
    case Type::kInt:
      return value.as_int() != 0;
    case Type::kFloat:
      return value.as_float() != 0;
    default:
      return length(value).value_or(1) != 0;
  }
}

bool equal(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == Order::kEqual;
  if (left.type() != right.type()) return false;
  switch (left.type()) {
    case Type::kUndefined:
    case Type::kNone:
      return true;
    case Type::kString:
      return left.text() == right.text();
    case Type::kSequence:
      return equal_sequences(left.as_sequence(), right.as_sequence());
    case Type::kDict:
      return equal_dicts(left.as_dict(), right.as_dict());
    case Type::kRange:
      return equal_ranges(left.as_range(), right.as_range());
    default:
      return left.same_object(right);
  }
}

std::optional<Order> compare(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return compare_numbers(left, right);
  // The order of UTF-8's bytes is that of code points.
  if (left.is_string() && right.is_string()) return order_of(left.text(), right.text());
  if (left.is(Type::kSequence) && right.is(Type::kSequence))
    return compare_sequences(left.as_sequence(), right.as_sequence());
  return std::nullopt;
}

bool hashable(const Value& value) {
  if (value.is(Type::kDict)) return false;
  if (!value.is(Type::kSequence)) return true;
  const Sequence& sequence = value.as_sequence();
  return sequence.tuple && std::ranges::all_of(sequence.items, hashable);
}

std::optional<std::int64_t> length(const Value& value) {
  const auto count = [](std::size_t size) { return static_cast<std::int64_t>(size); };
  switch (value.type()) {
    case Type::kUndefined:
      return 0;
    case Type::kString:
      return count(value.as_text().characters);
    case Type::kSequence:
      return count(value.as_sequence().items.size());
    case Type::kDict:
      return count(value.as_dict().size());
    case Type::kRange:
      return value.as_range().size();
    case Type::kView:
      return count(value.as_view().dict->size());
    default:
      return std::nullopt;
  }
}

}  // namespace tandem::jinja
