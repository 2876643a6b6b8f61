// Which broadcast of a job's weights brings a version: the number of the membership epoch (a fixed
// set of ranks with one communicator), and the number of the broadcast within that epoch. All ranks
// of an epoch take part in its broadcasts in the order of these numbers; else they would wait for
// each other in different broadcasts.
#pragma once

#include <cstdint>

#include "runtime/wire/fields.h"

namespace tandem::wire {

struct BroadcastPlace {
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;  // from 1 in each epoch
  auto operator<=>(const BroadcastPlace&) const = default;
};
TANDEM_WIRE(BroadcastPlace, epoch, sequence)

}  // namespace tandem::wire
