// The emulator's streams and devices: when queued work runs (EU-5), which calls may block (EU-7),
// and how a process may go on meanwhile (EU-10). No kernel runs here, so TSan can watch.
//
// Tests tests/kernels/cuda_emulator/emulator.h.
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/kernels/cuda_emulator/emulator.h"

namespace tandem::emulator {
namespace {

constexpr std::chrono::seconds kDeadline{60};

// A gate that work waits for and a test opens.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool await() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

bool eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

class Stream {
 public:
  Stream() { EXPECT_EQ(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), cudaSuccess); }
  ~Stream() { EXPECT_EQ(cudaStreamDestroy(native), cudaSuccess); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void run(std::function<void()> work) const { enqueue_work(native, std::move(work)); }
  // Work that may block.
  void wait(std::function<void()> work) const {
    EXPECT_EQ(cudaLaunchHostFunc(
                  native,
                  [](void* held) {
                    const std::unique_ptr<std::function<void()>> own(
                        static_cast<std::function<void()>*>(held));
                    (*own)();
                  },
                  new std::function<void()>(std::move(work))),
              cudaSuccess);
  }
  void wait(Gate& gate) const {
    wait([&gate] { EXPECT_TRUE(gate.await()); });
  }
  cudaError_t synchronize() const { return cudaStreamSynchronize(native); }
  bool idle() const { return cudaStreamQuery(native) == cudaSuccess; }

  cudaStream_t native = nullptr;
};

class Event {
 public:
  Event() { EXPECT_EQ(cudaEventCreateWithFlags(&native, cudaEventDisableTiming), cudaSuccess); }
  ~Event() { EXPECT_EQ(cudaEventDestroy(native), cudaSuccess); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(const Stream& stream) const {
    EXPECT_EQ(cudaEventRecord(native, stream.native), cudaSuccess);
  }
  void hold_back(const Stream& stream) const {
    EXPECT_EQ(cudaStreamWaitEvent(stream.native, native), cudaSuccess);
  }
  bool done() const { return cudaEventQuery(native) == cudaSuccess; }

  cudaEvent_t native = nullptr;
};

class Block {
 public:
  explicit Block(std::size_t size) : bytes(size) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data), bytes), cudaSuccess);
  }
  ~Block() { EXPECT_EQ(cudaFree(data), cudaSuccess); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::string read(const Stream& stream) const {
    std::string text(bytes, ' ');
    cudaMemcpyAsync(text.data(), data, bytes, cudaMemcpyDefault, stream.native);
    EXPECT_EQ(stream.synchronize(), cudaSuccess);
    return text;
  }

  char* data = nullptr;
  std::size_t bytes;
};

TEST(Streams, Em5WorkRunsThoughNobodyWaits) {
  const Stream one, other;
  Gate first, last;
  const Event done;
  one.run([&] { first.open(); });
  done.record(one);
  done.hold_back(other);
  other.run([&] { last.open(); });
  EXPECT_TRUE(first.await());
  EXPECT_TRUE(last.await());
}

TEST(Streams, Em5WorkRunsEarlyOrLateByChance) {
  constexpr int kRounds = 1000;
  const Stream stream;
  int early = 0;
  for (int i = 0; i < kRounds; ++i) {
    std::atomic<bool> ran = false;
    stream.run([&] { ran = true; });
    early += ran ? 1 : 0;
    EXPECT_EQ(stream.synchronize(), cudaSuccess);
    EXPECT_TRUE(ran);
  }
  EXPECT_GT(early, 0);
  EXPECT_LT(early, kRounds);
}

TEST(Streams, Em5BehindAnEventMayRunOrNot) {
  constexpr int kRounds = 1000;
  const Stream stream;
  const Event event;
  int behind = 0;
  for (int i = 0; i < kRounds; ++i) {
    std::atomic<bool> before = false, after = false;
    stream.run([&] { before = true; });
    event.record(stream);
    stream.run([&] { after = true; });
    EXPECT_EQ(cudaEventSynchronize(event.native), cudaSuccess);
    EXPECT_TRUE(before);
    behind += after ? 1 : 0;
    EXPECT_EQ(stream.synchronize(), cudaSuccess);
  }
  EXPECT_GT(behind, kRounds / 10);
  EXPECT_LT(behind, kRounds);
}

