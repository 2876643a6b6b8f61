// Broadcasts of weights under random faults of NCCL, ranks that leave, and announcements that are
// late or do not come: whatever happens, no copy completes with wrong bytes, everything ends, and
// the next version reaches everybody. Real deaths are of this program again, as a subscriber.
//
// Tests runtime/weights/broadcast.h.
#include <gtest/gtest.h>
#include <signal.h>

#include <future>

#include "runtime/base/digest.h"
#include "runtime/base/log.h"
#include "runtime/base/rng.h"
#include "runtime/node/process_host.h"
#include "tests/runtime/patience.h"
#include "tests/runtime/weights/broadcast_group.h"

namespace tandem::weights {
namespace {

constexpr std::uint64_t kScenarios = 220;

// "" for right bytes, and for an error where one is allowed; else the fault in words.
std::string complaint_of(const Arrival& arrived, std::int64_t version, bool may_fail) {
  if (arrived.error == "it does not end") return "a copy does not end";
  if (!arrived.error.empty()) return may_fail ? "" : "no copy: " + arrived.error;
  if (arrived.bytes == weights_of(version)) return "";
  return std::string("wrong bytes, ") + (arrived.by_broadcast ? "broadcast" : "fetched");
}

struct Totals {
  int by_broadcast = 0;
  int by_fetch = 0;
  int failed_epochs = 0;
  int damaged = 0;
};

std::string random_fault(Rng& rng, int ranks) {
  static const std::vector<std::string> kFaults = {
      "fault=hang",          "fault=error,code=6",         "fault=error,code=3,polls=3",
      "fault=refuse,code=2", "fault=refuse,code=4",        "fault=late,ms=20",
      "fault=slow,ms=20",    "fault=slow,ms=60000",        "fault=corrupt",
      "fault=corrupt",       "fault=error,code=1,polls=1", "fault=late,ms=60000"};
  const std::uint64_t when = rng.below(10);
  const std::string op = when > 1 ? "broadcast" : when == 1 ? "init" : "register";
  const std::string fault = kFaults[rng.below(kFaults.size())];
  const std::string at = op != "broadcast" ? "1" : std::to_string(1 + rng.below(9));
  const auto rank = static_cast<int>(rng.below(static_cast<std::uint64_t>(ranks)));
  return "rank=" + std::to_string(rank) + ",op=" + op + ",at=" + at + "," + fault;
}

// One random course of a group. The faults that it finds are in `complaints`.
class Scenario {
 public:
  Scenario(std::uint64_t seed, Duration patience, Totals& totals)
      : rng_(seed), totals_(totals), group_(1 + static_cast<int>(rng_.below(3)), patience) {
    for (int rank = 1; rank < group_.size(); ++rank) members_.push_back(rank);
  }

  std::vector<std::string> run() {
    std::string faults = random_fault(rng_, group_.size());
    if (rng_.below(3) == 0) faults += ";" + random_fault(rng_, group_.size());
    if (rng_.below(6) > 0) the_fake_nccl().set_faults(faults.c_str());
    if (begin_epoch(1)) publisher().use(1);
    const auto versions = static_cast<std::int64_t>(2 + rng_.below(3));
    for (std::int64_t version = 1; version <= versions; ++version) {
      publish(version);
      for (const int member : members_)
        if (version == versions || rng_.below(2) == 0) copy(member, version, version < versions);
    }
    end_epoch(1);
    the_fake_nccl().set_faults("");
    if (begin_epoch(2)) publisher().use(2);
    may_forget_ = false;
    publish(versions + 1);
    for (const int member : members_) copy(member, versions + 1, false);
    end_epoch(2);
    return complaints_;
  }

 private:
  BroadcastRank& publisher() { return *group_.publisher().broadcasts(); }
  void complain(const std::string& what) { complaints_.push_back(what); }

  // Starts an epoch. Returns whether all ranks came; each one comes or fails.
  bool begin_epoch(std::uint64_t epoch) {
    group_.ask_to_join(group_.invite(epoch, members_), members_);
    bool all = true;
    for (int rank = 0; rank < group_.size(); ++rank) all &= group_[rank].joined(epoch);
    return all;
  }

