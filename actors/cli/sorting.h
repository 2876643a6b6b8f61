// `get --sort-by FIELD`: sorts a list by one field of its JSON. Pure.
#pragma once

#include <string>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem::cli {

// `field` is a member, or a path of members ("staleness.max"); with '-' before it the order is
// descending; empty leaves the order as it is. Numbers sort as numbers, before texts; items without
// the field come last in both directions. Equal items keep their order. kInvalid, with the nearest
// name: no item has such a field.
Result<nlohmann::json> sorted_by(const std::string& field, nlohmann::json items);

}  // namespace tandem::cli