TEST(Streams, Em5AQuestionIsAnsweredInTheEndWithYes) {
  const Stream stream;
  const Event event;
  EXPECT_TRUE(event.done()) << "it was recorded nowhere";
  EXPECT_TRUE(stream.idle());
  std::atomic<int> ran = 0;
  stream.run([&] { ++ran; });
  event.record(stream);
  stream.run([&] { ++ran; });
  EXPECT_TRUE(eventually([&] { return event.done(); }));
  EXPECT_GE(ran, 1);
  EXPECT_TRUE(eventually([&] { return stream.idle(); }));
  EXPECT_EQ(ran, 2);
  EXPECT_TRUE(event.done());
}

// Items on several streams, of both kinds, with events at random: each starts after the items
// before it on its stream, and after those that its stream had joined by then. The test waits for
// an item, asks about it, or leaves it alone.
TEST(Streams, Em5Em7AnyMixtureKeepsTheOrderOfItsEvents) {
  constexpr std::size_t kStreams = 4, kItems = 60;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::vector<Stream> streams(kStreams);
    const std::vector<Event> events(kStreams);
    struct Ended {
      std::atomic<bool> value = false;
    };
    std::vector<Ended> ended(kItems);
    std::vector<std::vector<std::size_t>> held(kStreams), marked(kStreams);  // items, by number
    std::atomic<int> early = 0;
    for (std::size_t item = 0; item < kItems; ++item) {
      const std::size_t at = random() % kStreams, other = random() % kStreams;
      const auto work = [&early, &ended, item, before = held[at]] {
        for (const std::size_t i : before) early += ended[i].value ? 0 : 1;
        ended[item].value = true;
      };
      if (random() % 3 == 0) {
        streams[at].wait(work);
      } else {
        streams[at].run(work);
      }
      held[at].push_back(item);
      switch (random() % 6) {
        case 0:
          events[at].record(streams[at]);
          marked[at] = held[at];
          break;
        case 1:
          events[other].hold_back(streams[at]);
          held[at].insert(held[at].end(), marked[other].begin(), marked[other].end());
          break;
        case 2:
          EXPECT_EQ(cudaEventSynchronize(events[other].native), cudaSuccess);
          for (const std::size_t i : marked[other]) EXPECT_TRUE(ended[i].value);
          break;
        case 3:
          for (const bool idle = streams[other].idle(); const std::size_t i : held[other])
            EXPECT_TRUE(!idle || ended[i].value);
          break;
        default:
          break;
      }
    }
    for (std::size_t s = 0; s < kStreams; ++s) {
      if (s % 2 == 0) {
        EXPECT_EQ(streams[s].synchronize(), cudaSuccess);
      } else {
        EXPECT_TRUE(eventually([&] { return streams[s].idle(); }));
      }
      for (const std::size_t i : held[s]) EXPECT_TRUE(ended[i].value);
    }
    EXPECT_EQ(early, 0);
  }
}

TEST(Streams, Em7WorkThatWaitsHoldsUpItsOwnStreamAlone) {
  const Stream waits, other;
  Gate gate;
  const Event event;
  std::atomic<bool> passed = false;
  waits.wait(gate);
  waits.run([&] { passed = true; });
  event.record(waits);
  for (int i = 0; i < 100; ++i) {
    std::atomic<bool> ran = false;
    other.run([&] { ran = true; });
    EXPECT_EQ(other.synchronize(), cudaSuccess);
    EXPECT_TRUE(ran);
  }
  std::thread([] {
    const Stream own;
    Gate ran;
    own.run([&] { ran.open(); });
    EXPECT_TRUE(ran.await());
  }).join();
  EXPECT_FALSE(passed);
  EXPECT_FALSE(event.done());
  EXPECT_FALSE(waits.idle());
  gate.open();
  EXPECT_EQ(cudaEventSynchronize(event.native), cudaSuccess);
  EXPECT_TRUE(passed);
}