  void end_epoch(std::uint64_t epoch) {
    for (int rank = 0; rank < group_.size(); ++rank) group_[rank].broadcasts().leave(epoch, "over");
    for (int rank = 0; rank < group_.size(); ++rank) {
      GroupRank& one = group_[rank];
      const bool left = comes_true([&] { return one.count(EventKind::kLeft, epoch) > 0; });
      const auto failures = one.count(EventKind::kFailed, epoch);
      if (!left) complain("rank " + std::to_string(rank) + " does not leave");
      if (failures > 1) complain("rank " + std::to_string(rank) + " failed twice");
      totals_.failed_epochs += failures > 0 ? 1 : 0;
      totals_.damaged += holds(one.event(EventKind::kFailed, epoch).message, "damaged") ? 1 : 0;
    }
  }

  // The members hear of it in any order, some of them perhaps not at all, and some leave.
  void publish(std::int64_t version) {
    const PublishStats stats = group_.publish(version);
    std::vector<int> order = members_;
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng_.below(i)]);
    for (const int member : order) {
      if (may_forget_ && rng_.below(12) == 0) continue;
      group_.tell(member, version, stats);
      if (may_forget_ && rng_.below(16) == 0)
        group_[member].broadcasts().leave(1, "the test says so");
    }
    if (may_forget_ && rng_.below(16) == 0) publisher().leave(1, "the test says so");
  }

  void copy(int member, std::int64_t version, bool may_fail) {
    const Arrival arrived = group_.arrival(member, version);
    const std::string complaint = complaint_of(arrived, version, may_fail);
    if (!complaint.empty())
      complain("version " + std::to_string(version) + ", rank " + std::to_string(member) + ": " +
               complaint);
    if (!arrived.error.empty()) return;
    ++(arrived.by_broadcast ? totals_.by_broadcast : totals_.by_fetch);
    if (group_.subscriber(member).installed()->checksum != checksum64(weights_of(version)))
      complain("rank " + std::to_string(member) + " names another checksum");
  }

  Rng rng_;
  Totals& totals_;
  BroadcastGroup group_;
  std::vector<int> members_;
  bool may_forget_ = true;
  std::vector<std::string> complaints_;
};

// Many an epoch ends by a deadline; a machine so slow that hardly anything comes by broadcast has
// shown too little.
std::string try_scenarios(Duration patience) {
  Totals totals;
  for (std::uint64_t seed = 1; seed <= kScenarios; ++seed)
    EXPECT_EQ(Scenario(seed, patience, totals).run(), std::vector<std::string>())
        << "seed " << seed;
  EXPECT_GT(totals.by_fetch, 100);
  EXPECT_GT(totals.failed_epochs, 50);
  const std::string found = std::to_string(totals.by_broadcast) + " copies by broadcast, " +
                            std::to_string(totals.by_fetch) + " by fetch; " +
                            std::to_string(totals.failed_epochs) + " epochs failed on a rank, " +
                            std::to_string(totals.damaged) + " of them by damaged bytes";
  GTEST_LOG_(INFO) << found;
  return totals.by_broadcast > 100 && totals.damaged > 2 ? "" : found;
}

// WB-1, WB-2, WB-4.
TEST(BroadcastFaults, NoFaultBringsWrongWeightsOrHoldsUpTheNextVersion) {
  EXPECT_EQ("", with_growing_patience(try_scenarios));
}

// The comparison with the checksum of expect() keeps wrong weights out: with the checksum of the
// damaged bytes they are let in, and complaint_of() sees them.
TEST(BroadcastFaults, WB1WithTheChecksumOfDamagedBytesTheComparisonAboveComplains) {
  BroadcastGroup group(1);
  the_fake_nccl().set_faults("rank=1,op=broadcast,at=1,fault=corrupt");
  ASSERT_TRUE(group.start(1, {1}) && group.use(1));
  PublishStats stats = group.publish(1);
  group.publisher().forget_after(v(0));  // else the true checksum is known from there
  std::vector<std::byte> damaged = weights_of(1);
  damaged[0] = ~damaged[0];
  stats.checksum = checksum64(damaged);
  group.tell(1, 1, stats);
  const Arrival arrived = group.arrival(1, 1);
  EXPECT_TRUE(arrived.bytes == damaged);
  EXPECT_EQ(complaint_of(arrived, 1, true), "wrong bytes, broadcast");
}

