// What travels between a subscriber (DEALER) and the publisher that serves it (ROUTER). A message
// is one part; a WeightChunk has the bytes as a second one. Internal to runtime/weights.
//
//   subscriber                                 publisher
//   WeightWatch: every second, when a copy     WeightOffers with the probe's number; also, with the
//     ends, and when chunks are overdue          last probe's number, when the versions change
//   WeightFetch: a few chunks ahead            WeightChunk, or WeightGone
//
// The publisher answers one subscriber in the order in which it asked. So when an answer to a probe
// arrives, every fetch that was sent before that probe has been answered or was lost with its link,
// and may be sent again. No clock decides that, and a slow link carries nothing twice.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/wire/fields.h"

namespace tandem::runtime {

struct WeightWatch {
  std::uint64_t probe = 0;  // counts the subscriber's, from 1
  std::uint64_t copy = 0;   // the one under way; all others are over. 0: none
};
TANDEM_WIRE(WeightWatch, probe, copy)

// Whole in itself: a publisher that was started anew can answer it.
struct WeightFetch {
  std::uint64_t copy = 0;  // counts the subscriber's, from 1
  PolicyVersion version;
  std::uint64_t checksum = 0;  // another content of that version is not wanted
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
TANDEM_WIRE(WeightFetch, copy, version, checksum, offset, bytes)

struct WeightOffer {
  PolicyVersion version;
  std::uint64_t checksum = 0;
};
TANDEM_WIRE(WeightOffer, version, checksum)

struct WeightOffers {
  std::uint64_t probe = 0;
  std::uint64_t publisher_life = 0;
  std::uint64_t arena_bytes = 0;
  std::uint64_t layout_hash = 0;
  std::vector<WeightOffer> versions;
};
TANDEM_WIRE(WeightOffers, probe, publisher_life, arena_bytes, layout_hash, versions)

struct WeightChunk {
  std::uint64_t copy = 0;
  std::uint64_t offset = 0;
};
TANDEM_WIRE(WeightChunk, copy, offset)

struct WeightGone {  // the version is not offered any more
  std::uint64_t copy = 0;
};
TANDEM_WIRE(WeightGone, copy)

using WeightRequest = std::variant<WeightWatch, WeightFetch>;
using WeightReply = std::variant<WeightOffers, WeightChunk, WeightGone>;

inline constexpr std::uint64_t kWeightChunkBytesMax = 1 << 20;
inline constexpr std::size_t kWeightChunksMax = 64;  // asked for and not answered, of a subscriber
inline constexpr std::uint64_t kWeightHeadBytesMax = 16 << 10;  // a message without a chunk's bytes

}  // namespace tandem::runtime
