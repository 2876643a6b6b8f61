// Numbers of segments, beside files that another program has left in the store's folder.
//
// Tests runtime/payload/segment_book.h, runtime/payload/segment_store.h.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include "runtime/payload/segment_store.h"

namespace tandem::payload {
namespace {

namespace fs = std::filesystem;

class SegmentNumbers : public testing::Test {
 protected:
  SegmentNumbers() { fs::create_directories(folder_); }
  ~SegmentNumbers() override { fs::remove_all(folder_); }

  std::unique_ptr<SegmentStore> open() const {
    auto store = open_file_segments(folder_, {});
    EXPECT_TRUE(store.has_value());
    return std::move(*store);
  }

  const fs::path folder_ =
      fs::temp_directory_path() / ("tandem_segment_numbers_test." + std::to_string(::getpid()));
};

// The next process would not find what was stored behind such a file.
TEST_F(SegmentNumbers, NoPayloadIsTakenBehindAFileWhoseNumberIsTooHigh) {
  const std::string highest = std::to_string(kSegmentMax);
  std::ofstream(folder_ / ("segment-" + highest)) << "foreign";
  const std::array<std::uint64_t, 1> one{5};
  const auto refused = open()->reserve(one);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("no segment of this store"), std::string::npos)
      << refused.error().message;
}

TEST_F(SegmentNumbers, WhatIsTakenIsFoundAgain) {
  const std::string high = std::to_string(kSegmentMax - 2);
  std::ofstream(folder_ / ("segment-" + high)) << "foreign";
  const std::array<std::uint64_t, 1> one{5};
  const std::array<std::uint64_t, 3> three{5, 5, 5};
  auto store = open();
  EXPECT_FALSE(store->reserve(three)) << "each could need a number";
  const auto taken = store->reserve(one);
  ASSERT_TRUE(taken) << taken.error().message;
  const Extent at = taken->front();
  const std::string text = "taken";
  ASSERT_TRUE(store->write(at, 0, std::as_bytes(std::span(text))));
  store->commit(at, 7);
  const wire::PayloadRef ref{"vm", at.segment, at.offset, at.bytes, 7};
  store = open();
  store->retain(ref);
  EXPECT_TRUE(store->holds(ref));
}

}  // namespace
}  // namespace tandem::payload
