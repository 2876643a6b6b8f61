#include "runtime/wire/schema.h"

#include <fmt/format.h>

#include <span>

#include "runtime/base/digest.h"

namespace tandem::wire {

std::string schema_hash(std::string_view schema) {
  return fmt::format("{:016x}", checksum64(std::as_bytes(std::span(schema))));
}

}  // namespace tandem::wire
