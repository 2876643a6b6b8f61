// The values of a template: those of Python that JSON and Jinja know. A value is small, and is
// copied freely: strings, lists and dicts are shared and never change once they are made, as in
// transformers' ImmutableSandboxedEnvironment. Not here: how values print (printing.h), what
// operators and methods do with them (operators.h, methods.h).
//
//   JV-1  A list, tuple or dict is at most kValueNestingMax levels deep and holds at most
//         kValueItemsMax items, those of its items included, so that recursion over a value is
//         bounded; run.h makes them and refuses larger ones.
//   JV-2  A value that has an identity and can change (a namespace, a loop, a macro) is owned by
//         the run (run.h), and a Value only refers to it: values form no circles of ownership.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace tandem::jinja {

class Dict;
class Run;
class Value;
struct Callable;
struct Iterator;
struct Loop;
struct MacroObject;
struct Namespace;
struct Sequence;
struct View;

inline constexpr std::size_t kValueNestingMax = 100;
inline constexpr std::size_t kValueItemsMax = 4'000'000;

// How deep a value is, and how many values a walk over it meets. A plain value is {0, 1}.
struct Extent {
  std::size_t nesting = 0, items = 1;
};

// What Jinja calls Undefined: the result of a name or an attribute that is not there. It prints as
// nothing and is false; most other uses of it are errors, which say what was not there.
struct Undefined {
  enum class Kind : std::uint8_t {
    kName,       // text is the variable's name
    kAttribute,  // text is the attribute's name, of a value of the type `owner`
    kMessage     // text is the whole message
  };
  std::string_view text;  // of the template or of the run
  const char* owner = "";
  Kind kind = Kind::kName;

  std::string message() const;
};

struct Text {
  explicit Text(std::string bytes, bool markup = false);
  std::string bytes;       // UTF-8
  std::size_t characters;  // code points
  // What the filters `safe` and `escape` give: text that is added to it is escaped for HTML.
  bool markup;
  bool ascii() const { return characters == bytes.size(); }
};

struct Range {
  std::int64_t start = 0, stop = 0, step = 1;
  std::int64_t size() const;
  std::int64_t at(std::int64_t index) const { return start + index * step; }
};

struct None {};

enum class Type : std::uint8_t {  // in the order of Value::State
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kSequence,  // a list or a tuple
  kDict,
  kRange,
  kView,      // dict.keys(), values(), items()
  kIterator,  // what generators and reversed() give: read once
  kNamespace,
  kLoop,
  kMacro,
  kCallable,  // a method that is bound to its value, or a function
};

class Value {
 public:
  Value() : state_(None{}) {}
  Value(Undefined undefined) : state_(undefined) {}
  Value(bool value) : state_(value) {}
  Value(std::int64_t value) : state_(value) {}
  Value(double value) : state_(value) {}
  Value(std::string text);
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(std::shared_ptr<const Text> text) : state_(std::move(text)) {}
  Value(std::shared_ptr<const Sequence> list) : state_(std::move(list)) {}
  Value(std::shared_ptr<const Dict> dict) : state_(std::move(dict)) {}
  Value(std::shared_ptr<const Range> range) : state_(std::move(range)) {}
  Value(std::shared_ptr<const View> view) : state_(std::move(view)) {}
  Value(std::shared_ptr<Iterator> iterator) : state_(std::move(iterator)) {}
  Value(std::shared_ptr<const Callable> callable) : state_(std::move(callable)) {}
  Value(Namespace* space) : state_(space) {}
  Value(Loop* loop) : state_(loop) {}
  Value(const MacroObject* macro) : state_(macro) {}

  Type type() const { return static_cast<Type>(state_.index()); }
  bool is(Type type) const { return this->type() == type; }
  bool is_undefined() const { return is(Type::kUndefined); }
  bool is_none() const { return is(Type::kNone); }
  bool is_string() const { return is(Type::kString); }
  // bool, int or float: what Python counts as a number.
  bool is_number() const { return is(Type::kBool) || is_int() || is(Type::kFloat); }
  bool is_int() const { return is(Type::kInt); }