TEST(Streams, Em7WhoJoinsAStreamWaitsForItsWork) {
  const Stream waits, joins;
  Gate gate, entered;
  const Event event;
  std::atomic<bool> passed = false, joined = false;
  waits.wait([&] {
    entered.open();
    EXPECT_TRUE(gate.await());
    passed = true;
  });
  event.record(waits);
  event.hold_back(joins);
  joins.run([&] { joined = passed.load(); });
  EXPECT_TRUE(entered.await()) << "it starts although no thread waits for it";
  std::atomic<bool> back = false;
  std::thread waiter([&] {
    EXPECT_EQ(joins.synchronize(), cudaSuccess);
    back = true;
  });
  const Stream other;
  for (int i = 0; i < 100; ++i) {
    other.run([] {});
    EXPECT_EQ(other.synchronize(), cudaSuccess);
  }
  EXPECT_FALSE(joins.idle());
  EXPECT_FALSE(back);
  gate.open();
  waiter.join();
  EXPECT_TRUE(joined);
}

// A collective is aborted like this: its work looks at a flag.
TEST(Streams, Em7WorkThatWaitsEndsWhenItIsTold) {
  const Stream stream;
  std::atomic<bool> told = false;
  stream.wait([&] { EXPECT_TRUE(eventually([&] { return told.load(); })); });
  EXPECT_FALSE(stream.idle());
  std::thread([&] { told = true; }).join();
  EXPECT_EQ(stream.synchronize(), cudaSuccess);
}

TEST(Streams, Em7OfSeveralThatWaitOnOneStreamTheNextStartsWhenOneHasEnded) {
  const Stream stream;
  std::atomic<int> under_way = 0, most = 0, ran = 0;
  for (int i = 0; i < 50; ++i) {
    stream.wait([&] {
      most = std::max(most.load(), ++under_way);
      std::this_thread::yield();
      ++ran;
      --under_way;
    });
  }
  EXPECT_EQ(stream.synchronize(), cudaSuccess);
  EXPECT_EQ(ran, 50);
  EXPECT_EQ(most, 1);
}

TEST(Streams, Em7ADestroyedStreamsWorkGoesOn) {
  Gate gate, last;
  {
    const Stream stream;
    stream.wait(gate);
    stream.run([&] { last.open(); });
  }
  gate.open();
  EXPECT_TRUE(last.await());
}

