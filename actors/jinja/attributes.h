// The attribute that a filter looks up in each item: `attribute="function.name"`, where a number
// between dots is an index.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/jinja/run.h"
#include "actors/jinja/value.h"

namespace tandem::jinja {

class AttributePath {
 public:
  // `attribute` is a text, an integer or None, which is the item itself.
  AttributePath(Run& run, const Value& attribute);
  // The paths between commas, as the filter `sort` takes them.
  static std::vector<AttributePath> several(Run& run, const Value& attribute);

  // What is found in `item`. Where a part of the path is not there: `otherwise`, unless it is null.
  Value of(Run& run, const Value& item, const Value* otherwise = nullptr) const;

 private:
  Values keys_;
};

// The filters compare texts without regard to case, unless they are told otherwise.
Value without_case(Run& run, const Value& value);

}  // namespace tandem::jinja
