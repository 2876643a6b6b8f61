// A reference to a stored payload, which travels in messages in place of the bytes: where they lie,
// and by which checksum a reader knows that it got them right. The segment store makes references
// (runtime/payload/segment_store.h), and the bulk socket reads by them (runtime/payload/bulk.h).
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "runtime/wire/fields.h"

namespace tandem::wire {

struct PayloadRef {
  std::string node;  // the node whose store has the payload
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;    // the first byte, in the segment's file
  std::uint64_t bytes = 0;     // length of the payload
  std::uint64_t checksum = 0;  // checksum64 (runtime/base/digest.h) of the bytes
  auto operator<=>(const PayloadRef&) const = default;
};
TANDEM_WIRE(PayloadRef, node, segment, offset, bytes, checksum)

}  // namespace tandem::wire
