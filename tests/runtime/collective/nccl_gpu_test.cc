// Two ranks, each a process, that exchange GPU memory by NCCL: on a machine's two GPUs, or sharing
// its one. On the emulator with the fake library it is a test of this program; on a GPU it is a
// test of NCCL itself, which the fake only imitates (scripts/gpu_check). The processes are forks of
// this one, which touches neither CUDA nor NCCL.
//
// Tests runtime/collective/nccl_communicator.h.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/rng.h"
#include "runtime/collective/nccl_communicator.h"
#include "runtime/collective/nccl_memory.h"
#include "runtime/device/cuda_module.h"
#include "runtime/device/queue.h"

namespace tandem::collective {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr Duration kPatience = std::chrono::seconds(60);  // per operation; ends a hang
constexpr Duration kDeathNoticed = std::chrono::seconds(20);
constexpr unsigned kProcessSeconds = 200;  // ends a process that hangs

using Words = std::vector<std::uint64_t>;

// The size of each transfer, smaller on the emulator, which is slow. Only ranks ask for it.
std::size_t bytes_each() {
  static const bool emulated =
      std::strcmp(device::cuda_module().value()->devices().name, "emulated") == 0;
  return (emulated ? 1 : 64) * kMebibyte;
}
std::size_t words_each() { return bytes_each() / sizeof(std::uint64_t); }

struct Pipe {
  Pipe() { CHECK(::pipe(ends) == 0); }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(int end) {
    if (ends[end] >= 0) ::close(std::exchange(ends[end], -1));
  }
  bool read_all(void* to, std::size_t bytes) const {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = ::read(ends[0], at, bytes);
      if (got <= 0) return false;
      at += got;
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }
  void write_all(const void* from, std::size_t bytes) const {
    CHECK(::write(ends[1], from, bytes) == static_cast<ssize_t>(bytes));
  }
  int ends[2];
};

// A fork that runs `body` and exits with its result.
pid_t start_process(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  CHECK(pid >= 0);
  if (pid > 0) return pid;
  ::alarm(kProcessSeconds);
  const int code = body();
  std::fflush(nullptr);
  std::_Exit(code);
}

// "exit 0", "signal 9".
std::string end_of(pid_t pid) {
  int status = 0;
  CHECK(::waitpid(pid, &status, 0) == pid);
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                             : "exit " + std::to_string(WEXITSTATUS(status));
}

struct Machine {  // trivial: a process of its own finds out and sends it
  int gpus = 0;
  int nccl_version = 0;
  char missing[256] = "";
};

Machine look_around() {
  Pipe answer;
  const pid_t pid = start_process([&answer] {
    Machine machine;
    const auto& module = device::cuda_module();
    const auto nccl = open_nccl();
    if (module) machine.gpus = module.value()->devices().count;
    if (nccl) machine.nccl_version = nccl->version;
    const std::string missing =
        !module ? module.error().message : (nccl ? "" : nccl.error().message);
    missing.copy(machine.missing, sizeof machine.missing - 1);
    answer.write_all(&machine, sizeof machine);
    return 0;
  });
  answer.close_end(1);
  Machine machine;
  EXPECT_TRUE(answer.read_all(&machine, sizeof machine));
  EXPECT_EQ(end_of(pid), "exit 0");
  return machine;
}

// The two ranks start with a GPU each where there are two. Else they share one: NCCL allows that
// since 2.30.3; an older NCCL takes one GPU for two if the ranks seem to be on two hosts.
std::string choose_gpu(const Machine& machine, int rank) {
  if (machine.gpus >= kRanks) {
    const char* const shown = std::getenv("CUDA_VISIBLE_DEVICES");
    std::string rest = shown != nullptr ? shown : "0,1";
    if (rank == 1) rest = rest.substr(rest.find(',') + 1);
    ::setenv("CUDA_VISIBLE_DEVICES", rest.substr(0, rest.find(',')).c_str(), 1);
    return "on two GPUs";
  }
  if (machine.nccl_version >= 23003) {
    ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    ::setenv("NCCL_NVLS_ENABLE", "0", 1);
    return "sharing a GPU";
  }
  ::setenv("NCCL_HOSTID", ("rank" + std::to_string(rank)).c_str(), 1);
  ::setenv("NCCL_NET", "Socket", 1);
  ::setenv("NCCL_P2P_DISABLE", "1", 1);
  ::setenv("NCCL_SHM_DISABLE", "1", 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  return "sharing a GPU as two hosts";
}

Words words_of(int rank, int round) {
  Rng rng(derive_seed(static_cast<std::uint64_t>(rank), {static_cast<std::uint64_t>(round)}));
  Words words(words_each());
  for (std::uint64_t& word : words) word = rng.next();
  return words;
}

NcclStreamFunctions streams_of(const device::CudaModule& module) {
  return {.create_event = module.create_event,
          .record_event = module.record_event,
          .event_done = module.event_done,
          .destroy_event = module.destroy_event};
}

// One rank, in its process, and its memory, which is registered with NCCL. Rank 0 makes the unique
// id and sends it through the pipe.
class GpuRank {
 public:
  GpuRank(int rank, const Pipe& ids) : rank_(rank) {
    process_.streams = streams_of(**device::cuda_module());
    process_.thread = &thread_;
    memory_ = NcclMemory::allocate(process_, 2 * bytes_each(), "a test", kPatience).value();
    one = memory_->data();
    other = one + bytes_each();
    NcclUniqueId id;
    if (rank == 0) {
      id = make_nccl_unique_id(process_, kPatience).value();
      ids.write_all(&id, sizeof id);
    } else {
      CHECK(ids.read_all(&id, sizeof id));
    }
    const NcclEpoch epoch{.epoch = 1,
                          .unique_id = id,
                          .rank = rank,
                          .size = kRanks,
                          .name = "gpu check",
                          .memory = {memory_}};
    communicator_ = NcclCommunicator::start(process_, epoch, kPatience).value();
  }

  int rank() const { return rank_; }
  NcclCommunicator& communicator() { return *communicator_; }

  void fill(std::byte* memory, const Words& words) {
    copy(queue_.stream(), memory, reinterpret_cast<const std::byte*>(words.data()), bytes_each());
    synchronize(queue_.stream());
  }
  Words content(const std::byte* memory) {
    Words words(words_each());
    copy(queue_.stream(), reinterpret_cast<std::byte*>(words.data()), memory, bytes_each());
    synchronize(queue_.stream());
    return words;
  }
  Result<NcclTicket> submit(std::vector<NcclTransfer> transfers, Duration timeout) {
    return communicator_->submit({.label = "a check",
                                  .transfers = std::move(transfers),
                                  .stream = queue_.stream().native,
                                  .timeout = timeout});
  }
  Result<void> broadcast(int root, Duration timeout) {
    const auto ticket = submit({{NcclKind::kBroadcast, one, bytes_each(), root}}, timeout);
    return ticket ? ticket->wait() : Result<void>(ticket.error());
  }

  std::byte* one = nullptr;  // on the GPU
  std::byte* other = nullptr;

 private:
  const int rank_;
  device::Queue queue_{device::DeviceKind::kCuda};
  NcclThread thread_;
  NcclProcess process_{.api = open_nccl().value(), .streams = {}};
  std::shared_ptr<NcclMemory> memory_;
  std::unique_ptr<NcclCommunicator> communicator_;  // ends before the memory
};

// A process that fails prints its reason and exits with another code than 0.
int failed(const GpuRank& rank, const std::string& what) {
  std::printf("rank %d: error: %s\n", rank.rank(), what.c_str());
  return 1;
}

// After an error neither NCCL nor the stream touches the memory any more.
int memory_is_free(GpuRank& rank) {
  for (int round = 100; round < 102; ++round) {
    const Words words = words_of(rank.rank(), round);
    rank.fill(rank.one, words);
    if (rank.content(rank.one) != words) return failed(rank, "the memory is not free");
  }
  return 0;
}

class NcclOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    machine_ = look_around();
    const std::string missing = machine_.missing;
    if (missing.empty()) return;
    ASSERT_FALSE(missing.starts_with("no CUDA module")) << missing;  // the build's fault
    std::printf("no GPU to test on: %s\n", missing.c_str());
    GTEST_SKIP();
  }

