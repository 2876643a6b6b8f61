// The rows of the table of filters over items: lists, dicts, and what can be iterated.
// Those that apply other filters or tests to each item (map, select) are in builtins.cc.
#pragma once

#include <span>

#include "actors/jinja/filter_row.h"

namespace tandem::jinja {

std::span<const FilterRow> item_filters();

}  // namespace tandem::jinja
