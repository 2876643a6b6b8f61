#include "runtime/weights/fetch_window.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/weights/tcp_messages.h"

namespace tandem::weights {

FetchWindow::FetchWindow(std::uint64_t bytes_total, std::uint64_t bucket_bytes)
    : bytes_total_(bytes_total),
      chunk_bytes_(std::clamp<std::uint64_t>(bucket_bytes / 4, 1, kWeightChunkBytesMax)),
      chunks_max_(std::clamp<std::uint64_t>(bucket_bytes / chunk_bytes_, 1, kWeightChunksMax)) {}

std::optional<FetchWindow::Range> FetchWindow::next() const {
  if (asked_.size() >= chunks_max_) return std::nullopt;
  const std::uint64_t offset =
      asked_.empty() ? due_ : asked_.back().chunk.offset + asked_.back().chunk.bytes;
  if (offset == bytes_total_) return std::nullopt;
  return Range{.offset = offset, .bytes = std::min(chunk_bytes_, bytes_total_ - offset)};
}

void FetchWindow::asked(std::uint64_t probe) {
  const std::optional<Range> chunk = next();
  CHECK(chunk.has_value());
  asked_.push_back({.chunk = *chunk, .probe = probe});
}

bool FetchWindow::arrived(const Range& chunk) {
  if (asked_.empty() || asked_.front().chunk != chunk) return false;
  asked_.pop_front();
  due_ = chunk.offset + chunk.bytes;
  return true;
}

void FetchWindow::answered(std::uint64_t probe) {
  // The publisher answers in order, so the first chunk that waits is the oldest request: if it was
  // sent after the probe, no chunk was lost. If it was lost, the chunks behind it are useless until
  // it has arrived, so all are asked for again.
  if (!asked_.empty() && asked_.front().probe < probe) lose_all();
}

void FetchWindow::lose_all() { asked_.clear(); }

}  // namespace tandem::weights
