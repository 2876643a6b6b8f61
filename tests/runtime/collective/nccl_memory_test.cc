// Memory of NCCL's and its registration, on the fake library, which stands for rules of NCCL's: an
// operation ends only where all of its ranks registered its memory or none did, and memory that a
// communicator may still use is not freed (the fake aborts the process).
#include "runtime/collective/nccl_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/guarded.h"
#include "tests/runtime/collective/nccl_rank.h"
#include "tests/runtime/patience.h"

namespace tandem::collective {
namespace {

constexpr std::size_t kBytes = 70'001;
constexpr Duration kSoon = std::chrono::milliseconds(100);

// Both ranks are on one GPU here.
const int kOneGpuForBoth = ::setenv("TANDEM_FAKE_NCCL_VERSION", "23003", 1) +
                           ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);

const FakeNccl& library() {
  static const FakeNccl opened = open_fake_nccl();
  return opened;
}

using Stuck = Guarded<std::vector<std::string>>;

struct Member {
  explicit Member(Duration grace = kNcclPatience)
      : thread({.grace = grace, .on_stuck = [calls = stuck](const StuckNcclCall& call) {
                  calls->with([&](auto& names) { names.push_back(call.name); });
                }}) {
    process = {.api = library().api, .streams = library().streams, .thread = &thread};
  }

  std::shared_ptr<NcclMemory> allocate() const {
    auto memory = NcclMemory::allocate(process, kBytes, "a test", kNcclPatience);
    EXPECT_TRUE(memory) << render(memory.error());
    return *memory;
  }

  const std::shared_ptr<Stuck> stuck = std::make_shared<Stuck>();
  NcclThread thread;
  NcclProcess process;
  std::unique_ptr<NcclCommunicator> communicator;
  char stream = 0;
};

// Two ranks that broadcast from rank 0 once.
class Pair {
 public:
  explicit Pair(Duration grace = kNcclPatience) : members_{Member(grace), Member(grace)} {}
  ~Pair() { library().set_faults(""); }

  Member& operator[](int rank) { return members_[rank]; }

  void start(int rank, std::vector<std::shared_ptr<NcclMemory>> memory, Duration timeout) {
    if (!id_) id_ = make_nccl_unique_id(members_[0].process, kNcclPatience).value();
    auto made = NcclCommunicator::start(members_[rank].process,
                                        {.epoch = 1,
                                         .unique_id = *id_,
                                         .rank = rank,
                                         .size = 2,
                                         .name = "job/weights",
                                         .memory = std::move(memory)},
                                        timeout);
    ASSERT_TRUE(made) << render(made.error());
    members_[rank].communicator = *std::move(made);
  }

  NcclTicket broadcast(int rank, const NcclMemory& memory, Duration timeout) {
    return members_[rank]
        .communicator
        ->submit({.label = "a test",
                  .transfers = {{NcclKind::kBroadcast, memory.data(), memory.size(), 0}},
                  .stream = &members_[rank].stream,
                  .timeout = timeout})
        .value();
  }

