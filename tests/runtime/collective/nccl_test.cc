// NCCL's communicators against the fake library, all ranks in this process, each with a thread of
// NCCL of its own. Tests in which a process must die are in nccl_process_test.cc.
//
// Tests runtime/collective/nccl_communicator.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/base/guarded.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/nccl_communicator.h"
#include "tests/runtime/collective/nccl_rank.h"
#include "tests/runtime/collective/stalls.h"
#include "tests/runtime/patience.h"

namespace tandem::collective {
namespace {

using Form = SharedOperation::Form;

constexpr Duration kShort = std::chrono::milliseconds(100);

// All ranks are on one GPU here.
const int kSharedGpu = ::setenv("TANDEM_FAKE_NCCL_VERSION", "23003", 1) +
                       ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);

const FakeNccl& fake() {
  static const FakeNccl opened = open_fake_nccl();
  return opened;
}

// A stream that a hanging operation holds is not used again.
void* new_stream() {
  static std::deque<char> names;
  return &names.emplace_back();
}

struct Rank {
  explicit Rank(Duration grace)
      : thread({.grace = grace, .on_stuck = [calls = stuck](const StuckNcclCall& call) {
                  calls->with([&](auto& list) { list.push_back(call.name); });
                }}) {
    process = {.api = fake().api, .streams = fake().streams, .thread = &thread};
  }

  std::vector<std::string> stuck_calls() const {
    return stuck->with([](const auto& list) { return list; });
  }

  const std::shared_ptr<Guarded<std::vector<std::string>>> stuck =
      std::make_shared<Guarded<std::vector<std::string>>>();
  std::vector<std::shared_ptr<RankMemory>> memory;  // outlives the communicators that may use it
  NcclThread thread;
  NcclProcess process;
  std::unique_ptr<NcclCommunicator> communicator;
  void* stream = new_stream();
  std::vector<std::optional<NcclTicket>> tickets;
};

class Gang {
 public:
  explicit Gang(int size, Duration grace = kNcclGrace) {
    for (int rank = 0; rank < size; ++rank) ranks_.push_back(std::make_unique<Rank>(grace));
  }
  ~Gang() { fake().set_faults(""); }

