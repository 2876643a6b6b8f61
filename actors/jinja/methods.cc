// One function for each method, and a table for each type. Methods that Python has and no template
// is known to use (encode, translate, expandtabs, …) are left out: calling one is an error that
// names it.
#include "actors/jinja/methods.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "actors/jinja/iteration.h"
#include "actors/jinja/python_text.h"
#include "actors/jinja/run.h"

namespace tandem::jinja {
namespace {

struct Method {
  std::string_view name;
  Callable::Function function;
};

Value text_list(Run& run, const std::vector<std::string_view>& parts, bool markup) {
  Values items;
  if (!run.charge(parts.size() * sizeof(Value))) return {};
  for (const std::string_view part : parts) {
    if (!run.ok()) return {};
    items.push_back(run.string(std::string(part), markup));
  }
  return run.list(std::move(items));
}

// Counts a split of a large text before its parts are listed; small ones fit by far.
bool charge_parts(Run& run, std::size_t bytes) {
  constexpr std::size_t kSmall = 1 << 20;
  return run.step(1 + bytes / 64) &&
         (bytes <= kSmall || run.charge(bytes * sizeof(std::string_view)));
}

// A text argument that may be absent or None. Fails for another type.
bool optional_text(Run& run, const Value* value, std::string_view who,
                   std::optional<std::string_view>& text) {
  if (value == nullptr || value->is_none()) return true;
  text = text_or(run, who, value, "");
  return run.ok();
}

template <Side kSide>
Value strip_method(Run& run, const Value& self, const Arguments& arguments) {
  const auto given = bind_arguments(run, "strip", arguments, {"chars"});
  std::optional<std::string_view> chars;
  if (!given || !optional_text(run, (*given)[0], "strip", chars)) return {};
  run.step(1 + self.text().size() * (chars ? chars->size() : 1) / 256);
  return run.string(std::string(strip(self.text(), chars, kSide)), self.is_markup());
}

template <auto kSplit>
Value split_method(Run& run, const Value& self, const Arguments& arguments) {
  const auto given = bind_arguments(run, "split", arguments, {"sep", "maxsplit"});
  std::optional<std::string_view> separator;
  if (!given || !optional_text(run, (*given)[0], "split", separator)) return {};
  const std::int64_t cuts = int_or(run, (*given)[1], -1);
  if (separator && separator->empty()) return run.fail("empty separator");
  if (!run.ok() || !charge_parts(run, self.text().size())) return {};
  return text_list(run, kSplit(self.text(), separator, cuts), self.is_markup());
}

Value splitlines(Run& run, const Value& self, const Arguments& arguments) {
  const auto given = bind_arguments(run, "splitlines", arguments, {"keepends"});
  if (!given || !charge_parts(run, self.text().size())) return {};
  const bool keep_ends = (*given)[0] != nullptr && truthy(*(*given)[0]);
  return text_list(run, split_lines(self.text(), keep_ends), self.is_markup());
}

// startswith and endswith, of one text or any of a tuple, within [start, end).
template <bool kStart>
Value with_method(Run& run, const Value& self, const Arguments& arguments) {
  constexpr const char* kName = kStart ? "startswith" : "endswith";
  const auto given = bind_arguments(run, kName, arguments, {"prefix", "start", "end"}, 1);
  if (!given) return {};
  std::string_view text = self.text();
  if ((*given)[1] != nullptr || (*given)[2] != nullptr) {
    const std::int64_t size = *length(self);
    const auto place = [&](const Value* value, std::int64_t otherwise) {
      const std::int64_t at = int_or(run, value, otherwise);
      return static_cast<std::size_t>(std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size));
    };
    const std::size_t start = place((*given)[1], 0), end = place((*given)[2], size);
    const std::size_t begin = byte_of(text, start);
    text = end < start ? std::string_view() : text.substr(begin, byte_of(text, end) - begin);
  }
  const auto matches = [&](const Value& part) {
    const std::string_view with = text_or(run, kName, &part, "");
    return kStart ? text.starts_with(with) : text.ends_with(with);
  };
  const Value& part = *(*given)[0];
  if (part.is(Type::kSequence) && part.as_sequence().tuple)
    return std::ranges::any_of(part.as_sequence().items, matches);
  return matches(part);
}

Value replace_method(Run& run, const Value& self, const Arguments& arguments) {
  const auto given = bind_arguments(run, "replace", arguments, {"old", "new", "count"}, 2);
  if (!given) return {};
  const std::string_view from = text_or(run, "replace", (*given)[0], "");
  std::string to(text_or(run, "replace", (*given)[1], ""));
  if (self.is_markup() && !(*given)[1]->is_markup()) to = escaped(to);
  const std::int64_t count = int_or(run, (*given)[2], -1);
  if (!run.ok() || !run.step(1 + self.text().size() / 64)) return {};
  auto text = replace(self.text(), from, to, count, run.limits().allocated_bytes);
  if (!text) return run.charge(run.limits().allocated_bytes + 1), Value();
  return run.string(*std::move(text), self.is_markup());
}

template <auto kMap>
Value map_method(Run& run, const Value& self, const Arguments& arguments) {
  if (!bind_no_arguments(run, "a method of str", arguments)) return {};
  return run.step(1 + self.text().size() / 64) ? run.string(kMap(self.text()), self.is_markup())
                                               : Value();
}

template <Class kClass>
Value class_method(Run& run, const Value& self, const Arguments& arguments) {
  if (!bind_no_arguments(run, "a method of str", arguments)) return {};
  return all_of(self.text(), kClass);
}

Value join_method(Run& run, const Value& self, const Arguments& arguments) {
  const auto given = bind_arguments(run, "join", arguments, {"iterable"}, 1);
  if (!given) return {};
  const auto items = all_items(run, *(*given)[0]);
  if (!items) return {};
  std::string text;
  for (std::size_t i = 0; i < items->size(); ++i) {
    if (!(*items)[i].is_string())
      return run.fail("sequence item " + std::to_string(i) + ": expected str instance, " +
                      type_name((*items)[i]) + " found");
    if (!run.charge(self.text().size() + (*items)[i].text().size())) return {};
    if (i > 0) text += self.text();
    const bool escapes = self.is_markup() && !(*items)[i].is_markup();
    text += escapes ? escaped((*items)[i].text()) : (*items)[i].text();
  }
  return run.string(std::move(text), self.is_markup());
}

template <bool kFromRight, bool kFails>
Value find_method(Run& run, const Value& self, const Arguments& arguments) {
  const auto given = bind_arguments(run, "find", arguments, {"sub", "start"}, 1);
  if (!given) return {};
  const std::string_view part = text_or(run, "find", (*given)[0], "");
  std::int64_t start = int_or(run, (*given)[1], 0);
  if (!run.ok() || !run.step(1 + self.text().size() / 64)) return {};
  if (start < 0) start = std::max<std::int64_t>(start + *length(self), 0);
  const std::string_view text = self.text();
  std::size_t found = std::string_view::npos;
  if (start <= *length(self)) {
    const std::size_t begin = byte_of(text, static_cast<std::size_t>(start));
    found = kFromRight ? text.rfind(part) : text.find(part, begin);
    if (kFromRight && found != text.npos && found < begin) found = text.npos;
  }
  if (found != text.npos) return static_cast<std::int64_t>(count_characters(text.substr(0, found)));
  return kFails ? run.fail("substring not found") : Value(std::int64_t{-1});
}

Value count_method(Run& run, const Value& self, const Arguments& arguments) {
  const auto given = bind_arguments(run, "count", arguments, {"sub"}, 1);
  if (!given) return {};
  const std::string_view part = text_or(run, "count", (*given)[0], "");
  run.step(1 + self.text().size() / 64);
  return static_cast<std::int64_t>(count_of(self.text(), part));
}

template <bool kPrefix>
Value remove_method(Run& run, const Value& self, const Arguments& arguments) {
  const auto given = bind_arguments(run, "removeprefix", arguments, {"prefix"}, 1);
  if (!given) return {};
  const std::string_view part = text_or(run, "removeprefix", (*given)[0], "");
  std::string_view text = self.text();
  if (kPrefix && text.starts_with(part)) text.remove_prefix(part.size());
  if (!kPrefix && text.ends_with(part)) text.remove_suffix(part.size());
  return run.string(std::string(text));
}

template <bool kFromRight>
Value partition_method(Run& run, const Value& self, const Arguments& arguments) {
  const auto given = bind_arguments(run, "partition", arguments, {"sep"}, 1);
  if (!given) return {};
  const std::string_view separator = text_or(run, "partition", (*given)[0], "");
  if (!run.ok() || separator.empty()) return run.fail("empty separator");
  const std::string& text = self.text();
  const std::size_t at = kFromRight ? text.rfind(separator) : text.find(separator);
  if (at == text.npos) return kFromRight ? run.tuple({"", "", self}) : run.tuple({self, "", ""});
  return run.tuple({run.string(text.substr(0, at)), Value(separator),
                    run.string(text.substr(at + separator.size()))});
}

// ljust, rjust, center and zfill: `side` is where the text stands.
template <Side kSide, bool kZeros>
Value pad_method(Run& run, const Value& self, const Arguments& arguments) {
  const auto given = bind_arguments(run, "ljust", arguments, {"width", "fillchar"}, 1);
  if (!given) return {};
  const std::int64_t width = int_or(run, (*given)[0], 0), size = *length(self);
  const std::string_view fill = text_or(run, "ljust", (*given)[1], kZeros ? "0" : " ");
  if (!run.ok()) return {};
  if (count_characters(fill) != 1)
    return run.fail("The fill character must be exactly one character long");
  if (width <= size) return self;
  const auto missing = static_cast<std::size_t>(width - size);
  if (missing > run.limits().allocated_bytes / 4 || !run.charge(missing * fill.size()))
    return run.charge(run.limits().allocated_bytes + 1), Value();
  // Python's str.center() leaves the odd place on the left only where the width is odd as well.
  std::size_t before = kSide == Side::kLeft ? 0 : missing;
  if (kSide == Side::kBoth) before = missing / 2 + (missing & static_cast<std::size_t>(width) & 1);
  std::string text = self.text(), out;
  if (kZeros && (text.starts_with('-') || text.starts_with('+'))) {
    out = text.substr(0, 1);
    text.erase(0, 1);
  }
  for (std::size_t i = 0; i < before; ++i) out += fill;
  out += text;
  for (std::size_t i = before; i < missing; ++i) out += fill;
  return run.string(std::move(out));
}

Value items_count(Run& run, const Value& self, const Arguments& arguments) {
  const auto given = bind_arguments(run, "count", arguments, {"value"}, 1);
  if (!given) return {};
  std::int64_t count = 0;
  Cursor cursor(run, self);
  while (const auto item = cursor.next())
    if (run.step(extent_of(*item).items) && equal(*item, *(*given)[0])) ++count;
  return count;
}

Value items_index(Run& run, const Value& self, const Arguments& arguments) {
  const auto given = bind_arguments(run, "index", arguments, {"value"}, 1);
  if (!given) return {};
  std::int64_t index = 0;
  Cursor cursor(run, self);
  for (; const auto item = cursor.next(); ++index)
    if (run.step(extent_of(*item).items) && equal(*item, *(*given)[0])) return index;
  return run.fail("the value is not in the list");
}

Value copy_method(Run& run, const Value& self, const Arguments& arguments) {
  bind_no_arguments(run, "copy", arguments);
  return self;
}

template <View::Part kPart>
Value view_method(Run& run, const Value& self, const Arguments& arguments) {
  return bind_no_arguments(run, "a method of dict", arguments) ? run.view(self, kPart) : Value();
}

Value dict_get(Run& run, const Value& self, const Arguments& arguments) {
  const auto given = bind_arguments(run, "get", arguments, {"key", "default"}, 1);
  if (!given) return {};
  const auto [key, otherwise] = *given;
  if (!hashable(*key)) return run.fail(std::string("unhashable type: '") + type_name(*key) + "'");
  if (const Value* const value = self.as_dict().find(*key)) return *value;
  return otherwise != nullptr ? *otherwise : Value();
}

constexpr auto kTextMethods = std::to_array<Method>({
    {"capitalize", map_method<capitalize>},
    {"casefold", map_method<lower>},
    {"center", pad_method<Side::kBoth, false>},
    {"count", count_method},
    {"endswith", with_method<false>},
    {"find", find_method<false, false>},
    {"index", find_method<false, true>},
    {"isalnum", class_method<Class::kAlnum>},
    {"isalpha", class_method<Class::kAlpha>},
    {"isascii", class_method<Class::kAscii>},
    {"isdecimal", class_method<Class::kDecimal>},
    {"isdigit", class_method<Class::kDigit>},
    {"islower", class_method<Class::kLower>},
    {"isspace", class_method<Class::kSpace>},
    {"isupper", class_method<Class::kUpper>},
    {"join", join_method},
    {"ljust", pad_method<Side::kLeft, false>},
    {"lower", map_method<lower>},
    {"lstrip", strip_method<Side::kLeft>},
    {"partition", partition_method<false>},
    {"removeprefix", remove_method<true>},
    {"removesuffix", remove_method<false>},
    {"replace", replace_method},
    {"rfind", find_method<true, false>},
    {"rindex", find_method<true, true>},
    {"rjust", pad_method<Side::kRight, false>},
    {"rpartition", partition_method<true>},
    {"rsplit", split_method<split_from_right>},
    {"rstrip", strip_method<Side::kRight>},
    {"split", split_method<split>},
    {"splitlines", splitlines},
    {"startswith", with_method<true>},
    {"strip", strip_method<Side::kBoth>},
    {"swapcase", map_method<swap_case>},
    {"title", map_method<title>},
    {"upper", map_method<upper>},
    {"zfill", pad_method<Side::kRight, true>},
});
constexpr auto kItemMethods =
    std::to_array<Method>({{"count", items_count}, {"index", items_index}, {"copy", copy_method}});
constexpr auto kDictMethods = std::to_array<Method>({{"copy", copy_method},
                                                     {"get", dict_get},
                                                     {"items", view_method<View::Part::kItems>},
                                                     {"keys", view_method<View::Part::kKeys>},
                                                     {"values", view_method<View::Part::kValues>}});
constexpr auto kChangesList = std::to_array<std::string_view>(
    {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"});
constexpr auto kChangesDict =
    std::to_array<std::string_view>({"clear", "pop", "popitem", "setdefault", "update"});

std::span<const Method> methods_of(const Value& object) {
  if (object.is_string()) return kTextMethods;
  if (object.is(Type::kDict)) return kDictMethods;
  if (object.is(Type::kSequence))
    return std::span(kItemMethods).first(object.as_sequence().tuple ? 2 : 3);
  if (object.is(Type::kRange)) return std::span(kItemMethods).first(2);
  return {};
}

}  // namespace

std::optional<Value> bound_method(const Value& object, std::string_view name) {
  for (const Method& method : methods_of(object))
    if (method.name == name)
      return Value(
          std::make_shared<const Callable>(Callable{method.name, method.function, object}));
  return {};
}

bool is_hidden_method(const Value& object, std::string_view name) {
  if (object.is(Type::kDict)) return std::ranges::count(kChangesDict, name) > 0;
  return object.is(Type::kSequence) && !object.as_sequence().tuple &&
         std::ranges::count(kChangesList, name) > 0;
}

}  // namespace tandem::jinja
