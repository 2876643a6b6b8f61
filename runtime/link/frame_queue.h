// The frames of a session that have been accepted and not taken, in order, with the bytes of those
// that may have to travel again.
//
// Small frames are copied one behind the other into chunks. A frame is pushed by one thread and
// dropped on another, and freeing it there would cost an allocator more than the copy does.
// Invariant: the bytes kept are those of frames that have not been dropped, apart from the dropped
// part of the first chunk and the free part of the last.
//
// Not thread-safe: the session's owner guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace tandem::link {

class FrameQueue {
 public:
  // Takes a frame at the end, whatever its size; the session bounds the queue (SE-4).
  void push(std::string frame);
  // The bytes of the i-th frame, valid until the queue changes; empty once they are dropped.
  std::string_view operator[](std::size_t i) const;
  std::uint64_t bytes(std::size_t i) const { return frames_[i].bytes; }  // its length, also dropped
  // The i-th frame will not travel again. CHECKed: frames are dropped in order, each once.
  void drop_bytes(std::size_t i);
  void pop();  // takes the first frame out, and drops its bytes if they are still there
  std::size_t size() const { return frames_.size(); }
  bool empty() const { return frames_.empty(); }

 private:
  struct Frame {
    std::uint64_t chunk = 0;  // the number of its chunk, counted from the first one ever made
    std::size_t offset = 0;
    std::uint64_t bytes = 0;
    bool dropped = false;
  };
  struct Chunk {
    std::string bytes;
    std::uint32_t frames = 0;  // in this chunk and not dropped
  };

  std::deque<Frame> frames_;
  std::deque<Chunk> chunks_;  // chunks_[i] has the number first_chunk_ + i
  std::uint64_t first_chunk_ = 0;
};

}  // namespace tandem::link
