// The payloads of a run as the exchange sees them that follows one which has died.
#include "actors/main/exchange_host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "runtime/base/digest.h"

namespace tandem::app {
namespace {

class FollowedPayloads : public testing::Test {
 protected:
  FollowedPayloads()
      : path_(std::filesystem::temp_directory_path() /
              ("tandem-followed-payloads-" + std::to_string(getpid()))) {
    auto before = open();
    stored_ = put(*before, "the tokens of a group");
  }
  ~FollowedPayloads() override { std::filesystem::remove_all(path_); }

  std::unique_ptr<payload::SegmentStore> open() const {
    return std::move(payload::open_file_segments(path_, {})).value();
  }
  static wire::PayloadRef put(payload::SegmentStore& store, const std::string& text) {
    const std::uint64_t size = text.size();
    const payload::Extent at = store.reserve(std::span(&size, 1)).value().at(0);
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    EXPECT_TRUE(store.write(at, 0, bytes));
    const std::uint64_t checksum = checksum64(bytes);
    store.commit(at, checksum);
    return {"job-1", at.segment, at.offset, at.bytes, checksum};
  }

  const std::filesystem::path path_;
  wire::PayloadRef stored_;
};

// EX-8. The peer that stored it says so once more; the journal has not heard of it.
TEST_F(FollowedPayloads, OneThatTheJournalDoesNotNameIsTakenByItsChecksum) {
  const auto store = open();
  SegmentPayloads payloads(*store, "job-1");
  payloads.follow({});
  EXPECT_FALSE(payloads.holds(stored_));
  ASSERT_TRUE(payloads.recover(stored_));
  EXPECT_TRUE(payloads.holds(stored_));
  EXPECT_EQ(payloads.read(stored_).value(), "the tokens of a group");
}

// The reference is a peer's word: none of these may be believed, or cost memory.
TEST_F(FollowedPayloads, AReferenceThatIsNotOfWhatLiesThereIsRefused) {
  const auto store = open();
  SegmentPayloads payloads(*store, "job-1");
  payloads.follow({});
  const auto with = [&](auto change) {
    wire::PayloadRef changed = stored_;
    change(changed);
    return changed;
  };
  using Ref = wire::PayloadRef;
  constexpr auto kAll = std::numeric_limits<std::uint64_t>::max();
  const std::vector<Ref> lies{
      with([](Ref& ref) { ref.checksum ^= 1; }),
      with([](Ref& ref) { ref.bytes = 0; }),
      with([](Ref& ref) { ref.bytes += 1; }),
      with([](Ref& ref) { ref.bytes = std::uint64_t{1} << 60; }),
      with([](Ref& ref) { ref.bytes = kAll; }),
      with([](Ref& ref) { ref.offset += 1; }),
      with([](Ref& ref) { ref.offset = kAll; }),
      with([](Ref& ref) { ref.segment += 1; }),
      with([](Ref& ref) { ref.node = "job-2"; }),
  };
  for (const Ref& lie : lies)
    EXPECT_FALSE(payloads.recover(lie)) << lie.segment << "/" << lie.offset << "+" << lie.bytes;
  EXPECT_TRUE(payloads.recover(stored_));
}

TEST_F(FollowedPayloads, OnceAllAreBackTheOldSegmentsMayGo) {
  const auto store = open();
  SegmentPayloads payloads(*store, "job-1");
  payloads.follow({});
  const wire::PayloadRef other = put(*store, "of the time after");
  payloads.release(other);
  ASSERT_TRUE(payloads.recover(stored_)) << "no release deletes a segment before settle()";
  payloads.release(stored_);
  payloads.settle();
  EXPECT_FALSE(payloads.recover(stored_));
  EXPECT_FALSE(payloads.read(stored_).has_value()) << "its segment is deleted";
}

}  // namespace
}  // namespace tandem::app