  int size() const { return static_cast<int>(ranks_.size()); }
  Rank& operator[](int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

  void start(Duration timeout, std::uint64_t epoch = 1) {
    const NcclUniqueId id = make_nccl_unique_id((*this)[0].process, kNcclPatience).value();
    for (int rank = 0; rank < size(); ++rank) start_one(rank, id, timeout, epoch);
  }
  void start_one(int rank, const NcclUniqueId& id, Duration timeout, std::uint64_t epoch = 1) {
    auto made = NcclCommunicator::start(
        (*this)[rank].process,
        {.epoch = epoch, .unique_id = id, .rank = rank, .size = size(), .name = "job/weights"},
        timeout);
    ASSERT_TRUE(made) << render(made.error());
    (*this)[rank].communicator = std::move(*made);
  }

  // Has each rank submit its part; a rank that may not any more has no ticket.
  void submit(const SharedOperation& operation, Duration timeout) {
    for (int rank = 0; rank < size(); ++rank) submit_one(rank, operation, timeout);
  }
  std::optional<Error> submit_one(int rank, const SharedOperation& operation, Duration timeout) {
    Rank& one = (*this)[rank];
    const int number = static_cast<int>(one.memory.size());
    one.memory.push_back(std::make_shared<RankMemory>(operation, number, rank, size()));
    one.tickets.emplace_back();
    if (!one.memory.back()->takes_part()) return std::nullopt;
    auto ticket = one.communicator->submit({.label = "part " + std::to_string(number),
                                            .transfers = one.memory.back()->transfers(),
                                            .stream = one.stream,
                                            .timeout = timeout});
    if (!ticket) return ticket.error();
    one.tickets.back() = std::move(*ticket);
    return std::nullopt;
  }

  std::vector<std::vector<NcclRecord>> records() const {
    std::vector<std::vector<NcclRecord>> all;
    for (const auto& rank : ranks_) all.push_back(rank->process.records->snapshot());
    return all;
  }

 private:
  std::vector<std::unique_ptr<Rank>> ranks_;
};

std::string message_of(const Result<void>& result) {
  return result ? "no error" : render(result.error());
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_all_right(Gang& gang) {
  for (int rank = 0; rank < gang.size(); ++rank)
    for (std::size_t i = 0; i < gang[rank].tickets.size(); ++i) {
      if (!gang[rank].tickets[i]) continue;
      const Result<void> done = gang[rank].tickets[i]->wait();
      EXPECT_TRUE(done) << "rank " << rank << ": " << message_of(done);
      EXPECT_TRUE(gang[rank].memory[i]->right()) << "rank " << rank << ", operation " << i;
    }
}

// NC-4, and NH-1: the fake refuses calls of a second thread, and those before the last came
// through.
TEST(Nccl, NC4CarriesTheRightBytesBetween1To4Ranks) {
  for (int size = 1; size <= 4; ++size) {
    Gang gang(size);
    gang.start(kNcclPatience);
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{700001}})
      for (int root = 0; root < size; ++root)
        gang.submit({.form = Form::kBroadcast, .root = root, .bytes = bytes}, kNcclPatience);
    for (const std::size_t floats : {1, 1000})
      gang.submit({.form = Form::kSum, .bytes = floats * sizeof(float)}, kNcclPatience);
    for (int root = 0; root < size && size > 1; ++root) {
      gang.submit({.form = Form::kPair, .root = root, .bytes = 70001}, kNcclPatience);
      gang.submit({.form = Form::kRing, .bytes = 300001}, kNcclPatience);
    }
    expect_all_right(gang);
    for (int rank = 0; rank < size; ++rank) {
      const Result<void> finished = gang[rank].communicator->finish(kNcclPatience);
      EXPECT_TRUE(finished) << message_of(finished);
      EXPECT_TRUE(gang[rank].stuck_calls().empty());
      for (const NcclRecord& record : gang[rank].process.records->snapshot())
        if (record.sequence > 0) {
          EXPECT_EQ(record.state, NcclState::kDone);
        }
    }
    EXPECT_EQ(explain_stall(gang.records(), 1), "");
  }
}

TEST(Nccl, TwoEpochsLiveSideBySide) {
  Gang gang(2);
  gang.start(kNcclPatience, 1);
  gang.submit({.bytes = 1000}, kNcclPatience);
  expect_all_right(gang);
  std::vector<std::unique_ptr<NcclCommunicator>> old;
  for (int rank = 0; rank < 2; ++rank) old.push_back(std::move(gang[rank].communicator));
  gang.start(kNcclPatience, 2);
  gang.submit({.root = 1, .bytes = 2000}, kNcclPatience);
  expect_all_right(gang);
  old.clear();  // aborts the first epoch; the second goes on
  gang.submit({.form = Form::kRing, .bytes = 3000}, kNcclPatience);
  expect_all_right(gang);
  const auto records = gang[0].process.records->snapshot();
  EXPECT_EQ(records.back().epoch, 2u);
  EXPECT_TRUE(std::ranges::any_of(
      records, [](const NcclRecord& r) { return r.epoch == 1 && r.kind == NcclKind::kAbort; }));
}

TEST(Nccl, NC5AWrongRequestIsRefusedAndDoesNoHarm) {
  Gang gang(2);
  gang.start(kNcclPatience);
  std::vector<std::byte> memory(8);
  const auto refused = [&](std::vector<NcclTransfer> transfers) {
    const auto ticket = gang[0].communicator->submit(
        {.transfers = std::move(transfers), .stream = nullptr, .timeout = kNcclPatience});
    EXPECT_FALSE(ticket);
    if (ticket) return std::string();
    EXPECT_EQ(ticket.error().code, ErrorCode::kInvalid);
    return ticket.error().message;
  };
  const auto one = [&](NcclKind kind, std::byte* at, std::size_t bytes, int peer) {
    return refused({{kind, at, bytes, peer}});
  };
  EXPECT_EQ(refused({}), "an operation of NCCL: it has 0 transfers, not 1 to 4096");
  EXPECT_EQ(one(NcclKind::kBroadcast, memory.data(), 8, 2),
            "broadcast of 8 bytes from rank 2: there are 2 ranks");
  EXPECT_EQ(one(NcclKind::kSend, memory.data(), 8, -1),
            "send of 8 bytes to rank -1: there are 2 ranks");
  EXPECT_EQ(one(NcclKind::kReceive, memory.data(), 8, 0),
            "receive of 8 bytes from rank 0: that is this rank itself");
  EXPECT_EQ(one(NcclKind::kSend, nullptr, 8, 1), "send of 8 bytes to rank 1: it has no memory");
  EXPECT_EQ(one(NcclKind::kSend, memory.data(), 0, 1),
            "send of 0 bytes to rank 1: it has no memory");
  EXPECT_EQ(one(NcclKind::kFinish, memory.data(), 8, 1), "finish: it is no transfer");
  const auto bad =
      NcclCommunicator::start(gang[0].process, {.rank = 2, .size = 2, .name = "x"}, kNcclPatience);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "cannot start x: there is no rank 2 of 2");
  gang.submit({.bytes = 100}, kNcclPatience);
  expect_all_right(gang);
}