cudaGraphExec_t recorded(const Stream& stream, const std::function<void()>& work) {
  EXPECT_EQ(cudaStreamBeginCapture(stream.native, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  work();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream.native, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  return executable;
}

TEST(Streams, Em6NeitherTheHostNorAQuestionIsRecorded) {
  const Stream stream;
  const Event event;
  const auto nothing = [](void*) {};
  cudaGraphExec_t graph = recorded(stream, [&] {
    const cudaError_t refused = cudaErrorStreamCaptureUnsupported;
    EXPECT_EQ(cudaLaunchHostFunc(stream.native, nothing, nullptr), refused);
    EXPECT_NE(tandem_emulated_enqueue(stream.native, nothing, nullptr), 0);
    EXPECT_EQ(cudaStreamQuery(stream.native), refused);
    EXPECT_EQ(cudaEventQuery(event.native), refused);
  });
  EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

TEST(Streams, Em7AGraphStandsBehindWorkThatWaits) {
  const Stream stream;
  Gate gate;
  std::atomic<int> ran = 0;
  cudaGraphExec_t graph = recorded(stream, [&] { stream.run([&] { ++ran; }); });
  stream.wait(gate);
  EXPECT_EQ(cudaGraphLaunch(graph, stream.native), cudaSuccess);
  EXPECT_FALSE(stream.idle());
  EXPECT_EQ(ran, 0);
  gate.open();
  EXPECT_TRUE(eventually([&] { return stream.idle(); }));
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess) << "its end was asked for";
}

// The host knows of one stream's work by another that has joined it.
TEST(StreamsDeathTest, Em6AGraphGoesWhenTheHostHasLearntThatItIsOver) {
  const Stream stream, other;
  const Event event;
  Gate ran;
  cudaGraphExec_t graph = recorded(stream, [&] { stream.run([&] { ran.open(); }); });
  EXPECT_EQ(cudaGraphLaunch(graph, stream.native), cudaSuccess);
  event.record(stream);
  event.hold_back(other);
  EXPECT_TRUE(ran.await());
  EXPECT_DEATH(cudaGraphExecDestroy(graph), "destroyed before its work had run");
  EXPECT_EQ(other.synchronize(), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

TEST(StreamsDeathTest, ADestroyedStreamIsNotUsed) {
  auto stream = std::make_unique<Stream>();
  cudaStream_t gone = stream->native;
  stream.reset();
  EXPECT_DEATH(cudaStreamSynchronize(gone), "a stream is used that was destroyed");
}

TEST(Streams, Em8WorkThatWaitsReachesDeviceMemory) {
  const Stream stream, other;
  const Block block(3000), busy(100);
  cudaMemsetAsync(block.data, 'a', block.bytes, stream.native);
  stream.wait([&] {
    std::string text(1000, ' ');
    EXPECT_EQ(tandem_emulated_read(block.data + 1000, text.data(), 1000), 0);
    EXPECT_EQ(text, std::string(1000, 'a'));
    text.assign(1000, 'b');
    EXPECT_EQ(tandem_emulated_write(block.data + 2000, text.data(), 1000), 0);
  });
  for (int i = 0; i < 200; ++i) {  // meanwhile memory is opened and closed by others
    cudaMemsetAsync(busy.data, i, busy.bytes, other.native);
    EXPECT_EQ(other.synchronize(), cudaSuccess);
  }
  EXPECT_EQ(block.read(stream), std::string(2000, 'a') + std::string(1000, 'b'));
}

TEST(Streams, Em8OnlyWhatLiesInOneBlockIsReached) {
  const Block block(1000), next(5000);
  std::vector<char> host(10000, 'h'), copy(10000);
  const auto both = [&](char* there, std::size_t bytes) {
    const int read = tandem_emulated_read(there, copy.data(), bytes);
    const int written = tandem_emulated_write(there, host.data(), bytes);
    EXPECT_EQ(read, written);
    return read == 0;
  };
  EXPECT_TRUE(both(block.data, 1000));
  EXPECT_TRUE(both(block.data + 999, 1));
  EXPECT_TRUE(both(block.data + 1000, 0));
  EXPECT_FALSE(both(block.data, 1001));
  EXPECT_FALSE(both(block.data + 1000, 1));
  EXPECT_FALSE(both(block.data - 1, 2));
  EXPECT_FALSE(both(next.data - 4000, 1)) << "a page without access";
  EXPECT_FALSE(both(next.data, 10000));
  EXPECT_TRUE(both(host.data(), 10000)) << "the host's own memory";
  EXPECT_EQ(copy, host);
}

class Devices : public testing::Test {
 protected:
  ~Devices() override {
    ::unsetenv("TANDEM_EMULATED_GPUS");
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  }
  // The bus ids of those that are seen.
  static std::string seen(const char* gpus, const char* visible) {
    ::setenv("TANDEM_EMULATED_GPUS", gpus, 1);
    ::setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    EXPECT_EQ(error, count == 0 ? cudaErrorNoDevice : cudaSuccess);
    std::string all;
    for (int i = 0; i < count; ++i) {
      char id[32] = "";
      EXPECT_EQ(cudaDeviceGetPCIBusId(id, sizeof id, i), cudaSuccess);
      all += std::string(id) + " ";
    }
    return all;
  }
  static std::size_t free_bytes() {
    std::size_t left = 0, total = 0;
    EXPECT_EQ(cudaMemGetInfo(&left, &total), cudaSuccess);
    return left;
  }
};

TEST_F(Devices, Em9ThoseThatAreVisibleAreSeenInTheirOrder) {
  const std::string none, zero = "0000:01:00.0 ", one = "0000:02:00.0 ", two = "0000:03:00.0 ";
  EXPECT_EQ(seen("3", "0,1,2"), zero + one + two);
  EXPECT_EQ(seen("3", "2, 0"), two + zero);
  EXPECT_EQ(seen("3", "1"), one);
  EXPECT_EQ(seen("3", ""), none);
  EXPECT_EQ(seen("3", "1,3,0"), one);
  EXPECT_EQ(seen("3", "1,1,0"), one);
  EXPECT_EQ(seen("3", "GPU-20000000-fake,GPU-0"), two + zero);
  EXPECT_EQ(seen("1", "GPU-1"), none);
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 1);
  ::setenv("TANDEM_EMULATED_GPUS", "2", 1);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 2);
}

TEST_F(Devices, Em9EachHasItsOwnMemoryAndName) {
  EXPECT_NE(seen("2", "0,1"), "");
  cudaDeviceProp zero, one;
  EXPECT_EQ(cudaGetDeviceProperties(&zero, 0), cudaSuccess);
  EXPECT_EQ(cudaGetDeviceProperties(&one, 1), cudaSuccess);
  EXPECT_NE(zero.uuid.bytes[0], one.uuid.bytes[0]);
  EXPECT_EQ(cudaGetDeviceProperties(&one, 2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  int can = 0, device = 7;
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
  EXPECT_EQ(can, 1);
  const std::size_t before = free_bytes();
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  std::thread([&] { EXPECT_EQ(cudaGetDevice(&device), cudaSuccess); }).join();
  EXPECT_EQ(device, 0) << "a thread begins with the first one";
  {
    const Block block(1 << 20);
    EXPECT_EQ(free_bytes(), before - (1 << 20));
    void* more = nullptr;
    EXPECT_EQ(cudaMalloc(&more, before), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(free_bytes(), before);
    const Stream stream;  // which may touch its neighbour's
    cudaMemsetAsync(block.data, 'x', 10, stream.native);
    EXPECT_EQ(block.read(stream).substr(0, 10), std::string(10, 'x'));
    cudaIpcMemHandle_t handle;
    EXPECT_EQ(cudaIpcGetMemHandle(&handle, block.data), cudaSuccess);
    EXPECT_EQ(cudaIpcOpenMemHandle(&more, handle, cudaIpcMemLazyEnablePeerAccess), cudaSuccess);
    char first = 0;
    EXPECT_EQ(tandem_emulated_read(more, &first, 1), 0);
    EXPECT_EQ(first, 'x');
    EXPECT_EQ(free_bytes(), before) << "it is its owner's";
    EXPECT_EQ(cudaIpcCloseMemHandle(more), cudaSuccess);
  }
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(free_bytes(), before);
}

__global__ void nothing_kernel() {}

TEST_F(Devices, Em9AKernelRunsOnTheDeviceOfItsStream) {
  EXPECT_NE(seen("2", "0,1"), "");
  const Stream stream;
  const cudaLaunchConfig_t config{.gridDim = 1, .blockDim = 1, .stream = stream.native};
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaLaunchKernelEx(&config, nothing_kernel), cudaErrorInvalidResourceHandle);
}

TEST(Processes, Em10AChildOfForkRunsWhatItWaitsFor) {
  const Stream stream, busy;
  const Block block(100);
  std::atomic<bool> told = false;
  for (int i = 0; i < 100; ++i) busy.run([] { std::this_thread::yield(); });
  busy.wait([&] { EXPECT_TRUE(eventually([&] { return told.load(); })); });
  const pid_t child = ::fork();
  if (child == 0) {
    cudaMemsetAsync(block.data, 'c', block.bytes, stream.native);
    const bool waited = block.read(stream) == std::string(100, 'c');
    cudaMemsetAsync(block.data, 'd', block.bytes, stream.native);
    const bool asked = eventually([&] { return stream.idle(); });
    ::_exit(waited && asked && block.read(stream) == std::string(100, 'd') ? 0 : 1);
  }
  told = true;
  EXPECT_EQ(busy.synchronize(), cudaSuccess);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ProcessesDeathTest, Em10AProcessExitsWhileWorkIsUnderWay) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exits = [] {
    static Gate& never = *new Gate;  // an end of it would wait for who waits at it
    const Stream stream, waits;
    waits.wait(never);
    for (int i = 0; i < 10'000; ++i) stream.run([] { std::this_thread::yield(); });
    std::exit(17);
  };
  EXPECT_EXIT(exits(), testing::ExitedWithCode(17), "");
}

}  // namespace
}  // namespace tandem::emulator
