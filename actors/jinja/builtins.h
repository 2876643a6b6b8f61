// The filters and tests that every template has: those of Jinja, with transformers' `tojson`.
#pragma once

#include <string_view>

#include "actors/jinja/filter_row.h"

namespace tandem::jinja {

// nullptr: there is none of that name.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);

// Applies a filter or a test by its name. Fails where there is none.
Value apply_filter(Run& run, std::string_view name, const Value& value, const Arguments& arguments);
bool apply_test(Run& run, std::string_view name, const Value& value, const Arguments& arguments);

}  // namespace tandem::jinja
