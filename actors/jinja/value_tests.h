// The rows of the table of tests: what stands behind `is`.
#pragma once

#include <span>

#include "actors/jinja/filter_row.h"

namespace tandem::jinja {

std::span<const TestRow> value_tests();

}  // namespace tandem::jinja