// An error that NCCL reports as an invalid argument has no effect either; every other error ends
// the communicator.
TEST(Nccl, AnInvalidArgumentLeavesTheCommunicatorAlive) {
  Gang gang(2);
  fake().set_faults("op=broadcast,at=1,fault=refuse,code=4");
  gang.start(kNcclPatience);
  gang.submit({.bytes = 100}, kNcclPatience);
  gang.submit({.bytes = 200}, kNcclPatience);
  for (int rank = 0; rank < 2; ++rank) {
    const Result<void> first = gang[rank].tickets[0]->wait();
    ASSERT_FALSE(first);
    EXPECT_EQ(first.error().code, ErrorCode::kInvalid);
    EXPECT_TRUE(holds(first.error().message,
                      "cannot begin broadcast of 100 bytes from rank 0 "
                      "(part 0), operation 1 of job/weights, epoch 1, rank"))
        << first.error().message;
    EXPECT_TRUE(holds(first.error().message, "ncclBroadcast: invalid argument (refused because"));
    EXPECT_TRUE(gang[rank].tickets[1]->wait());
    EXPECT_TRUE(gang[rank].memory[1]->right());
    EXPECT_FALSE(gang[rank].communicator->failure());
  }
}

TEST(Nccl, NC2AfterAnErrorEachCallReturnsIt) {
  Gang gang(2);
  fake().set_faults("rank=0,op=broadcast,at=2,fault=refuse,code=3");
  gang.start(kNcclPatience);
  gang.submit({.bytes = 64}, kNcclPatience);
  expect_all_right(gang);
  for (int i = 0; i < 3; ++i) gang.submit_one(0, {.bytes = 64}, kNcclPatience);
  const auto& tickets = gang[0].tickets;
  const Result<void> failed = tickets[1]->wait();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kFailed);
  EXPECT_TRUE(holds(failed.error().message, "operation 2 of job/weights"));
  EXPECT_TRUE(holds(failed.error().message, "ncclBroadcast: internal error"));
  for (const std::size_t later : {std::size_t{2}, std::size_t{3}}) {
    if (tickets[later]) {  // else it was refused with the same words, below
      EXPECT_EQ(message_of(tickets[later]->wait()), message_of(failed));
    }
  }
  const auto refused = gang.submit_one(0, {.bytes = 64}, kNcclPatience);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->message, failed.error().message);
  EXPECT_EQ(gang[0].communicator->wait_started().error().message, failed.error().message);
  EXPECT_EQ(gang[0].communicator->finish(kNcclPatience).error().message, failed.error().message);
  const auto records = gang[0].process.records->snapshot();
  const auto state_of = [&](std::uint64_t sequence) {
    return std::ranges::find(records, sequence, &NcclRecord::sequence)->state;
  };
  EXPECT_EQ(state_of(1), NcclState::kDone);
  EXPECT_EQ(state_of(2), NcclState::kFailed);
  EXPECT_EQ(records.back().kind, NcclKind::kAbort);
}

