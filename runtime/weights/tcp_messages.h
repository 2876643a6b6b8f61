// The messages between a subscriber (DEALER) and the publisher that serves it (ROUTER). A message
// is one part; a WeightChunk has the bytes as a second part. Internal to runtime/weights.
//
//   subscriber                                 publisher
//   WeightWatch: every second, when a copy     WeightOffers with the probe's number; also, with the
//     ends, and when chunks are overdue          last probe's number, when the versions change
//   WeightFetch: a few chunks ahead            WeightChunk, or WeightGone
//
// The publisher answers one subscriber in the order in which it asked. So when an answer to a probe
// arrives, every fetch that was sent before that probe has been answered or was lost with its link,
// and may be sent again. No clock decides that, and a slow link carries no chunk twice.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/weights/delta_log.h"
#include "runtime/weights/weight_offer.h"
#include "runtime/wire/fields.h"

namespace tandem::weights {

struct WeightWatch {
  std::uint64_t probe = 0;  // number of this probe, from 1
  std::uint64_t copy = 0;   // number of the copy under way, 0: none; all other copies are over
  bool deltas = false;      // this subscriber applies deltas
};
TANDEM_WIRE(WeightWatch, probe, copy, deltas)

// Asks for one chunk. The message is complete in itself, so a publisher that was started anew can
// answer it.
struct WeightFetch {
  std::uint64_t copy = 0;  // number of the copy, from 1 for each subscriber
  PolicyVersion version;
  std::uint64_t checksum = 0;  // only that content of the version is wanted
  // Set: what is wanted is the delta from this version to that one, and `offset` is in the delta.
  std::optional<WeightOffer> base = {};
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
TANDEM_WIRE(WeightFetch, copy, version, checksum, base, offset, bytes)

// All versions that can be fetched, and the facts by which a subscriber recognises the publisher
// and its layout. There are at most kSlotsMax versions (shm_segment.h).
struct WeightOffers {
  std::uint64_t probe = 0;
  std::uint64_t publisher_life = 0;
  std::uint64_t arena_bytes = 0;
  std::uint64_t layout_hash = 0;
  std::vector<WeightOffer> versions;
  std::vector<DeltaOffer> deltas;  // at most kDeltasMax
};
TANDEM_WIRE(WeightOffers, probe, publisher_life, arena_bytes, layout_hash, versions, deltas)

// The head of a chunk; the bytes are the message's second part.
struct WeightChunk {
  std::uint64_t copy = 0;
  std::uint64_t offset = 0;
};
TANDEM_WIRE(WeightChunk, copy, offset)

struct WeightGone {  // the version, or the delta, is not offered any more
  std::uint64_t copy = 0;
};
TANDEM_WIRE(WeightGone, copy)

using WeightRequest = std::variant<WeightWatch, WeightFetch>;
using WeightReply = std::variant<WeightOffers, WeightChunk, WeightGone>;

inline constexpr std::uint64_t kWeightChunkBytesMax = 1 << 20;
inline constexpr std::size_t kWeightChunksMax = 64;  // per subscriber: asked for and not answered
// Bytes of a message without its second part.
inline constexpr std::uint64_t kWeightHeadBytesMax = 16 << 10;

}  // namespace tandem::weights
