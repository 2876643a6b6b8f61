// Reads a version from a TensorFeed as an inference server does, by the wire that its header
// states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/file.h"

namespace tandem::weights {

struct FeedAddress {
  std::string host;
  std::uint16_t port = 0;
  std::string token;
};

// A connection that says nothing until it is destroyed.
class SilentStranger {
 public:
  explicit SilentStranger(const FeedAddress& to);

 private:
  OwnedFd fd_;
};

// Fills the tensors, in order. Returns why it could not. `breaks_at` > 0: gives up after so many.
// `after_first` is called once the first one is there.
std::optional<std::string> read_feed(const FeedAddress& from,
                                     const std::vector<std::span<std::byte>>& tensors,
                                     std::size_t breaks_at = 0,
                                     const std::function<void()>& after_first = {});

}  // namespace tandem::weights
