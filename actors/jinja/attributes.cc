#include "actors/jinja/attributes.h"

#include "actors/jinja/operators.h"
#include "actors/jinja/python_text.h"

namespace tandem::jinja {

AttributePath::AttributePath(Run& run, const Value& attribute) {
  if (attribute.is_none()) return;
  if (!attribute.is_string()) {
    keys_.push_back(attribute);
    return;
  }
  for (const std::string_view part : split(attribute.text(), ".", -1)) {
    const auto index = all_of(part, Class::kDigit) ? parse_int(part, 10) : std::nullopt;
    keys_.push_back(index ? Value(*index) : run.string(std::string(part)));
  }
}

std::vector<AttributePath> AttributePath::several(Run& run, const Value& attribute) {
  std::vector<AttributePath> paths;
  if (!attribute.is_string()) return {AttributePath(run, attribute)};
  for (const std::string_view one : split(attribute.text(), ",", -1))
    paths.emplace_back(run, Value(one));
  return paths;
}

Value AttributePath::of(Run& run, const Value& item, const Value* otherwise) const {
  Value found = item;
  for (const Value& key : keys_) {
    if (!run.step()) return {};
    found = get_item(run, found, key);
    if (found.is_undefined() && otherwise != nullptr && !otherwise->is_none()) found = *otherwise;
  }
  return found;
}

Value without_case(Run& run, const Value& value) {
  return value.is_string() ? run.string(lower(value.text())) : value;
}

}  // namespace tandem::jinja
