// Filters over items. Some are generators in Jinja: what they give is always true, has no length
// and is read once. Here their items are computed at once, so that the error of an item is told
// even where a template would not have read it.
#include "actors/jinja/item_filters.h"

#include <algorithm>
#include <string>
#include <utility>

#include "actors/jinja/attributes.h"
#include "actors/jinja/iteration.h"
#include "actors/jinja/operators.h"
#include "actors/jinja/printing.h"
#include "actors/jinja/python_text.h"

namespace tandem::jinja {
namespace {

bool flag(const Value* value) { return value != nullptr && truthy(*value); }

Value default_filter(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "default", arguments, {"default_value", "boolean"});
  if (!given) return {};
  if (!value.is_undefined() && (!flag((*given)[1]) || truthy(value))) return value;
  return (*given)[0] != nullptr ? *(*given)[0] : Value("");
}

Value length_filter(Run& run, const Value& value, const Arguments& arguments) {
  if (!bind_no_arguments(run, "length", arguments)) return {};
  if (const auto size = length(value)) return *size;
  return run.fail(std::string("object of type '") + type_name(value) + "' has no len()");
}

Value list_filter(Run& run, const Value& value, const Arguments& arguments) {
  if (!bind_no_arguments(run, "list", arguments)) return {};
  auto items = all_items(run, value);
  return items ? run.list(*std::move(items)) : Value();
}

Value first(Run& run, const Value& value, const Arguments& arguments) {
  if (!bind_no_arguments(run, "first", arguments)) return {};
  Cursor cursor(run, value);
  if (auto item = cursor.next()) return *std::move(item);
  return run.ok() ? run.undefined("No first item, sequence was empty.") : Value();
}

Value last(Run& run, const Value& value, const Arguments& arguments) {
  if (!bind_no_arguments(run, "last", arguments)) return {};
  if (value.is(Type::kIterator) || value.is_undefined())
    return run.fail(std::string("'") + type_name(value) + "' object is not reversible");
  const auto items = all_items(run, value);
  if (!items) return {};
  return items->empty() ? run.undefined("No last item, sequence was empty.") : items->back();
}

Value reverse(Run& run, const Value& value, const Arguments& arguments) {
  if (!bind_no_arguments(run, "reverse", arguments)) return {};
  if (value.is_string()) return get_slice(run, value, {{}, {}, std::int64_t{-1}});
  auto items = all_items(run, value);
  if (!items) return {};
  std::ranges::reverse(*items);
  return value.is(Type::kIterator) ? run.list(*std::move(items)) : run.iterator(*std::move(items));
}

Value items_filter(Run& run, const Value& value, const Arguments& arguments) {
  if (!bind_no_arguments(run, "items", arguments)) return {};
  if (value.is_undefined()) return run.iterator({});
  if (!value.is(Type::kDict)) return run.iterator({}, "Can only get item pairs from a mapping.");
  auto items = all_items(run, run.view(value, View::Part::kItems));
  return items ? run.iterator(*std::move(items)) : Value();
}

// Sorts by keys of the items, which were computed once. Two keys that have no order are a failure.
std::optional<Values> sorted(Run& run, std::vector<std::pair<Value, Value>> keyed, bool backwards) {
  const auto less = [&](const Value& left, const Value& right) {
    return run.step(extent_of(left).items) && compares(run, Comparison::kLt, left, right);
  };
  // As in Python, a backwards sort keeps the order of equal items.
  std::ranges::stable_sort(keyed, [&](const auto& left, const auto& right) {
    if (!run.ok()) return false;
    return backwards ? less(right.first, left.first) : less(left.first, right.first);
  });
  if (!run.ok()) return {};
  Values items;
  for (auto& [key, item] : keyed) items.push_back(std::move(item));
  return items;
}

Value sort_filter(Run& run, const Value& value, const Arguments& arguments) {
  const auto given =
      bind_arguments(run, "sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const auto items = given ? all_items(run, value) : std::nullopt;
  if (!items) return {};
  const auto [backwards, with_case, attribute] = *given;
  const auto paths = AttributePath::several(run, attribute != nullptr ? *attribute : Value());
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : *items) {
    Values key;
    for (const AttributePath& path : paths) {
      const Value part = path.of(run, item);
      key.push_back(flag(with_case) ? part : without_case(run, part));
    }
    keyed.emplace_back(run.list(std::move(key)), item);
    if (!run.ok()) return {};
  }
  auto ordered = sorted(run, std::move(keyed), flag(backwards));
  return ordered ? run.list(*std::move(ordered)) : Value();
}

Value dictsort(Run& run, const Value& value, const Arguments& arguments) {
  const auto given =
      bind_arguments(run, "dictsort", arguments, {"case_sensitive", "by", "reverse"});
  if (!given) return {};
  const std::string_view by = text_or(run, "dictsort", (*given)[1], "key");
  if (by != "key" && by != "value")
    return run.fail("You can only sort by either \"key\" or \"value\"");
  if (!value.is(Type::kDict)) {
    get_attribute(run, value, "items");  // which fails for an undefined value
    return run.fail(std::string("'") + type_name(value) + "' object has no attribute 'items'");
  }
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, item] : value.as_dict().items()) {
    const Value& part = by == "key" ? key : item;
    keyed.emplace_back(flag((*given)[0]) ? part : without_case(run, part), run.tuple({key, item}));
  }
  auto ordered = run.ok() ? sorted(run, std::move(keyed), flag((*given)[2])) : std::nullopt;
  return ordered ? run.list(*std::move(ordered)) : Value();
}

