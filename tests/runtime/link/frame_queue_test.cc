#include "runtime/link/frame_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::link {
namespace {

// The same as a queue that keeps each frame by itself.
class PlainQueue {
 public:
  void push(std::string frame) {
    sizes_.push_back(frame.size());
    frames_.push_back(std::move(frame));
  }
  void drop_first() { frames_[dropped_++].reset(); }
  void pop() {
    if (dropped_ > 0) --dropped_;
    frames_.pop_front();
    sizes_.pop_front();
  }
  std::size_t size() const { return frames_.size(); }
  std::size_t dropped() const { return dropped_; }
  void expect_same(const FrameQueue& queue) const {
    ASSERT_EQ(queue.size(), size());
    EXPECT_EQ(queue.empty(), frames_.empty());
    for (std::size_t i = 0; i < size(); ++i) {
      ASSERT_EQ(queue.bytes(i), sizes_[i]) << i;
      ASSERT_EQ(queue[i], frames_[i].value_or("")) << i;
    }
  }

 private:
  std::deque<std::optional<std::string>> frames_;  // without a value: dropped
  std::deque<std::size_t> sizes_;
  std::size_t dropped_ = 0;
};

// Mostly small, some empty, some about as long as a frame may be and still be copied, some longer
// than a chunk.
std::string drawn_frame(Rng& rng) {
  const std::uint64_t kind = rng.below(20);
  const std::uint64_t bytes = kind == 0   ? 0
                              : kind == 1 ? 4'000 + rng.below(200)
                              : kind == 2 ? 30'000 + rng.below(90'000)
                                          : rng.below(300);
  return std::string(bytes, static_cast<char>('a' + rng.below(26)));
}

TEST(FrameQueue, KeepsEachFrameUntilItIsDropped) {
  for_seeds(100, [](std::uint64_t seed) {
    Rng rng(seed);
    FrameQueue queue;
    PlainQueue plain;
    for (int i = 0; i < 600; ++i) {
      const std::uint64_t what = rng.below(i % 200 < 100 ? 4 : 10);  // fills, then drains
      if (what < 3) {
        const std::string frame = drawn_frame(rng);
        queue.push(frame);
        plain.push(frame);
      } else if (what < 6 && plain.dropped() < plain.size()) {
        queue.drop_bytes(plain.dropped());
        plain.drop_first();
      } else if (plain.size() > 0) {
        queue.pop();
        plain.pop();
      }
      if (i % 16 == 0) plain.expect_same(queue);
    }
    plain.expect_same(queue);
  });
}

}  // namespace
}  // namespace tandem::link