  // Runs both ranks, each in its process, and returns how each ended.
  std::vector<std::string> run(const std::function<int(GpuRank&, Pipe& both_live)>& body) {
    Pipe ids, both_live;
    std::vector<pid_t> processes;
    for (int rank = 0; rank < kRanks; ++rank)
      processes.push_back(start_process([&, rank] {
        const std::string way = choose_gpu(machine_, rank);
        if (rank == 0)
          std::printf("NCCL %s, two ranks %s\n", nccl_version_text(machine_.nccl_version).c_str(),
                      way.c_str());
        both_live.close_end(rank == 0 ? 0 : 1);
        GpuRank member(rank, ids);
        if (const auto started = member.communicator().wait_started(); !started)
          return failed(member, render(started.error()));
        return body(member, both_live);
      }));
    both_live.close_end(0);
    both_live.close_end(1);
    std::vector<std::string> ends;
    for (const pid_t pid : processes) ends.push_back(end_of(pid));
    return ends;
  }

  Machine machine_;
};

using Ends = std::vector<std::string>;

TEST_F(NcclOnGpu, NC4BroadcastsAndARingCarryTheRightBytes) {
  const Ends ends = run([](GpuRank& rank, Pipe&) {
    for (int round = 0; round < 2 * kRanks; ++round) {
      const int root = round % kRanks;
      const Words sent = words_of(root, round);
      rank.fill(rank.one, rank.rank() == root ? sent : Words(words_each()));
      const Time began = steady_now();
      if (const auto done = rank.broadcast(root, kPatience); !done)
        return failed(rank, render(done.error()));
      if (rank.rank() == 0)
        std::printf("NCCL broadcast of %zu MiB: %.2f GB/s\n", bytes_each() / kMebibyte,
                    static_cast<double>(bytes_each()) / 1e9 / seconds(steady_now() - began));
      if (rank.content(rank.one) != sent) return failed(rank, "wrong bytes by broadcast");
    }
    const int peer = 1 - rank.rank();
    rank.fill(rank.one, words_of(rank.rank(), 50));
    const auto ring = rank.submit({{NcclKind::kSend, rank.one, bytes_each(), peer},
                                   {NcclKind::kReceive, rank.other, bytes_each(), peer}},
                                  kPatience);
    if (!ring) return failed(rank, render(ring.error()));
    if (const auto done = ring->wait(); !done) return failed(rank, render(done.error()));
    if (rank.content(rank.other) != words_of(peer, 50)) return failed(rank, "wrong bytes by ring");
    const auto finished = rank.communicator().finish(kPatience);
    return finished ? 0 : failed(rank, render(finished.error()));
  });
  EXPECT_EQ(ends, (Ends{"exit 0", "exit 0"}));
}

