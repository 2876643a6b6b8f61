// Copies whole versions block by block, so that a version is hashed in the same pass over memory:
// the caller hashes each block just after its copy, while the source is in the cache. Not
// responsible for the hash (runtime/base/digest.h) or a GPU's memory. Internal to runtime/weights.
#pragma once

#include <cstddef>
#include <span>

namespace tandem::weights {

inline constexpr std::size_t kStreamBlockBytes = std::size_t{16} << 10;

// Copies the first bytes of `from` to the beginning of `to`, which has room for them (CHECKed), and
// returns their number: kStreamBlockBytes, or all of `from` where it is shorter. Fastest where `to`
// is aligned to 64 bytes and whole blocks are copied. Other threads may see the old bytes of `to`
// until stream_end().
std::size_t stream_block(std::span<std::byte> to, std::span<const std::byte> from);

// Call it after the last block: a thread that sees a later store of this thread then also sees the
// blocks.
void stream_end();

}  // namespace tandem::weights