// NC-1, NC-4: a rank that is not there is found by the deadline, and the records say who it is.
std::string try_without(int absent, Duration soon) {
  Gang gang(3);
  gang.start(kNcclPatience);
  gang.submit({.root = 1, .bytes = 10}, kNcclPatience);
  expect_all_right(gang);
  const int root = absent == 0 ? 0 : (absent + 1) % 3;
  for (int rank = 0; rank < 3; ++rank)
    if (rank != absent) gang.submit_one(rank, {.root = root, .bytes = 20}, soon);
  const int sure = absent == 0 ? 1 : root;  // that it waits for the absent one
  const Result<void> outcome = gang[sure].tickets[1]->wait();
  if (outcome) return "a broadcast without one of its ranks";
  const std::string text = message_of(outcome);
  if (outcome.error().code != ErrorCode::kTimedOut) return text;  // another one was sooner
  EXPECT_TRUE(holds(text, "broadcast of 20 bytes from rank")) << text;
  EXPECT_TRUE(holds(text, "(part 1), operation 2 of job/weights, epoch 1")) << text;
  const std::string stall = explain_stall(gang.records(), 1);
  for (int rank = 0; rank < 3; ++rank) {
    gang[rank].communicator->abort("rank " + std::to_string(absent) + " is missing");
    EXPECT_FALSE(gang[rank].communicator->finish(kNcclPatience));
    EXPECT_TRUE(gang[rank].stuck_calls().empty());
  }
  if (!holds(text, absent == 0 ? "which began and waits for rank 0" : "waits for the other ranks"))
    return text;
  return stall.starts_with("rank " + std::to_string(absent) +
                           " did not enter operation 2 (broadcast of 20 bytes), which rank")
             ? ""
             : stall;
}

TEST(Nccl, NC1ARankThatDoesNotComeIsFoundByTheDeadline) {
  for (int absent = 0; absent < 3; ++absent)
    EXPECT_EQ("", with_growing_patience([&](Duration soon) { return try_without(absent, soon); }));
}

// Whether the stream has come past everything that was queued on it.
bool is_idle(void* stream) {
  void* event = fake().streams.create_event();
  fake().streams.record_event(event, stream);
  const bool idle = fake().streams.event_done(event);
  fake().streams.destroy_event(event);
  return idle;
}

TEST(Nccl, NC3ASurvivorAbortsWhatWouldHangAndHasItsMemoryBack) {
  Gang gang(3);
  fake().set_faults("rank=2,op=broadcast,at=2,fault=hang");
  gang.start(kNcclPatience);
  gang.submit({.bytes = 10}, kNcclPatience);
  expect_all_right(gang);
  gang.submit({.bytes = 20}, kNcclPatience);
  for (int rank = 0; rank < 3; ++rank) gang[rank].communicator->abort("rank 2 was ended");
  for (const int rank : {0, 2}) {
    const Result<void> outcome = gang[rank].tickets[1]->wait();
    ASSERT_FALSE(outcome);
    EXPECT_TRUE(is_idle(gang[rank].stream));
    EXPECT_EQ(outcome.error().message, "job/weights, epoch 1, rank " + std::to_string(rank) +
                                           " of 3 was aborted: rank 2 was ended");
  }
}

// NC-3: half of it has come when the deadline does, the other half is on its way.
TEST(Nccl, NC3AnOperationThatFailedNoLongerWrites) {
  Gang gang(2);
  fake().set_faults("rank=0,op=send,fault=slow,ms=60000");
  gang.start(kNcclPatience);
  gang.submit_one(0, {.form = Form::kPair, .bytes = 400000}, kNcclPatience);
  gang.submit_one(1, {.form = Form::kPair, .bytes = 400000}, kShort);
  EXPECT_FALSE(gang[1].tickets[0]->wait());
  EXPECT_TRUE(is_idle(gang[1].stream));
}

// Ranks that do not ask for the same thing: NCCL does not notice, the deadline does.
TEST(Nccl, RanksThatDisagreeTimeOut) {
  Gang gang(2);
  gang.start(kNcclPatience);
  gang.submit_one(0, {.bytes = 20}, kShort);
  gang.submit_one(1, {.bytes = 24}, kShort);
  int timed_out = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const Result<void> outcome = gang[rank].tickets[0]->wait();
    ASSERT_FALSE(outcome);
    timed_out += outcome.error().code == ErrorCode::kTimedOut ? 1 : 0;
  }
  EXPECT_GE(timed_out, 1);  // the other may see that the first has gone
}

