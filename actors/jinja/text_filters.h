// The rows of the table of filters whose result is a text or a number.
#pragma once

#include <span>

#include "actors/jinja/filter_row.h"

namespace tandem::jinja {

std::span<const FilterRow> text_filters();

}  // namespace tandem::jinja