 private:
  std::optional<NcclUniqueId> id_;
  Member members_[2];
};

TEST(NcclMemory, RegisteredMemoryCarriesTheRightBytes) {
  Pair pair;
  const std::vector<std::byte> sent = bytes_of_rank(0, 1, kBytes);
  std::vector<std::shared_ptr<NcclMemory>> memory;
  for (const int rank : {0, 1}) {
    memory.push_back(pair[rank].allocate());
    pair.start(rank, {memory.back()}, kNcclPatience);
  }
  std::memcpy(memory[0]->data(), sent.data(), kBytes);
  const NcclTicket tickets[] = {pair.broadcast(0, *memory[0], kNcclPatience),
                                pair.broadcast(1, *memory[1], kNcclPatience)};
  for (const NcclTicket& ticket : tickets) {
    const Result<void> done = ticket.wait();
    EXPECT_TRUE(done) << render(done.error());
  }
  EXPECT_EQ(std::memcmp(memory[1]->data(), sent.data(), kBytes), 0);
  for (const int rank : {0, 1}) {
    const Result<void> finished = pair[rank].communicator->finish(kNcclPatience);
    EXPECT_TRUE(finished) << render(finished.error());
    EXPECT_EQ(memory[static_cast<std::size_t>(rank)].use_count(), 1);  // it is given back
  }
}

// An abort does at once the work that finish() does in order.
TEST(NcclMemory, AnAbortGivesTheMemoryBack) {
  Pair pair;
  for (const int rank : {0, 1}) pair.start(rank, {pair[rank].allocate()}, kNcclPatience);
  for (const int rank : {0, 1}) {
    const Result<void> started = pair[rank].communicator->wait_started();
    EXPECT_TRUE(started) << render(started.error());
  }
  for (const int rank : {0, 1}) pair[rank].communicator.reset();
}

TEST(NcclMemory, AnOperationOfRanksThatDoNotAllRegisterNeverEnds) {
  Pair pair;
  const auto registered = pair[0].allocate(), plain = pair[1].allocate();
  pair.start(0, {registered}, kNcclPatience);
  pair.start(1, {}, kNcclPatience);
  const NcclTicket sent = pair.broadcast(0, *registered, kSoon);
  const NcclTicket received = pair.broadcast(1, *plain, kSoon);
  EXPECT_EQ(sent.wait().error().code, ErrorCode::kTimedOut);
  EXPECT_EQ(received.wait().error().code, ErrorCode::kTimedOut);
}

std::string error_of_start(const char* faults, Duration timeout) {
  Pair pair;
  library().set_faults(faults);
  for (const int rank : {0, 1}) pair.start(rank, {pair[rank].allocate()}, timeout);
  const Result<void> started = pair[1].communicator->wait_started();
  pair[0].communicator->abort("the test says so");
  return started ? "it started" : started.error().message;
}

TEST(NcclMemory, ARegistrationThatFailsEndsTheStartByName) {
  const std::string refused =
      error_of_start("rank=1,op=register,fault=refuse,code=1", kNcclPatience);
  EXPECT_TRUE(
      refused.starts_with("cannot register 70001 bytes in the start of job/weights, epoch "
                          "1, rank 1 of 2 (NCCL_LOCAL_REGISTER=0 on all nodes does "
                          "without): ncclCommRegister: unhandled cuda error"))
      << refused;
  const std::string later = error_of_start("rank=1,op=register,fault=error,code=2", kNcclPatience);
  EXPECT_TRUE(
      later.starts_with("cannot start job/weights, epoch 1, rank 1 of 2: ncclCommRegister: "
                        "unhandled system error"))
      << later;
}

TEST(NcclMemory, NC1ARegistrationThatNeverEndsIsFoundByTheDeadline) {
  const std::string late = error_of_start("rank=1,op=register,fault=hang", kSoon);
  EXPECT_TRUE(late.starts_with("timed out after 0.")) << late;
}

TEST(NcclMemory, NH2ACallThatDoesNotReturnIsNamed) {
  const auto named = [](const Member& member, const std::string& call) {
    for (const Time late = steady_now() + kNcclPatience; steady_now() < late;)
      if (member.stuck->with(
              [&](const auto& names) { return !names.empty() && names.front().starts_with(call); }))
        return true;
    return false;
  };
  EXPECT_EQ("", with_growing_patience([&](Duration soon) -> std::string {
              Pair pair(soon);
              const auto memory = pair[1].allocate();
              library().set_faults("rank=1,op=register,fault=block");
              pair.start(0, {pair[0].allocate()}, soon);
              pair.start(1, {memory}, soon);
              if (!named(pair[1], "ncclCommRegister of job/weights, epoch 1, rank 1 of 2"))
                return "ncclCommRegister is not named";
              return pair[1].communicator->wait_started() ? "it started" : "";
            }));
  EXPECT_EQ("", with_growing_patience([&](Duration soon) -> std::string {
              Member member(soon);
              library().set_faults("op=memalloc,fault=block");
              const auto memory = NcclMemory::allocate(member.process, kBytes, "a test", soon);
              library().set_faults("");
              if (memory || memory.error().code != ErrorCode::kTimedOut) return "no time-out";
              return named(member, "ncclMemAlloc of this process") ? "" : "it is not named";
            }));
}

TEST(NcclMemory, WhatCannotBeAllocatedIsAnError) {
  const Member member;
  const auto none = NcclMemory::allocate(member.process, 0, "a test", kNcclPatience);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInvalid);
  library().set_faults("op=memalloc,fault=refuse,code=1");
  const auto refused = NcclMemory::allocate(member.process, kBytes, "a test", kNcclPatience);
  library().set_faults("");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "cannot allocate 70001 bytes for a test: ncclMemAlloc: unhandled cuda error");
}

TEST(NcclMemory, WhatItTakesIsRoundedUpAsNcclDoes) {
  const std::uint64_t step = nccl_memory_taken(1);
  EXPECT_TRUE(step == std::uint64_t{2} << 20 || step == std::uint64_t{512} << 20) << step;
  EXPECT_EQ(nccl_memory_taken(0), 0u);
  EXPECT_EQ(nccl_memory_taken(step), step);
  EXPECT_EQ(nccl_memory_taken(step + 1), 2 * step);
}

}  // namespace
}  // namespace tandem::collective
