// The functions that every template has: Jinja's `range`, and transformers' `dict`, `namespace`,
// `raise_exception` and `strftime_now`.
#pragma once

#include <string_view>

#include "actors/jinja/value.h"

namespace tandem::jinja {

// The function `name` as a value; undefined where there is none.
Value find_function(std::string_view name);

}  // namespace tandem::jinja
