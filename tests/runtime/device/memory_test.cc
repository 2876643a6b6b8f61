#include "runtime/device/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace tandem::device {
namespace {

TEST(Buffer, IsZeroedAndAlignedAtEverySize) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, kMappedBytesMin - 1,
                                  kMappedBytesMin, 5 * kMappedBytesMin + 3}) {
    Result<Buffer> buffer = Buffer::allocate(bytes, "a test");
    ASSERT_TRUE(buffer);
    EXPECT_EQ(buffer->size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % kAlignmentBytes, 0u);
    EXPECT_TRUE(std::all_of(buffer->bytes().begin(), buffer->bytes().end(),
                            [](std::byte b) { return b == std::byte{0}; }));
    std::fill(buffer->bytes().begin(), buffer->bytes().end(), std::byte{1});
  }
}

TEST(Buffer, MovesWithoutMovingItsBlock) {
  Buffer first = *Buffer::allocate(4096, "a test");
  std::byte* data = first.data();
  Buffer second = std::move(first);
  EXPECT_EQ(second.data(), data);
  Buffer third = *Buffer::allocate(64, "a test");
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.as<float>().size(), 1024u);
}

TEST(Buffer, MoreThanTheMachineHasIsAnErrorWithItsPurpose) {
  const Result<Buffer> buffer = Buffer::allocate(std::size_t{1} << 60, "KV pages");
  ASSERT_FALSE(buffer);
  EXPECT_NE(buffer.error().message.find("KV pages"), std::string::npos);
}

TEST(Buffer, BlocksOfTheHostAreCounted) {
  reset_host_blocks_peak();
  const std::size_t before = host_blocks().bytes_now;
  {
    const Buffer large = *Buffer::allocate(3 * kMappedBytesMin, "a test");
    Buffer small = *Buffer::allocate(100, "a test");
    const Buffer moved = std::move(small);
    EXPECT_EQ(host_blocks().bytes_now, before + 3 * kMappedBytesMin + 100);
  }
  const Buffer later = *Buffer::allocate(200, "a test");
  EXPECT_EQ(host_blocks().bytes_now, before + 200);
  EXPECT_EQ(host_blocks().bytes_peak, before + 3 * kMappedBytesMin + 100);
  reset_host_blocks_peak();
  EXPECT_EQ(host_blocks().bytes_peak, before + 200);
}

TEST(Buffer, NothingIsABufferToo) {
  const Result<Buffer> buffer = Buffer::allocate(0, "a test");
  ASSERT_TRUE(buffer);
  EXPECT_TRUE(buffer->bytes().empty());
}

}  // namespace
}  // namespace tandem::device
