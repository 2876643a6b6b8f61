// Bytes in as few bytes as zstd makes of them at its fastest level, for the journal. Bytes that are
// few, or that do not become fewer, stay as they are.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::runs {

inline constexpr std::size_t kUnpackedMax = std::size_t{256} << 20;

// `bytes` must not begin as a frame of zstd does (28 b5 2f fd); CHECKed.
// `level` is zstd's: a higher one takes longer and gives fewer bytes.
std::string packed(std::string bytes, int level = 1);
// The bytes that packed() was given. kInvalid for a frame that is damaged, or of more than
// kUnpackedMax bytes.
Result<std::string> unpacked(std::string bytes);

}  // namespace tandem::runs
