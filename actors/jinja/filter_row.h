// What the tables of filters, tests and functions hold.
#pragma once

#include <string_view>

#include "actors/jinja/run.h"
#include "actors/jinja/value.h"

namespace tandem::jinja {

using Filter = Value (*)(Run& run, const Value& value, const Arguments& arguments);
using Test = bool (*)(Run& run, const Value& value, const Arguments& arguments);

struct FilterRow {
  std::string_view name;
  Filter filter = nullptr;
};
struct TestRow {
  std::string_view name;
  Test test = nullptr;
};

}  // namespace tandem::jinja
