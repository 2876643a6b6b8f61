// Copies of whole versions, block by block, so that a version is hashed in the same pass over
// memory: a caller hashes each block just after its copy, while its source is in the cache.
// Not here: the hash (runtime/base/digest.h), and memory of a GPU. Internal to runtime/weights.
#pragma once

#include <cstddef>
#include <span>

namespace tandem::runtime {

inline constexpr std::size_t kStreamBlockBytes = std::size_t{16} << 10;

// Copies the first bytes of `from` to the beginning of `to`, which has at least their number:
// kStreamBlockBytes, or all where there are fewer. The result is that number. Fastest where `to` is
// aligned to 64 bytes and whole blocks are copied. Other threads may still see what lay there.
std::size_t stream_block(std::span<std::byte> to, std::span<const std::byte> from);

// After the last block: whoever sees a later store of this thread also sees the blocks.
void stream_end();

}  // namespace tandem::runtime
