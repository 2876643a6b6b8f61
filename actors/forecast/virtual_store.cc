#include "actors/forecast/virtual_store.h"

namespace tandem::forecast {

wire::PayloadRef VirtualPayloads::put(std::int64_t tokens) {
  tokens_.emplace(++last_, tokens);
  return {.node = "forecast", .segment = 0, .offset = last_, .bytes = 1, .checksum = 0};
}

std::int64_t VirtualPayloads::tokens_of(const wire::PayloadRef& payload) const {
  const auto found = tokens_.find(payload.offset);
  return found == tokens_.end() ? 0 : found->second;
}

bool VirtualPayloads::holds(const wire::PayloadRef& payload) const {
  return tokens_.contains(payload.offset);
}

}  // namespace tandem::forecast
