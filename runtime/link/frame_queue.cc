#include "runtime/link/frame_queue.h"

#include <utility>

#include "runtime/base/check.h"

namespace tandem::link {
namespace {

constexpr std::size_t kChunkBytes = 32 << 10;
constexpr std::size_t kCopiedBytesMax = 4 << 10;  // a longer frame is moved, as its own chunk

}  // namespace

void FrameQueue::push(std::string frame) {
  const std::size_t bytes = frame.size();
  const bool fits = !chunks_.empty() && bytes <= kCopiedBytesMax &&
                    chunks_.back().bytes.capacity() - chunks_.back().bytes.size() >= bytes;
  // A last chunk whose frames are all dropped is used again, whatever the frame's size.
  const bool empty = !chunks_.empty() && chunks_.back().frames == 0;
  if (!fits && !empty) chunks_.emplace_back();
  Chunk& chunk = chunks_.back();
  if (!fits && bytes <= kCopiedBytesMax) chunk.bytes.reserve(kChunkBytes);
  frames_.push_back(
      {.chunk = first_chunk_ + chunks_.size() - 1, .offset = chunk.bytes.size(), .bytes = bytes});
  ++chunk.frames;
  if (bytes <= kCopiedBytesMax)
    chunk.bytes.append(frame);
  else
    chunk.bytes = std::move(frame);
}

std::string_view FrameQueue::operator[](std::size_t i) const {
  const Frame& frame = frames_[i];
  if (frame.dropped) return {};
  return std::string_view(chunks_[frame.chunk - first_chunk_].bytes)
      .substr(frame.offset, frame.bytes);
}

void FrameQueue::drop_bytes(std::size_t i) {
  Frame& frame = frames_[i];
  CHECK(!frame.dropped && frame.chunk == first_chunk_);
  frame.dropped = true;
  Chunk& chunk = chunks_.front();
  if (--chunk.frames > 0) return;
  if (chunks_.size() == 1 && chunk.bytes.capacity() <= 2 * kChunkBytes) {
    chunk.bytes.clear();  // keeps its capacity for the frames to come
    return;
  }
  chunks_.pop_front();
  ++first_chunk_;
}

void FrameQueue::pop() {
  if (!frames_.front().dropped) drop_bytes(0);
  frames_.pop_front();
}

}  // namespace tandem::link
