#include "runtime/weights/tensor_feed.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>

#include "tests/runtime/weights/feed_reader.h"

namespace tandem::weights {
namespace {

std::vector<std::byte> bytes_of(std::size_t count, int seed) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>((i * 31 + static_cast<std::size_t>(seed)) % 251);
  return bytes;
}

struct Feeding {
  std::unique_ptr<TensorFeed> feed = *TensorFeed::listen();
  std::vector<std::vector<std::byte>> tensors{bytes_of(3 << 20, 1), bytes_of(0, 2), bytes_of(7, 3)};

  void serve() { feed->serve({tensors.begin(), tensors.end()}); }
  FeedAddress address() const {
    return {feed->endpoint().host, feed->endpoint().port, feed->token()};
  }
  // What a reader gets that wants tensors of these sizes; its error where it gets none.
  std::string read(const FeedAddress& from) const {
    std::vector<std::vector<std::byte>> got;
    for (const auto& tensor : tensors) got.emplace_back(tensor.size());
    const auto why = read_feed(from, {got.begin(), got.end()});
    if (why) return *why;
    return got == tensors ? "whole" : "other bytes";
  }
};

TEST(TensorFeed, GivesAVersionWholeToEachReader_TF1) {
  Feeding feeding;
  feeding.serve();
  EXPECT_EQ(feeding.read(feeding.address()), "whole");
  std::string first, second;
  std::thread beside([&] { first = feeding.read(feeding.address()); });
  second = feeding.read(feeding.address());
  beside.join();
  EXPECT_EQ(first, "whole");
  EXPECT_EQ(second, "whole");
  feeding.tensors[0] = bytes_of(5 << 20, 9);
  feeding.serve();
  EXPECT_EQ(feeding.read(feeding.address()), "whole") << "the version that is served now";
}

TEST(TensorFeed, GivesNothingToAStrangerOrWhenNothingIsServed) {
  Feeding feeding;
  EXPECT_EQ(feeding.read(feeding.address()), "the feed did not answer") << "nothing is served";
  feeding.serve();
  FeedAddress stranger = feeding.address();
  stranger.token[3] = stranger.token[3] == '0' ? '1' : '0';
  EXPECT_EQ(feeding.read(stranger), "the feed did not answer");
  feeding.feed->stop();
  EXPECT_EQ(feeding.read(feeding.address()), "the feed did not answer");
}

// The feed is stopped in the middle, and the bytes are freed: a sanitizer sees one that reads on.
TEST(TensorFeed, ReadsNoByteAfterItWasStopped_TF1_TF2) {
  Feeding feeding;
  for (int round = 0; round < 5; ++round) {
    auto served = std::make_unique<std::vector<std::byte>>(bytes_of(64 << 20, round));
    const std::span<const std::byte> all(*served);
    feeding.feed->serve({all.first(1 << 20), all.subspan(1 << 20)});
    std::vector<std::byte> got(all.size());
    const std::span<std::byte> place(got);
    const auto why =
        read_feed(feeding.address(), {place.first(1 << 20), place.subspan(1 << 20)}, 0, [&] {
          feeding.feed->stop();
          served.reset();
        });
    EXPECT_EQ(why, "the feed ended") << "more than the sockets hold was still to come";
  }
}

// A stranger that opens connections and says nothing takes no reader's place for good.
TEST(TensorFeed, HasRoomForAReaderWhenStrangersHaveGone) {
  Feeding feeding;
  feeding.serve();
  {
    std::vector<SilentStranger> strangers;
    for (int i = 0; i < 80; ++i) strangers.emplace_back(feeding.address());
    EXPECT_NE(feeding.read(feeding.address()), "whole") << "all places are taken";
  }
  std::string said;
  for (int attempt = 0; attempt < 1000 && said != "whole"; ++attempt)
    said = feeding.read(feeding.address());
  EXPECT_EQ(said, "whole");
}

}  // namespace
}  // namespace tandem::weights
