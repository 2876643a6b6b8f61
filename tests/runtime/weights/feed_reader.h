// Reads a version from a TensorFeed as an inference server does, by the wire that its header
// states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tandem::weights {

struct FeedAddress {
  std::string host;
  std::uint16_t port = 0;
  std::string token;
};

// Fills the tensors, in order. Returns why it could not. `breaks_at` > 0: gives up after so many.
std::optional<std::string> read_feed(const FeedAddress& from,
                                     const std::vector<std::span<std::byte>>& tensors,
                                     std::size_t breaks_at = 0);

}  // namespace tandem::weights