Value unique(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "unique", arguments, {"case_sensitive", "attribute"});
  const auto items = given ? all_items(run, value) : std::nullopt;
  if (!items) return {};
  const AttributePath path(run, (*given)[1] != nullptr ? *(*given)[1] : Value());
  Dict seen;
  Values kept;
  for (const Value& item : *items) {
    const Value found = path.of(run, item);
    const Value key = flag((*given)[0]) ? found : without_case(run, found);
    if (!run.ok()) return {};
    if (!hashable(key))
      return run.iterator(std::move(kept),
                          std::string("unhashable type: '") + type_name(key) + "'");
    // A key that is no text is looked for among all that were seen.
    if (!run.step(key.is_string() ? 1 : seen.size() + 1) || seen.find(key) != nullptr) continue;
    seen.set(key, Value());
    kept.push_back(item);
  }
  return run.iterator(std::move(kept));
}

template <bool kMost>
Value extreme(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "min", arguments, {"case_sensitive", "attribute"});
  const auto items = given ? all_items(run, value) : std::nullopt;
  if (!items) return {};
  if (items->empty()) return run.undefined("No aggregated item, sequence was empty.");
  const AttributePath path(run, (*given)[1] != nullptr ? *(*given)[1] : Value());
  const auto key_of = [&](const Value& item) {
    const Value found = path.of(run, item);
    return flag((*given)[0]) ? found : without_case(run, found);
  };
  Value best = items->front(), best_key = key_of(best);
  for (std::size_t i = 1; i < items->size() && run.ok(); ++i) {
    Value key = key_of((*items)[i]);
    const bool better = kMost ? compares(run, Comparison::kGt, key, best_key)
                              : compares(run, Comparison::kLt, key, best_key);
    if (!better) continue;
    best = (*items)[i];
    best_key = std::move(key);
  }
  return best;
}

Value sum(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "sum", arguments, {"attribute", "start"});
  if (!given) return {};
  const AttributePath path(run, (*given)[0] != nullptr ? *(*given)[0] : Value());
  Value total = (*given)[1] != nullptr ? *(*given)[1] : Value(std::int64_t{0});
  if (total.is_string()) return run.fail("sum() can't sum strings [use ''.join(seq) instead]");
  Cursor cursor(run, value);
  while (const auto item = cursor.next())
    total = arithmetic(run, Arithmetic::kAdd, total, path.of(run, *item));
  return total;
}

