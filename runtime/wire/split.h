// A message whose list is long, as several messages of its type that each fit where it would not.
// Everything but the list is repeated in each part, so the receiver must mean the same by several
// parts as by the whole; the items keep their order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/wire/codec.h"

namespace tandem::runtime {

// At least one part. A part takes at most `bytes_max` encoded, unless it holds a single item that
// is larger by itself: sending that one fails and says so (Delivery::kTooLarge).
template <class M, class Item>
std::vector<M> split(M whole, std::vector<Item> M::*list, std::uint64_t bytes_max) {
  constexpr std::uint64_t kLengthBytesMax = 5;  // of the list's own head, and of an item's
  std::vector<M> parts;
  std::vector<Item> items = std::exchange(whole.*list, {});
  const std::uint64_t frame = encode(whole).size() + kLengthBytesMax;
  std::uint64_t bytes = frame;
  parts.push_back(whole);
  for (Item& item : items) {
    const std::uint64_t more = encode(item).size() + kLengthBytesMax;
    if (bytes + more > bytes_max && !(parts.back().*list).empty()) {
      parts.push_back(whole);
      bytes = frame;
    }
    bytes += more;
    (parts.back().*list).push_back(std::move(item));
  }
  return parts;
}

}  // namespace tandem::runtime