// A subscriber of its own process: joins epoch 1 as rank 2 of 3, and takes versions until it dies.
int be_a_subscriber(const std::string& weights, const std::string& id) {
  GroupRank rank;
  WeightsConfig config = BroadcastGroup::config_of(weights, collective::kNcclPatience);
  config.broadcasting = Broadcasting{
      .nccl = &rank.process(), .device = device::DeviceKind::kCpu, .name = "job/weights"};
  rank.subscriber = make_subscriber(config);
  collective::NcclRendezvous rendezvous{.epoch = 1, .unique_id = {}, .size = 3, .layout_hash = 17};
  id.copy(rendezvous.unique_id.internal, collective::kNcclUniqueIdBytes - 1);
  rank.broadcasts().join(rendezvous, 2);
  for (std::uint64_t version = 1; version <= 3; ++version) {
    const auto number = static_cast<std::int64_t>(version);
    rank.subscriber->expect(v(number), checksum64(weights_of(number)),
                            {.epoch = 1, .sequence = version});
  }
  return rank.told(EventKind::kFailed, 1) ? 1 : 0;
}

std::string try_death(const std::string& when, bool silent, Duration stall_max) {
  SCOPED_TRACE("it dies " + when + " its part" + (silent ? ", and NCCL says nothing" : ""));
  ::setenv("TANDEM_FAKE_NCCL_SILENT", silent ? "1" : "0", 1);
  BroadcastGroup group(1, stall_max);
  const collective::NcclRendezvous rendezvous = group.invite(1, {1, 2});
  std::promise<node::ExitStatus> exit;
  node::PosixProcessHost host;
  EXPECT_TRUE(host.spawn(
      {.name = "subscriber",
       .argv = {"/proc/self/exe", "--subscriber", group.name(), rendezvous.unique_id.internal},
       .environment = {{"TANDEM_FAKE_NCCL_FAULTS", "op=broadcast,at=5,fault=die,when=" + when}},
       .log_path = group.directory() / "log",
       .working_directory = {}},
      [&exit](node::ProcessId, const node::ExitStatus& status) { exit.set_value(status); }));
  group.ask_to_join(rendezvous, {1});
  const bool started = group[0].joined(1) && group[1].joined(1);
  group.publisher().broadcasts()->use(1);
  for (std::int64_t version = 1; version <= 3; ++version) {
    group.publish_to({1}, version);
    EXPECT_EQ(complaint_of(group.arrival(1, version), version, false), "") << version;
  }
  const node::ExitStatus ended = exit.get_future().get();
  if (!started || ended.signal != SIGKILL) return "the epoch ended before it came to the death";
  EXPECT_TRUE(group[0].told(EventKind::kFailed, 1));
  for (const int rank : {0, 1}) {
    group[rank].broadcasts().leave(1, "a rank has died");
    EXPECT_TRUE(group[rank].told(EventKind::kLeft, 1));
  }
  const bool again = group.start(2, {1}) && group.use(2);
  group.publish_to({1}, 4);
  const Arrival arrived = group.arrival(1, 4);
  EXPECT_EQ(complaint_of(arrived, 4, false), "");
  return again && arrived.by_broadcast ? "" : "the next epoch did not start";
}

TEST(BroadcastFaults, WB2ASubscriberThatDiesEndsTheEpochAndTheOthersGoOn) {
  for (const char* when : {"before", "in"}) {
    EXPECT_EQ("", try_death(when, false, collective::kNcclPatience));
    EXPECT_EQ("", with_growing_patience(
                      [&](Duration patience) { return try_death(when, true, 4 * patience); }));
  }
  ::setenv("TANDEM_FAKE_NCCL_SILENT", "0", 1);
}

}  // namespace
}  // namespace tandem::weights

int main(int argc, char** argv) {
  tandem::log::mute();
  const std::vector<std::string> arguments(argv, argv + argc);
  if (argc == 4 && arguments[1] == "--subscriber")
    return tandem::weights::be_a_subscriber(arguments[2], arguments[3]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
