// `get --sort-by FIELD`: lists in the order of one field of their JSON. Pure.
#pragma once

#include <string>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem::cli {

// `field` is a member, or a path of members ("staleness.max"); '-' before it is descending; empty
// leaves the order as it is. Numbers sort as numbers, before texts; items without the field come
// last. Equal ones keep their order. kInvalid, with the nearest name: no item has such a field.
Result<nlohmann::json> sorted_by(const std::string& field, nlohmann::json items);

}  // namespace tandem::cli
