// Weights that are broadcast by NCCL: the promises of a group of ranks, one rule at a time
// (broadcast.h). Random faults are in broadcast_faults_test.cc.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/base/digest.h"
#include "runtime/collective/nccl_memory.h"
#include "tests/runtime/patience.h"
#include "tests/runtime/weights/broadcast_group.h"

namespace tandem::weights {
namespace {

void expect_by_broadcast(const Arrival& arrived, std::int64_t version) {
  EXPECT_EQ(arrived.error, "");
  EXPECT_TRUE(arrived.bytes == weights_of(version)) << "version " << version;
  EXPECT_TRUE(arrived.by_broadcast) << "version " << version << " was fetched";
}

void expect_by_fetch(const Arrival& arrived, std::int64_t version) {
  EXPECT_EQ(arrived.error, "");
  EXPECT_TRUE(arrived.bytes == weights_of(version)) << "version " << version;
  EXPECT_FALSE(arrived.by_broadcast) << "version " << version << " was broadcast";
}

TEST(Broadcast, WB1AVersionArrivesWholeAtEveryMemberAndNobodyFetches) {
  BroadcastGroup group(3);
  ASSERT_TRUE(group.start(1, {1, 2, 3}));
  ASSERT_TRUE(group.use(1));
  for (std::int64_t version = 0; version < 4; ++version) {
    const PublishStats stats = group.publish_to({1, 2, 3}, version);
    ASSERT_TRUE(stats.broadcast);
    EXPECT_EQ(stats.broadcast->epoch, 1u);
    EXPECT_EQ(stats.broadcast->sequence, static_cast<std::uint64_t>(version) + 1);
    for (int member = 1; member <= 3; ++member) {
      expect_by_broadcast(group.arrival(member, version), version);
      ASSERT_TRUE(group.subscriber(member).installed());
      EXPECT_EQ(group.subscriber(member).installed()->version, v(version));
      EXPECT_EQ(group.subscriber(member).installed()->checksum, checksum64(weights_of(version)));
    }
  }
  for (int rank = 0; rank <= 3; ++rank)
    EXPECT_TRUE(comes_true([&] { return group[rank].broadcasts_done() == 4 * 3; }));
  const auto records = group[2].process().records->snapshot();
  EXPECT_TRUE(std::ranges::any_of(records, [](const collective::NcclRecord& record) {
    return record.label == "version 3, bucket 2 of 3" && record.bytes == kGroupBucketBytes &&
           record.epoch == 1;
  }));
}

TEST(Broadcast, TheSameWithoutAnEpochIsFetched) {
  BroadcastGroup group(1);
  EXPECT_FALSE(group.publish(1).broadcast);
  expect_by_fetch(group.arrival(1, 1), 1);
  // An epoch that is not used yet, and one that does not exist.
  ASSERT_TRUE(group.start(1, {1}));
  EXPECT_FALSE(group.publish(2).broadcast);
  group.publisher().broadcasts()->use(7);
  EXPECT_FALSE(group.publish(3).broadcast);
  group.subscriber(1).expect(v(3), 12, {.epoch = 7, .sequence = 1});
  expect_by_fetch(group.arrival(1, 3), 3);
}

TEST(Broadcast, ASpareVersionWaitsAndIsGivenUpForALaterOne) {
  BroadcastGroup group(1);
  ASSERT_TRUE(group.start(1, {1}) && group.use(1));
  group.publish_to({1}, 1);
  ASSERT_TRUE(comes_true([&] { return group[1].broadcasts_done() == 3; }));
  Arrival first{.bytes = std::vector<std::byte>(kGroupArenaBytes), .error = {}};
  ASSERT_TRUE(group.subscriber(1).begin(v(1), first.bytes));
  group.publish_to({1}, 2);
  expect_by_broadcast(group.arrival(1, 2), 2);  // cancels the first one
  expect_by_fetch(group.arrival(1, 1), 1);
  // A fetch that was begun is overwritten before it was taken over.
  Arrival second{.bytes = std::vector<std::byte>(kGroupArenaBytes), .error = {}};
  ASSERT_TRUE(group.subscriber(1).begin(v(2), second.bytes));
  group.publish_to({1}, 3);
  ASSERT_TRUE(comes_true([&] { return group[1].broadcasts_done() == 9; }));
  group.finish(1, second);
  expect_by_fetch(second, 2);
  expect_by_broadcast(group.arrival(1, 3), 3);
}

TEST(Broadcast, ANewLineageReplacesTheOldOnesVersion) {
  BroadcastGroup group(1);
  ASSERT_TRUE(group.start(1, {1}) && group.use(1));
  group.publish_to({1}, 1);
  group.publish_to({1}, 2);
  ASSERT_TRUE(comes_true([&] { return group[1].broadcasts_done() == 6; }));
  const PublishStats other = group.publish(1, 5);  // this subscriber was not told of it
  ASSERT_TRUE(other.broadcast);
  group.publisher().forget_after(v(1));
  const Arrival arrived = group.arrival(1, 1);
  EXPECT_EQ(arrived.error, "");
  EXPECT_TRUE(arrived.bytes == weights_of(1, 5));
  EXPECT_FALSE(arrived.by_broadcast);
  group.tell(1, 1, other);
  EXPECT_TRUE(group.arrival(1, 1).bytes == weights_of(1, 5));
}

TEST(Broadcast, AJoinerEntersAtTheNextEpochWhileTheOldOneCarriesOn) {
  BroadcastGroup group(2);
  ASSERT_TRUE(group.start(1, {1}) && group.use(1));
  group.publish_to({1}, 1);
  expect_by_broadcast(group.arrival(1, 1), 1);
  // The next epoch has begun, and waits for its second member.
  const collective::NcclRendezvous next = group.invite(2, {1, 2});
  group.subscriber(1).broadcasts()->join(next, 1);
  group.publish_to({1}, 2);
  expect_by_broadcast(group.arrival(1, 2), 2);
  expect_by_fetch(group.arrival(2, 2), 2);
  EXPECT_EQ(group[1].count(EventKind::kJoined, 2), 0);
  group.subscriber(2).broadcasts()->join(next, 2);
  for (int rank = 0; rank <= 2; ++rank) ASSERT_TRUE(group[rank].told(EventKind::kJoined, 2));
  group.publish_to({1}, 3);  // not used yet
  ASSERT_TRUE(group.use(2));
  expect_by_broadcast(group.arrival(1, 3), 3);
  group.publish_to({1, 2}, 4);
  for (int rank = 0; rank <= 1; ++rank) {
    group[rank].broadcasts().leave(1, "the next epoch is in use");
    EXPECT_TRUE(group[rank].told(EventKind::kLeft, 1));
    EXPECT_EQ(group[rank].count(EventKind::kFailed, 1), 0);
  }
  for (int member = 1; member <= 2; ++member) expect_by_broadcast(group.arrival(member, 4), 4);
}

// The epoch's root holds two versions at most, and publish() does not wait for them: there are five
// places, and the last four versions are in them.
TEST(Broadcast, WB3PublishWaitsForNoBroadcastAndSkipsWhatWouldQueueUp) {
  BroadcastGroup group(1);
  the_fake_nccl().set_faults("rank=1,op=broadcast,at=1,fault=hang");
  ASSERT_TRUE(group.start(1, {1}) && group.use(1));
  std::vector<bool> broadcast;
  for (std::int64_t version = 1; version <= 9; ++version)
    broadcast.push_back(group.publish_to({1}, version).broadcast.has_value());
  EXPECT_EQ(broadcast,
            (std::vector<bool>{true, true, false, false, false, false, false, false, false}));
  // A subscriber does not wait either: it is told that the hanging version is on its way, and
  // fetches others.
  std::vector<std::byte> buffer(kGroupArenaBytes);
  ASSERT_TRUE(group.subscriber(1).begin(v(2), buffer));
  const auto progress = group.subscriber(1).progress(100);
  ASSERT_TRUE(progress);
  EXPECT_FALSE(progress->complete);
  EXPECT_TRUE(progress->arrives_by_itself);
  expect_by_fetch(group.arrival(1, 9), 9);
  // leave() interrupts a broadcast that hangs (WB-4), and its version is fetched (WB-2).
  for (int rank = 0; rank <= 1; ++rank) {
    group[rank].broadcasts().leave(1, "it hangs");
    EXPECT_TRUE(group[rank].told(EventKind::kLeft, 1));
    EXPECT_EQ(group[rank].count(EventKind::kFailed, 1), 0);
  }
  group.publish(10);  // the places of the first two are free
  expect_by_fetch(group.arrival(1, 10), 10);
  the_fake_nccl().set_faults("");
  ASSERT_TRUE(group.start(2, {1}) && group.use(2));
  group.publish_to({1}, 11);
  expect_by_broadcast(group.arrival(1, 11), 11);
}

TEST(Broadcast, WB1AWrongChecksumEndsTheEpochAndTheVersionIsFetched) {
  BroadcastGroup group(2);
  the_fake_nccl().set_faults("rank=2,op=broadcast,at=5,fault=corrupt");
  ASSERT_TRUE(group.start(4, {1, 2}) && group.use(4));
  group.publish_to({1, 2}, 1);
  for (const int member : {1, 2}) expect_by_broadcast(group.arrival(member, 1), 1);
  const PublishStats stats = group.publish_to({1, 2}, 2);
  ASSERT_TRUE(group[2].told(EventKind::kFailed, 4));
  const std::string message = group[2].event(EventKind::kFailed, 4).message;
  EXPECT_TRUE(
      holds(message, "policy version 2 came damaged by broadcast 2 of job/weights, epoch 4"))
      << message;
  EXPECT_TRUE(holds(message, fmt::format("and {:016x} was published", stats.checksum))) << message;
  expect_by_fetch(group.arrival(2, 2), 2);
  expect_by_broadcast(group.arrival(1, 2), 2);
  group[2].broadcasts().leave(4, "it failed");
  EXPECT_TRUE(group[2].told(EventKind::kLeft, 4));
}

// No rank is told that the epoch is to end: its own deadline ends it. The next epoch of the
// survivors works.
std::string try_deadline(Duration patience) {
  BroadcastGroup group(2, patience);
  if (!group.start(1, {1, 2})) return "the epoch did not start";
  if (!group.use(1)) return "the epoch did not get into use";
  // Rank 2 is not told, so it does not take part.
  const PublishStats stats = group.publish_to({1}, 1);
  if (!stats.broadcast) return "the epoch ended before its first broadcast";
  bool timed_out = false;  // the others may see the first one's end
  for (const int rank : {0, 1}) {
    if (!group[rank].told(EventKind::kFailed, 1)) return "rank did not fail";
    const std::string message = group[rank].event(EventKind::kFailed, 1).message;
    EXPECT_TRUE(holds(message, "job/weights, epoch 1, rank ")) << message;
    timed_out = timed_out || holds(message, "timed out after ");
  }
  EXPECT_TRUE(timed_out);
  for (const int member : {1, 2}) expect_by_fetch(group.arrival(member, 1), 1);
  for (int rank = 0; rank <= 2; ++rank) group[rank].broadcasts().leave(1, "it failed");
  for (int rank = 0; rank <= 2; ++rank) {
    EXPECT_TRUE(group[rank].told(EventKind::kLeft, 1));
    EXPECT_EQ(group[rank].count(EventKind::kLeft, 1), 1);
  }
  if (!group.start(2, {1, 2}) || !group.use(2)) return "the next epoch did not start";
  group.publish_to({1, 2}, 2);
  for (const int member : {1, 2}) {
    const Arrival arrived = group.arrival(member, 2);
    EXPECT_TRUE(arrived.bytes == weights_of(2)) << arrived.error;
    if (!arrived.by_broadcast) return "the next epoch had no time either";
  }
  return "";
}

TEST(Broadcast, WB2AnOperationPastItsDeadlineEndsTheEpochAndTheVersionIsFetched) {
  EXPECT_EQ("", with_growing_patience(try_deadline));
}

TEST(Broadcast, AGapInTheOrderEndsTheEpochAndARepetitionDoesNot) {
  BroadcastGroup group(1);
  ASSERT_TRUE(group.start(1, {1}) && group.use(1));
  const PublishStats first = group.publish_to({1}, 1);
  group.tell(1, 1, first);
  expect_by_broadcast(group.arrival(1, 1), 1);
  group.publish(2);
  PublishStats third = group.publish(3);
  third.broadcast = wire::BroadcastPlace{.epoch = 1, .sequence = 3};  // if it is broadcast at all
  group.tell(1, 3, third);
  ASSERT_TRUE(group[1].told(EventKind::kFailed, 1));
  EXPECT_EQ(group[1].event(EventKind::kFailed, 1).message,
            "broadcast 3 of job/weights, epoch 1, was announced to rank 1 after broadcast 1: its "
            "ranks no longer agree");
  expect_by_fetch(group.arrival(1, 3), 3);
}

TEST(Broadcast, AnotherLayoutIsRefusedBeforeTheEpochStarts) {
  BroadcastGroup group(1);
  collective::NcclRendezvous offered = group.invite(3, {1});
  offered.layout_hash = 18;
  group.subscriber(1).broadcasts()->join(offered, 1);
  ASSERT_TRUE(group[1].told(EventKind::kFailed, 3));
  EXPECT_EQ(group[1].event(EventKind::kFailed, 3).message,
            "epoch 3 is for weights of another layout (hash 18, not 17)");
  group.subscriber(1).broadcasts()->leave(3, "it was refused");
  EXPECT_TRUE(group[1].told(EventKind::kLeft, 3));
}

// Leaves an epoch in every state: unknown, starting, idle, failed, left already; and twice.
TEST(Broadcast, WB4LeaveIsAnsweredByOneKLeftInEveryState) {
  BroadcastGroup group(1);
  const auto leaves_once = [&](int rank, std::uint64_t epoch, std::int64_t nth) {
    group[rank].broadcasts().leave(epoch, "the test says so");
    EXPECT_TRUE(comes_true([&] { return group[rank].count(EventKind::kLeft, epoch) == nth; }))
        << "rank " << rank << ", epoch " << epoch;
  };
  leaves_once(1, 9, 1);  // unknown
  leaves_once(1, 9, 2);
  group.invite(1, {1});  // rank 1 does not come
  leaves_once(0, 1, 1);
  EXPECT_EQ(group[0].count(EventKind::kFailed, 1), 0);
  ASSERT_TRUE(group.start(2, {1}));
  for (const int rank : {0, 1}) leaves_once(rank, 2, 1);
  leaves_once(0, 2, 2);
  collective::NcclRendezvous refused;
  refused.epoch = 3;
  group[1].broadcasts().join(refused, 0);
  ASSERT_TRUE(group[1].told(EventKind::kFailed, 3));
  leaves_once(1, 3, 1);
  ASSERT_TRUE(group.start(4, {1}) && group.use(4));
  group.publish(1);  // rank 1 does not take part: it hangs
  for (const int rank : {0, 1}) leaves_once(rank, 4, 1);
}

TEST(Broadcast, EachEventWakesItsOwner) {
  Guarded<int> woken;
  BroadcastGroup group(1);
  for (const int rank : {0, 1})
    group[rank].broadcasts().on_event([&woken] { woken.with([](int& count) { ++count; }); });
  ASSERT_TRUE(group.start(1, {1}) && group.use(1));
  for (const int rank : {0, 1}) {
    group[rank].broadcasts().leave(1, "the test says so");
    ASSERT_TRUE(group[rank].told(EventKind::kLeft, 1));
  }
  // Two joined and two left; one opened and is in use.
  EXPECT_TRUE(comes_true([&] { return woken.with([](int count) { return count == 6; }); }));
  for (const int rank : {0, 1}) group[rank].broadcasts().on_event({});
}

TEST(Broadcast, TheMemoryItTakesIsKnownBeforehand) {
  BroadcastGroup group(0);
  WeightsConfig config = group.config_of(0);
  const std::uint64_t of_epoch = collective::nccl_memory_taken(2 * kGroupBucketBytes);
  EXPECT_EQ(broadcast_bytes_of_publisher(config), 2 * of_epoch);
  EXPECT_EQ(broadcast_bytes_of_subscriber(config), 2 * of_epoch + kGroupArenaBytes);
  config.bucket_bytes = std::uint64_t{1} << 40;
  config.layout.arena_bytes = std::uint64_t{1} << 31;
  EXPECT_EQ(broadcast_bytes_of_publisher(config), 4 * config.layout.arena_bytes);
}

}  // namespace
}  // namespace tandem::weights
