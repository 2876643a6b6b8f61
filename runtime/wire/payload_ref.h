// Where a payload lies, and what it must be: passed around in place of the bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "runtime/wire/fields.h"

namespace tandem::runtime {

struct PayloadRef {
  std::string node;
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  // checksum64 (runtime/base/digest.h) of the bytes
  auto operator<=>(const PayloadRef&) const = default;
};
TANDEM_WIRE(PayloadRef, node, segment, offset, bytes, checksum)

}  // namespace tandem::runtime
