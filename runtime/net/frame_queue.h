// The frames of a session that have been accepted and not taken, in order, with the bytes of those
// that may have to travel again.
//
// Small frames lie one behind the other in chunks: they are put here by one thread and done with on
// another, which would cost an allocator more than the copy does. Invariant: the bytes kept are
// those of frames that have not been dropped, but for what is left of the first and the last chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace tandem::runtime {

class FrameQueue {
 public:
  void push(std::string frame);
  std::string_view operator[](std::size_t i) const;  // dropped ones have no bytes any more
  std::uint64_t bytes(std::size_t i) const { return frames_[i].bytes; }  // as they were pushed
  void drop_bytes(std::size_t i);  // of the first frame that still has some
  void pop();                      // the first frame, whose bytes are dropped if they are not yet
  std::size_t size() const { return frames_.size(); }
  bool empty() const { return frames_.empty(); }

 private:
  struct Frame {
    std::uint64_t chunk = 0;  // its number
    std::size_t offset = 0;
    std::uint64_t bytes = 0;
    bool dropped = false;
  };
  struct Chunk {
    std::string bytes;
    std::uint32_t frames = 0;  // with bytes
  };

  std::deque<Frame> frames_;
  std::deque<Chunk> chunks_;  // chunks_[i] has the number first_chunk_ + i
  std::uint64_t first_chunk_ = 0;
};

}  // namespace tandem::runtime
