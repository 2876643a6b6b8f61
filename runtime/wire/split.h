// Splits a message with a long list into several messages of the same type, each of which fits a
// link that would refuse the whole (Delivery::kTooLarge). All other fields are repeated in each
// part. So this suits only messages that mean the same to a receiver in parts as whole. The items
// keep their order over the parts.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/wire/codec.h"

namespace tandem::wire {

// `list` points to the list's member, such as &Generated::groups. Gives at least one part, also for
// an empty list. The encoding of a part has at most `bytes_max` bytes, unless the part holds a
// single item that is too large by itself: sending that part fails with Delivery::kTooLarge.
template <class M, class Item>
std::vector<M> split(M whole, std::vector<Item> M::*list, std::uint64_t bytes_max) {
  // The longest head of a msgpack list, a tag and four bytes. Added for each item too, so that the
  // sum is a bound and not an exact size.
  constexpr std::uint64_t kLengthBytesMax = 5;
  std::vector<M> parts;
  std::vector<Item> items = std::exchange(whole.*list, {});
  // The list is empty here: the size of everything that each part repeats.
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

}  // namespace tandem::wire
