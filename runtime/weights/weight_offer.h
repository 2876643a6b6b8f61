// A version of the weights by its number and its content. Internal to runtime/weights.
#pragma once

#include <cstdint>

#include "runtime/base/ids.h"
#include "runtime/wire/fields.h"

namespace tandem::weights {

struct WeightOffer {
  PolicyVersion version;
  std::uint64_t checksum = 0;  // checksum64 of its bytes
  bool operator==(const WeightOffer&) const = default;
};
TANDEM_WIRE(WeightOffer, version, checksum)

}  // namespace tandem::weights