TEST(Nccl, AStartThatNotAllComeToTimesOut) {
  Gang gang(3);
  const NcclUniqueId id = make_nccl_unique_id(gang[0].process, kNcclPatience).value();
  gang.start_one(0, id, kShort);
  gang.start_one(2, id, kShort);
  gang.submit_one(0, {.bytes = 5}, kNcclPatience);
  for (const int rank : {0, 2}) {
    const Result<void> started = gang[rank].communicator->wait_started();
    ASSERT_FALSE(started);
    // The first to give up may be noticed by the other.
    EXPECT_TRUE(holds(started.error().message, "start of job/weights, epoch 1, rank") ||
                holds(started.error().message, "cannot start job/weights, epoch 1, rank"))
        << message_of(started);
  }
  if (gang[0].tickets[0]) {  // else it was refused, after the start had failed
    EXPECT_FALSE(gang[0].tickets[0]->wait());
  }
}

TEST(Nccl, LateAndSlowRanksAreWaitedFor) {
  Gang gang(3);
  fake().set_faults(
      "rank=1,op=init,fault=late,ms=50;rank=2,op=broadcast,at=1,fault=slow,ms=50;"
      "rank=0,op=recv,fault=late,ms=30");
  gang.start(kNcclPatience);
  gang.submit({.bytes = 300000}, kNcclPatience);
  gang.submit({.form = Form::kRing, .bytes = 300000}, kNcclPatience);
  expect_all_right(gang);
}

TEST(Nccl, ErrorsThatNcclReportsLaterEndIt) {
  for (const int code : {1, 2, 3, 5, 6}) {
    Gang gang(2);
    fake().set_faults(
        ("rank=1,op=broadcast,at=1,fault=error,polls=3,code=" + std::to_string(code)).c_str());
    gang.start(kNcclPatience);
    gang.submit({.bytes = 10}, kNcclPatience);
    const Result<void> outcome = gang[1].tickets[0]->wait();
    ASSERT_FALSE(outcome);
    EXPECT_TRUE(holds(outcome.error().message, "failed in broadcast of 10 bytes from rank 0"));
    EXPECT_TRUE(holds(outcome.error().message,
                      "waiting for rank 0: ncclCommGetAsyncError: " +
                          std::string(fake().api.get_error_string(static_cast<NcclResult>(code)))))
        << message_of(outcome);
    gang[0].communicator->abort("rank 1 failed");
    EXPECT_FALSE(gang[0].tickets[0]->wait());
  }
}

// The bytes of an operation that succeeds are compared above; this shows that the comparison can
// fail.
TEST(Nccl, BytesThatTravelWrongAreSeen) {
  Gang gang(2);
  fake().set_faults("rank=1,op=broadcast,fault=corrupt");
  gang.start(kNcclPatience);
  gang.submit({.bytes = 5000}, kNcclPatience);
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(gang[rank].tickets[0]->wait());
  EXPECT_TRUE(gang[0].memory[0]->right());
  EXPECT_FALSE(gang[1].memory[0]->right());
}

struct StuckCase {
  const char* fault;
  const char* named;
  bool at_deadline;  // the operation fails at its deadline; else it succeeds
};

// Waits for a report that begins so; empty where none comes within the patience.
std::string report_of(Rank& rank, const std::string& named, Duration patience) {
  for (const Time late = steady_now() + patience; steady_now() < late; std::this_thread::yield())
    for (const std::string& name : rank.stuck_calls())
      if (name.starts_with(named)) return name;
  return "";
}

std::string try_stuck(const StuckCase& one, Duration soon) {
  Gang gang(2, 4 * soon);
  fake().set_faults(one.fault);
  gang.start(4 * soon);
  gang.submit({.bytes = 10}, one.at_deadline ? soon : 4 * soon);
  Rank& rank = gang[1];
  if (!rank.tickets[0]) return "the start had failed before";
  const Result<void> outcome = rank.tickets[0]->wait();
  const Result<void> finished = rank.communicator->finish(soon);
  EXPECT_FALSE(finished);
  const std::string report = report_of(rank, one.named, 8 * soon);
  if (report.empty()) return std::string("no report of ") + one.named;
  EXPECT_TRUE(holds(report, " of job/weights, epoch 1, rank 1 of 2")) << report;
  EXPECT_TRUE(gang.submit_one(1, {.bytes = 10}, soon).has_value());
  return outcome.has_value() == one.at_deadline ? message_of(outcome) : "";
}