  // Each is for a value of its type; as_int() also takes a bool.
  const Undefined& as_undefined() const { return std::get<Undefined>(state_); }
  bool as_bool() const { return std::get<bool>(state_); }
  std::int64_t as_int() const;
  double as_float() const;  // of any number
  const Text& as_text() const { return *std::get<std::shared_ptr<const Text>>(state_); }
  const std::string& text() const { return as_text().bytes; }
  bool is_markup() const { return is_string() && as_text().markup; }
  const Sequence& as_sequence() const { return *std::get<std::shared_ptr<const Sequence>>(state_); }
  const Dict& as_dict() const { return *std::get<std::shared_ptr<const Dict>>(state_); }
  const std::shared_ptr<const Dict>& dict_pointer() const {
    return std::get<std::shared_ptr<const Dict>>(state_);
  }
  const Range& as_range() const { return *std::get<std::shared_ptr<const Range>>(state_); }
  const View& as_view() const { return *std::get<std::shared_ptr<const View>>(state_); }
  Iterator& as_iterator() const { return *std::get<std::shared_ptr<Iterator>>(state_); }
  Namespace& as_namespace() const { return *std::get<Namespace*>(state_); }
  Loop& as_loop() const { return *std::get<Loop*>(state_); }
  const MacroObject& as_macro() const { return *std::get<const MacroObject*>(state_); }
  const Callable& as_callable() const { return *std::get<std::shared_ptr<const Callable>>(state_); }
  // Whether both are one object, as Python's `is` says.
  bool same_object(const Value& other) const;

 private:
  std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const Text>,
               std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>,
               std::shared_ptr<const Range>, std::shared_ptr<const View>, std::shared_ptr<Iterator>,
               Namespace*, Loop*, const MacroObject*, std::shared_ptr<const Callable>>
      state_;
};

using Values = std::vector<Value>;

struct Sequence {
  Values items;
  bool tuple = false;
  Extent extent = {};
};

// A dict: pairs in the order in which their keys first came.
class Dict {
 public:
  const std::vector<std::pair<Value, Value>>& items() const { return items_; }
  std::size_t size() const { return items_.size(); }
  const Extent& extent() const { return extent_; }
  // The value of a key, or nullptr. The key must be hashable.
  const Value* find(const Value& key) const;
  const Value* find_text(std::string_view key) const;
  void set(Value key, Value value);

 private:
  // The places of keys in items_; items_.size(): there is no such key.
  std::size_t place_of(std::string_view key) const;
  std::size_t place_of(const Value& key) const;
  std::vector<std::pair<Value, Value>> items_;
  std::unordered_map<std::string_view, std::size_t> index_;  // of the strings, in larger dicts
  Extent extent_ = {1, 1};
};

struct View {
  enum class Part : std::uint8_t { kKeys, kValues, kItems };
  std::shared_ptr<const Dict> dict;
  Part part = Part::kKeys;
};

// The items that are left to read. Where `failure` is not empty, reading past the last one is that
// error: items are computed when the iterator is made, and Python would compute them when read.
struct Iterator {
  Values items;
  std::size_t next = 0;
  std::string failure = {};
  Extent extent = {};
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
  Value* find(std::string_view name);
  void set(std::string_view name, Value value);
};

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

// A function that a template may call; `self` is its value where it is a method.
struct Callable {
  using Function = Value (*)(Run& run, const Value& self, const Arguments& arguments);
  std::string_view name;
  Function function = nullptr;
  Value self = {};
};

// "str", "list", "Undefined": the name of the Python type.
const char* type_name(const Value& value);
Extent extent_of(const Value& value);
Extent extent_of(std::span<const Value> items);  // of a list of them
bool truthy(const Value& value);
// Python's ==. Numbers of all types compare by value, lists and dicts by their items.
bool equal(const Value& left, const Value& right);
// Python's order of two values; nothing where it has none (a TypeError), or where a NaN is in it.
enum class Order : std::uint8_t { kLess, kEqual, kGreater, kUnordered };
std::optional<Order> compare(const Value& left, const Value& right);
bool hashable(const Value& value);
// The number of items, where Python's len() gives one; of a string, its code points.
std::optional<std::int64_t> length(const Value& value);

}  // namespace tandem::jinja