// Rank 1 runs and takes no part, so only the abort can end rank 0's operation.
TEST_F(NcclOnGpu, NC3AnAbortEndsAnOperationThatIsUnderWay) {
  const Ends ends = run([](GpuRank& rank, Pipe& both_live) {
    if (rank.rank() == 1) {
      char none = 0;
      (void)both_live.read_all(&none, 1);  // until rank 0 has ended
      rank.communicator().abort("rank 0 has aborted");
      return 0;
    }
    const auto ticket = rank.submit({{NcclKind::kBroadcast, rank.one, bytes_each(), 0}}, kPatience);
    if (!ticket) return failed(rank, render(ticket.error()));
    rank.communicator().abort("the check says so");
    const auto done = ticket->wait();
    if (done) return failed(rank, "an aborted operation succeeded");
    if (done.error().code == ErrorCode::kTimedOut) return failed(rank, render(done.error()));
    return memory_is_free(rank);
  });
  EXPECT_EQ(ends, (Ends{"exit 0", "exit 0"}));
}

TEST_F(NcclOnGpu, NC1APeerThatDiesEndsTheOperationByItsDeadline) {
  const Ends ends = run([](GpuRank& rank, Pipe&) {
    if (const auto done = rank.broadcast(0, kPatience); !done)
      return failed(rank, render(done.error()));
    if (rank.rank() == 1) ::raise(SIGKILL);
    if (rank.broadcast(1, kDeathNoticed)) return failed(rank, "the dead have sent");
    return memory_is_free(rank);
  });
  EXPECT_EQ(ends, (Ends{"exit 0", "signal 9"}));
}

}  // namespace
}  // namespace tandem::collective