// Lists of `size` items each; the last one is filled up where there is something to fill with.
Value batch(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "batch", arguments, {"linecount", "fill_with"}, 1);
  const auto items = given ? all_items(run, value) : std::nullopt;
  if (!items) return {};
  const std::int64_t size = int_or(run, (*given)[0], 1);
  if (!run.ok()) return {};
  Values rows, row;
  for (const Value& item : *items) {
    if (std::ssize(row) == size) rows.push_back(run.list(std::exchange(row, {})));
    row.push_back(item);
  }
  const Value* const fill = (*given)[1];
  if (!row.empty() && fill != nullptr && !fill->is_none())
    while (std::ssize(row) < size && run.charge(sizeof(Value))) row.push_back(*fill);
  if (!row.empty()) rows.push_back(run.list(std::move(row)));
  return run.iterator(std::move(rows));
}

// `count` lists of about the same length.
Value slice_filter(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "slice", arguments, {"slices", "fill_with"}, 1);
  const auto items = given ? all_items(run, value) : std::nullopt;
  if (!items) return {};
  const std::int64_t count = int_or(run, (*given)[0], 1), size = std::ssize(*items);
  if (count == 0) return run.iterator({}, "integer division or modulo by zero");
  Values slices;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < count && run.step(); ++i) {
    const std::int64_t end = begin + size / count + (i < size % count ? 1 : 0);
    Values part(items->begin() + begin, items->begin() + end);
    const Value* const fill = (*given)[1];
    if (fill != nullptr && !fill->is_none() && i >= size % count) part.push_back(*fill);
    slices.push_back(run.list(std::move(part)));
    begin = end;
  }
  return run.iterator(std::move(slices));
}

Value groupby(Run& run, const Value& value, const Arguments& arguments) {
  const auto given =
      bind_arguments(run, "groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const auto items = given ? all_items(run, value) : std::nullopt;
  if (!items) return {};
  const AttributePath path(run, *(*given)[0]);
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : *items) {
    const Value found = path.of(run, item, (*given)[1]);
    const Value key = flag((*given)[2]) ? found : without_case(run, found);
    keyed.emplace_back(key, run.tuple({key, item}));
    if (!run.ok()) return {};
  }
  const auto ordered = sorted(run, std::move(keyed), false);
  if (!ordered) return {};
  Values groups;
  for (std::size_t i = 0; i < ordered->size();) {
    const Value key = (*ordered)[i].as_sequence().items[0];
    const Value named = path.of(run, (*ordered)[i].as_sequence().items[1], (*given)[1]);
    Values members;
    for (; i < ordered->size() && equal((*ordered)[i].as_sequence().items[0], key); ++i)
      members.push_back((*ordered)[i].as_sequence().items[1]);
    groups.push_back(run.tuple({named, run.list(std::move(members))}));
    if (!run.ok()) return {};
  }
  return run.list(std::move(groups));
}

Value attr(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "attr", arguments, {"name"}, 1);
  if (!given) return {};
  const std::string_view name = run.keep(std::string(text_or(run, "attr", (*given)[0], "")));
  if (!run.ok()) return {};
  // An attribute alone, and no item of a dict.
  if (!value.is(Type::kDict)) return get_attribute(run, value, name);
  const Value empty = run.dict({});
  return get_attribute(run, get_attribute(run, empty, name).is_undefined() ? empty : value, name);
}

}  // namespace

std::span<const FilterRow> item_filters() {
  static constexpr FilterRow kRows[] = {
      {"attr", attr},
      {"batch", batch},
      {"count", length_filter},
      {"d", default_filter},
      {"default", default_filter},
      {"dictsort", dictsort},
      {"first", first},
      {"groupby", groupby},
      {"items", items_filter},
      {"last", last},
      {"length", length_filter},
      {"list", list_filter},
      {"max", extreme<true>},
      {"min", extreme<false>},
      {"reverse", reverse},
      {"slice", slice_filter},
      {"sort", sort_filter},
      {"sum", sum},
      {"unique", unique},
  };
  return kRows;
}

}  // namespace tandem::jinja
