#include "actors/jinja/iteration.h"

#include <utility>

#include "actors/jinja/python_text.h"

namespace tandem::jinja {

bool iterable(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
    case Type::kString:
    case Type::kSequence:
    case Type::kDict:
    case Type::kRange:
    case Type::kView:
    case Type::kIterator:
      return true;
    default:
      return false;
  }
}

Cursor::Cursor(Run& run, Value source) : run_(run), source_(std::move(source)) {
  if (!iterable(source_))
    run_.fail(std::string("'") + type_name(source_) + "' object is not iterable");
}

std::optional<Value> Cursor::next() {
  if (!run_.step()) return {};
  switch (source_.type()) {
    case Type::kString: {
      const std::string& text = source_.text();
      if (at_ >= text.size()) return {};
      const std::size_t begin = at_;
      next_code_point(text, at_);
      return run_.string(text.substr(begin, at_ - begin));
    }
    case Type::kSequence: {
      const Values& items = source_.as_sequence().items;
      return at_ < items.size() ? std::optional(items[at_++]) : std::nullopt;
    }
    case Type::kDict: {
      const auto& items = source_.as_dict().items();
      return at_ < items.size() ? std::optional(items[at_++].first) : std::nullopt;
    }
    case Type::kRange: {
      const Range& range = source_.as_range();
      const auto index = static_cast<std::int64_t>(at_);
      if (index >= range.size()) return {};
      ++at_;
      return Value(range.at(index));
    }
    case Type::kView: {
      const View& view = source_.as_view();
      if (at_ >= view.dict->size()) return {};
      const auto& [key, value] = view.dict->items()[at_++];
      if (view.part == View::Part::kItems) return run_.tuple({key, value});
      return view.part == View::Part::kKeys ? key : value;
    }
    case Type::kIterator: {
      Iterator& iterator = source_.as_iterator();
      if (iterator.next < iterator.items.size()) return iterator.items[iterator.next++];
      if (!iterator.failure.empty()) run_.fail(iterator.failure);
      return {};
    }
    default:
      return {};
  }
}

std::optional<Values> all_items(Run& run, const Value& value) {
  Values items;
  Cursor cursor(run, value);
  while (auto item = cursor.next()) {
    if (!run.charge(sizeof(Value))) break;
    items.push_back(*std::move(item));
  }
  if (!run.ok()) return {};
  return items;
}

}  // namespace tandem::jinja