// NC-1, NH-2: a call that never returns is named, and no thread waits for it for ever.
TEST(Nccl, NH2ACallThatDoesNotReturnIsNamed) {
  for (const StuckCase& one :
       {StuckCase{"rank=1,op=init,fault=block", "ncclCommInitRankConfig", true},
        StuckCase{"rank=1,op=broadcast,fault=block", "ncclBroadcast", true},
        StuckCase{"rank=1,op=broadcast,fault=hang;rank=1,op=abort,fault=block", "ncclCommAbort",
                  true},
        StuckCase{"rank=1,op=broadcast,fault=stubborn", "the stream", true},
        StuckCase{"rank=1,op=destroy,fault=block", "ncclCommDestroy", false}})
    EXPECT_EQ("", with_growing_patience([&](Duration soon) { return try_stuck(one, soon); }))
        << one.fault;
}

TEST(Nccl, NoMoreThanTheLimitIsUnderWay) {
  Gang gang(2);
  gang.start(kNcclPatience);
  for (std::size_t i = 0; i < kNcclOperationsMax; ++i)
    ASSERT_FALSE(gang.submit_one(0, {.bytes = 4}, kNcclPatience));
  const auto refused = gang.submit_one(0, {.bytes = 4}, kNcclPatience);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, ErrorCode::kInvalid);
  EXPECT_TRUE(holds(refused->message, "has 256 operations under way")) << refused->message;
  for (std::size_t i = 0; i < kNcclOperationsMax; ++i)
    ASSERT_FALSE(gang.submit_one(1, {.bytes = 4}, kNcclPatience));
  expect_all_right(gang);
}

// One scenario: some operations, one or two faults, and a control plane that has all ranks abort
// once one has failed. In every case each wait ends, an operation that succeeded has the right
// bytes (NC-4), and one that did not is named (NC-2).
void run_scenario(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  const auto pick = [&rng](auto... words) {
    const std::array<std::string, sizeof...(words)> all{words...};
    return all[rng.below(all.size())];
  };
  const int size = static_cast<int>(2 + rng.below(3));
  std::string faults;
  bool harmful = false;
  for (std::uint64_t i = 0, count = rng.below(3); i < count; ++i) {
    const std::string kind = pick("hang", "error", "refuse", "late", "slow");
    harmful = harmful || kind == "hang" || kind == "error" || kind == "refuse";
    faults += "rank=" + std::to_string(rng.below(static_cast<std::uint64_t>(size))) +
              ",op=" + pick("init", "broadcast", "send", "recv") +
              ",at=" + std::to_string(1 + rng.below(3)) + ",fault=" + kind +
              ",ms=" + std::to_string(rng.below(40)) + ",polls=" + std::to_string(rng.below(20)) +
              ",code=" + std::to_string(1 + rng.below(6)) + ";";
  }
  SCOPED_TRACE(faults);
  Gang gang(size);
  fake().set_faults(faults.c_str());
  const Duration timeout = harmful ? std::chrono::milliseconds(40 + rng.below(80)) : kNcclPatience;
  gang.start(timeout);
  for (std::uint64_t i = 0, count = 1 + rng.below(5); i < count; ++i) {
    const auto form = static_cast<Form>(rng.below(3));
    const int root = static_cast<int>(rng.below(static_cast<std::uint64_t>(size)));
    gang.submit({.form = form, .root = root, .bytes = 1 + rng.below(200000)}, timeout);
  }
  std::optional<Error> failure;
  for (std::size_t i = 0; i < gang[0].tickets.size(); ++i)
    for (int rank = 0; rank < size; ++rank) {
      if (!gang[rank].tickets[i]) continue;
      const Result<void> outcome = gang[rank].tickets[i]->wait();
      if (outcome) {
        EXPECT_TRUE(gang[rank].memory[i]->right()) << "rank " << rank << " operation " << i;
        continue;
      }
      EXPECT_TRUE(holds(outcome.error().message, "job/weights, epoch 1, rank"))
          << message_of(outcome);
      if (std::exchange(failure, outcome.error())) continue;
      for (int other = 0; other < size; ++other)
        gang[other].communicator->abort("rank " + std::to_string(rank) + " has failed");
    }
  if (!harmful) {
    EXPECT_FALSE(failure) << render(*failure);
  }
  for (int rank = 0; rank < size; ++rank) EXPECT_TRUE(gang[rank].stuck_calls().empty());
}

