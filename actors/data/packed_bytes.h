// gzip (RFC 1952) and zstd (RFC 8878) files as the bytes that were packed, in a bounded amount of
// memory. Several members or frames one after another are one text, as gzip and zstd write them
// when files are joined.
//
// A file that is cut off, that is damaged, or that has other bytes behind its end is an error
// (kInvalid), and never a text that merely ends early. A zstd frame whose window is larger than
// kWindowBytesMax is refused.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "runtime/base/byte_source.h"

namespace tandem::data {

inline constexpr std::size_t kWindowBytesMax = std::size_t{1} << 27;  // what `zstd -d` takes, too

enum class Packing { kGzip, kZstd };

// By the first bytes of a file.
std::optional<Packing> packing_of(std::string_view head);

// What `packed` holds; `path` is for errors. bytes_read() counts packed bytes.
std::unique_ptr<ByteSource> unpacked(std::unique_ptr<ByteSource> packed, Packing packing,
                                     std::filesystem::path path);

}  // namespace tandem::data
