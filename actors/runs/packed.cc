#include "actors/runs/packed.h"

#include <zstd.h>

#include "runtime/base/check.h"

namespace tandem::runs {

namespace {

constexpr std::size_t kWorthPacking = 200;  // bytes
constexpr std::string_view kMagic = "\x28\xb5\x2f\xfd";

Error damaged(const std::string& why) {
  return {ErrorCode::kInvalid, "packed bytes are damaged: " + why};
}

}  // namespace

std::string packed(std::string bytes, int level) {
  CHECK(!bytes.starts_with(kMagic));
  if (bytes.size() < kWorthPacking) return bytes;
  std::string frame(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size =
      ZSTD_compress(frame.data(), frame.size(), bytes.data(), bytes.size(), level);
  if (ZSTD_isError(size) != 0 || size >= bytes.size()) return bytes;
  frame.resize(size);
  return frame;
}

Result<std::string> unpacked(std::string bytes) {
  if (!bytes.starts_with(kMagic)) return bytes;
  const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size > kUnpackedMax)
    return damaged("no frame of at most 256 MiB");  // errors are large numbers
  std::string content(size, '\0');
  const std::size_t got =
      ZSTD_decompress(content.data(), content.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got) != 0) return damaged(ZSTD_getErrorName(got));
  if (got != size) return damaged("a frame of another size than it says");
  return content;
}

}  // namespace tandem::runs