TEST(Nccl, RandomFaultsNeverHang) {
  const char* given = std::getenv("TANDEM_SEED");
  const std::uint64_t first = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  std::printf("seeds %llu … (TANDEM_SEED=n repeats from seed n)\n",
              static_cast<unsigned long long>(first));
  for (std::uint64_t seed = first; seed < first + 120 && !testing::Test::HasFailure(); ++seed)
    run_scenario(seed);
}

NcclRecord record_of(std::uint64_t sequence, NcclState state, std::uint64_t epoch = 1) {
  return {.communicator = "job/weights",
          .epoch = epoch,
          .sequence = sequence,
          .kind = NcclKind::kBroadcast,
          .bytes = 8,
          .peers = {0},
          .state = state};
}

TEST(NcclRecords, NR1TheNewestAreKeptInTheirOrder) {
  NcclRecords records;
  std::vector<NcclRecords::Id> ids;
  for (std::uint64_t i = 0; i < kNcclRecordsMax + 10; ++i)
    ids.push_back(records.add(record_of(i, NcclState::kQueued)));
  records.change(ids[9], NcclState::kDone, Time{5});  // dropped by now
  records.change(ids[10], NcclState::kStarted, Time{6});
  records.change(ids.back(), NcclState::kFailed, Time{7});
  const auto kept = records.snapshot();
  ASSERT_EQ(kept.size(), kNcclRecordsMax);
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i].sequence, i + 10);
  EXPECT_EQ(kept.front().started_at, Time{6});
  EXPECT_FALSE(kept.front().ended_at);
  EXPECT_EQ(kept.back().state, NcclState::kFailed);
  EXPECT_EQ(kept.back().ended_at, Time{7});
  EXPECT_EQ(std::ranges::count(kept, NcclState::kDone, &NcclRecord::state), 0);
}

TEST(NcclRecords, AsJson) {
  NcclRecord record = record_of(3, NcclState::kStarted);
  record.label = "version 7";
  record.enqueued_at = Time{1'000'000'000};
  record.started_at = Time{2'000'000'000};
  const auto json = to_json(std::vector{record}, Time{3'000'000'000});
  EXPECT_EQ(dump_json(json),
            R"([{"bytes":8,"communicator":"job/weights","ended_seconds_ago":null,)"
            R"("enqueued_seconds_ago":2.0,"epoch":1,"kind":"broadcast","label":"version 7",)"
            R"("peers":[0],"rank":0,"sequence":3,"started_seconds_ago":1.0,"state":"started"}])");
}

TEST(NcclRecords, ExplainWhoIsBehind) {
  const std::vector<NcclRecord> two{record_of(1, NcclState::kDone),
                                    record_of(2, NcclState::kStarted)};
  const std::vector<NcclRecord> queued{record_of(1, NcclState::kDone),
                                       record_of(2, NcclState::kQueued)};
  const std::vector<NcclRecord> stale{record_of(9, NcclState::kDone, 0)};
  EXPECT_EQ(explain_stall(std::vector{two, two}, 1), "");
  EXPECT_EQ(
      explain_stall(std::vector{two, queued, two}, 1),
      "rank 1 did not enter operation 2 (broadcast of 8 bytes), which rank 0, rank 2 entered");
  EXPECT_EQ(explain_stall(std::vector{stale, two}, 1),
            "rank 0 did not enter operation 1 (broadcast of 8 bytes), which rank 1 entered");
  EXPECT_EQ(explain_stall({}, 1), "");
}

}  // namespace
}  // namespace tandem::collective
