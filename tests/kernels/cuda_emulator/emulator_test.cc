// The emulator itself, with kernels of these tests: it computes as CUDA does, and sees each broken
// rule (EU-1 … EU-6). Queued work and devices are tested in streams_test.cc.
// Tests tests/kernels/cuda_emulator/emulator.h.
#include "tests/kernels/cuda_emulator/emulator.h"

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <future>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "kernels/cuda/primitives.cuh"
#include "runtime/device/dtype.h"

namespace tandem::emulator {
namespace {

using kernels::cuda::dynamic_shared;

constexpr unsigned kAll = 0xffffffffu;

// A block of device memory and a stream, as a test needs them.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(std::size_t count, cudaStream_t stream) : count_(count), stream_(stream) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data), count * sizeof(T)), cudaSuccess);
  }
  ~OnDevice() { cudaFree(data); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  std::vector<T> read() const {
    std::vector<T> values(count_);
    cudaMemcpyAsync(values.data(), data, count_ * sizeof(T), cudaMemcpyDefault, stream_);
    cudaStreamSynchronize(stream_);
    return values;
  }

  T* data = nullptr;

 private:
  std::size_t count_;
  cudaStream_t stream_;
};

class Emulator : public testing::Test {
 protected:
  Emulator() { cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  ~Emulator() override { cudaStreamDestroy(stream_); }

  template <class... Parameters, class... Arguments>
  cudaError_t launch(dim3 grid, dim3 block, std::size_t shared, void (*kernel)(Parameters...),
                     Arguments... arguments) {
    const cudaLaunchConfig_t config{
        .gridDim = grid, .blockDim = block, .dynamicSmemBytes = shared, .stream = stream_};
    return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
  }
  void run() { cudaStreamSynchronize(stream_); }

  cudaStream_t stream_ = nullptr;
};

using EmulatorDeathTest = Emulator;

__global__ void number_kernel(int* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned all = block * blockDim.x * blockDim.y * blockDim.z + thread;
  out[all] = static_cast<int>(all);
}

TEST_F(Emulator, EveryThreadOfEveryBlockRunsOnce) {
  const OnDevice<int> out(2 * 3 * 2 * 4 * 5 * 3, stream_);
  ASSERT_EQ(launch(dim3(2, 3, 2), dim3(4, 5, 3), 0, number_kernel, out.data), cudaSuccess);
  std::vector<int> expected(2 * 3 * 2 * 4 * 5 * 3);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(out.read(), expected);
}

__global__ void reverse_kernel(int* values) {
  __shared__ int held[1024];
  const int i = static_cast<int>(threadIdx.x), n = static_cast<int>(blockDim.x);
  for (int round = 0; round < 3; ++round) {
    held[i] = values[i];
    __syncthreads();
    values[i] = held[n - 1 - i];
    __syncthreads();
  }
}

TEST_F(Emulator, BarriersMakeThreadsMeet) {
  for (const int n : {1, 31, 32, 257, 1024}) {
    std::vector<int> values(static_cast<std::size_t>(n));
    std::iota(values.begin(), values.end(), 0);
    const OnDevice<int> out(values.size(), stream_);
    cudaMemcpyAsync(out.data, values.data(), values.size() * 4, cudaMemcpyDefault, stream_);
    ASSERT_EQ(launch(1, static_cast<unsigned>(n), 0, reverse_kernel, out.data), cudaSuccess);
    run();
    std::reverse(values.begin(), values.end());
    EXPECT_EQ(out.read(), values) << n;
  }
}

__global__ void neighbour_kernel(int* values, bool meets) {
  __shared__ int held[64];
  const int i = static_cast<int>(threadIdx.x);
  held[i] = i;
  if (meets) __syncthreads();
  values[i] = held[(i + 1) % 64];
}

TEST_F(Emulator, Em1AMissingBarrierComesOutWrong) {
  std::vector<int> expected(64);
  for (int i = 0; i < 64; ++i) expected[static_cast<std::size_t>(i)] = (i + 1) % 64;
  const OnDevice<int> out(64, stream_);
  launch(1, 64, 0, neighbour_kernel, out.data, true);
  EXPECT_EQ(out.read(), expected);
  launch(1, 64, 0, neighbour_kernel, out.data, false);
  EXPECT_NE(out.read(), expected);
}

__global__ void last_block_kernel(int* value) { *value = static_cast<int>(blockIdx.x); }

TEST_F(Emulator, Em1BlocksRunInNoParticularOrder) {
  const OnDevice<int> last(1, stream_);
  bool any_other = false;
  for (int i = 0; i < 8; ++i) {
    launch(16, 1, 0, last_block_kernel, last.data);
    any_other |= last.read()[0] != 15;
  }
  EXPECT_TRUE(any_other);
}

__global__ void shuffles_kernel(int* out) {
  const int lane = static_cast<int>(threadIdx.x) % 32, i = static_cast<int>(threadIdx.x);
  out[i] = __shfl_xor_sync(kAll, i, 5);
  out[64 + i] = __shfl_down_sync(kAll, i, 3, 8);
  out[128 + i] = __shfl_up_sync(kAll, i, 3, 8);
  out[192 + i] = __shfl_sync(kAll, i, 9, 8);
  out[256 + i] = static_cast<int>(__ballot_sync(kAll, lane % 3 == 0));
  out[320 + i] = lane < 16 ? __shfl_xor_sync(0x0000ffffu, i, 1) : -1;
  out[384 + i] = __any_sync(kAll, i == 40) * 2 + __all_sync(kAll, i >= 32);
}

TEST_F(Emulator, LanesExchangeAsCudaSays) {
  const OnDevice<int> out(7 * 64, stream_);
  launch(1, 64, 0, shuffles_kernel, out.data);
  const std::vector<int> got = out.read();
  for (int i = 0; i < 64; ++i) {
    const auto at = [&](int part) { return got[static_cast<std::size_t>(part * 64 + i)]; };
    EXPECT_EQ(at(0), i ^ 5);
    EXPECT_EQ(at(1), i % 8 + 3 < 8 ? i + 3 : i);
    EXPECT_EQ(at(2), i % 8 >= 3 ? i - 3 : i);
    EXPECT_EQ(at(3), i / 8 * 8 + 1);
    EXPECT_EQ(static_cast<unsigned>(at(4)), 0x49249249u);
    EXPECT_EQ(at(5), i % 32 < 16 ? i ^ 1 : -1);
    EXPECT_EQ(at(6), i < 32 ? 0 : 3);
  }
}

__global__ void ended_kernel() {
  if (threadIdx.x < 7) return;
  __syncthreads();
}

__global__ void two_barriers_kernel() {
  if (threadIdx.x < 7) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void lost_lane_kernel(int* out) {
  if (threadIdx.x == 3) return;
  *out = __shfl_xor_sync(kAll, 1, 1);
}

__global__ void barrier_and_shuffle_kernel(int* out) {
  if (threadIdx.x == 3) __syncthreads();
  *out = __shfl_xor_sync(kAll, 1, 1);
}

__global__ void stranger_kernel(int* out) {
  if (threadIdx.x < 4) *out = __shfl_sync(0x0fu, 1, 9);
}

__global__ void not_invited_kernel(int* out) { *out = __shfl_sync(0x0fu, 1, 0); }

TEST_F(EmulatorDeathTest, Em2DivergenceIsSeen) {
  const auto run_one = [&](auto kernel, auto... arguments) {
    launch(1, 64, 0, kernel, arguments...);
    run();
  };
  EXPECT_DEATH(run_one(ended_kernel), "waits at a barrier at .*has ended");
  EXPECT_DEATH(run_one(two_barriers_kernel), "waits at a barrier at .*waits at a barrier at");
  const OnDevice<int> out(1, stream_);
  EXPECT_DEATH(run_one(lost_lane_kernel, out.data), "waits at a shuffle at .*thread 3 has ended");
  EXPECT_DEATH(run_one(barrier_and_shuffle_kernel, out.data), "thread 3 waits at a barrier");
  EXPECT_DEATH(run_one(stranger_kernel, out.data), "lane 9, which is not among 0000000f");
  EXPECT_DEATH(run_one(not_invited_kernel, out.data), "without itself");
}

TEST_F(EmulatorDeathTest, Em2AWarpThatIsNotWholeIsNotAllLanes) {
  const OnDevice<int> out(1, stream_);
  EXPECT_DEATH(
      {
        launch(1, 20, 0, lost_lane_kernel, out.data);
        run();
      },
      "has ended|does not have");
}

__global__ void nothing_kernel() {}

TEST_F(Emulator, Em2LaunchesOutsideTheLimitsAreErrors) {
  const auto tried = [&](dim3 grid, dim3 block, std::size_t shared = 0) {
    return launch(grid, block, shared, nothing_kernel);
  };
  EXPECT_EQ(tried(1, 1024), cudaSuccess);
  EXPECT_EQ(tried(1, 1025), cudaErrorInvalidConfiguration);
  EXPECT_EQ(tried(1, dim3(1, 1, 65)), cudaErrorInvalidConfiguration);
  EXPECT_EQ(tried(1, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(tried(0, 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(tried(dim3(1, 65536), 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(tried(1, 1, (48 << 10) + 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaFuncSetAttribute(nothing_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 (227 << 10) + 1),
            cudaErrorInvalidValue);
  EXPECT_EQ(
      cudaFuncSetAttribute(nothing_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 96 << 10),
      cudaSuccess);
  EXPECT_EQ(tried(1, 1, 96 << 10), cudaSuccess);
}

__global__ void greedy_kernel() {}

TEST_F(EmulatorDeathTest, Em2AnAllowanceIsNotTakenBack) {
  const auto allow = [](int bytes) {
    return cudaFuncSetAttribute(greedy_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  EXPECT_EQ(allow(96 << 10), cudaSuccess);
  EXPECT_EQ(allow(96 << 10), cudaSuccess);
  EXPECT_DEATH(allow(95 << 10), "cut from 98304 to 97280 bytes");
  EXPECT_EQ(allow(100 << 10), cudaSuccess);
}

template <class T>
__global__ void unwritten_kernel(float* out) {
  __shared__ T fixed[8];
  T* dynamic = dynamic_shared<T>();
  out[2 * blockIdx.x] = static_cast<float>(fixed[3]);
  out[2 * blockIdx.x + 1] = static_cast<float>(dynamic[3]);
  fixed[3] = dynamic[3] = T(1);
}

TEST_F(Emulator, Em3SharedMemoryHoldsNothingOfTheBlockBefore) {
  const OnDevice<float> out(6, stream_);
  launch(3, 1, 64, unwritten_kernel<double>, out.data);
  for (const float value : out.read()) EXPECT_TRUE(std::isnan(value));
  launch(3, 1, 64, unwritten_kernel<float>, out.data);
  for (const float value : out.read()) EXPECT_TRUE(std::isnan(value));
}

TEST_F(Emulator, Em3FreshMemoryHoldsNaN) {
  const OnDevice<float> out(5, stream_);
  for (const float value : out.read()) EXPECT_TRUE(std::isnan(value));
}

__global__ void touch_kernel(const char* from, char* to, std::ptrdiff_t at) { *to = from[at]; }
__global__ void write_kernel(char* to, std::ptrdiff_t at) { to[at] = 1; }

TEST_F(EmulatorDeathTest, Em4StepsOverTheEndOfABlockAreSeen) {
  const OnDevice<char> block(1024, stream_), odd(1000, stream_), out(1, stream_);
  const auto read_at = [&](std::ptrdiff_t at) {
    launch(1, 1, 0, touch_kernel, block.data, out.data, at);
    run();
  };
  read_at(0);
  read_at(1023);
  EXPECT_DEATH(read_at(1024), "a kernel touched memory");
  EXPECT_DEATH(read_at(-4096), "a kernel touched memory");
  EXPECT_DEATH(
      {
        launch(1, 1, 0, write_kernel, odd.data, 1001);
        run();
      },
      "a kernel wrote 1 bytes past the end of a block of 1000 bytes");
}

TEST_F(EmulatorDeathTest, Em4TheHostCannotTouchDeviceMemory) {
  const OnDevice<int> block(4, stream_);
  volatile int* data = block.data;
  EXPECT_DEATH(static_cast<void>(data[0]), "the host touched device memory");
  EXPECT_DEATH(data[0] = 1, "the host touched device memory");
}

class EmulatedGraph : public Emulator {
 protected:
  cudaGraphExec_t record(const std::function<void()>& work) {
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    work();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return executable;
  }
};

__global__ void add_kernel(int* value, int more) { *value += more; }

TEST_F(EmulatedGraph, Em6RecordsWithItsArgumentsAndRunsWhenLaunched) {
  const OnDevice<int> value(1, stream_);
  cudaMemsetAsync(value.data, 0, sizeof(int), stream_);
  launch(1, 1, 0, add_kernel, value.data, 1);  // before the graph in its stream
  int more = 10;
  cudaGraphExec_t graph = record([&] { launch(1, 1, 0, add_kernel, value.data, more); });
  more = 1000;
  EXPECT_EQ(value.read()[0], 1);
  cudaGraphLaunch(graph, stream_);
  launch(1, 1, 0, add_kernel, value.data, 100);
  cudaGraphLaunch(graph, stream_);
  EXPECT_EQ(value.read()[0], 121);
  EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

TEST_F(EmulatedGraph, Em6TheRecordingThreadIsRefusedWhatCudaRefuses) {
  const OnDevice<int> value(1, stream_);
  cudaStream_t other = nullptr;
  cudaEvent_t event = nullptr;
  void *pinned = nullptr, *memory = nullptr;
  int pageable = 0;
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaHostAlloc(&pinned, sizeof(int), cudaHostAllocDefault);
  const auto copied = [&](void* to, const void* from) {
    return cudaMemcpyAsync(to, from, sizeof(int), cudaMemcpyDefault, stream_);
  };
  const cudaError_t refused = cudaErrorStreamCaptureUnsupported;
  cudaGraphExec_t empty = record([] {});
  cudaGraphExec_t graph = record([&] {
    EXPECT_EQ(cudaMalloc(&memory, 4), refused);
    EXPECT_EQ(cudaFree(value.data), refused);
    EXPECT_EQ(cudaHostAlloc(&memory, 4, cudaHostAllocDefault), refused);
    EXPECT_EQ(cudaFreeHost(pinned), refused);
    EXPECT_EQ(cudaStreamSynchronize(stream_), refused);
    EXPECT_EQ(cudaStreamSynchronize(other), refused);
    EXPECT_EQ(cudaEventRecord(event, stream_), refused);
    EXPECT_EQ(cudaStreamWaitEvent(stream_, event), refused);
    EXPECT_EQ(cudaEventSynchronize(event), refused);
    EXPECT_EQ(cudaGraphLaunch(empty, stream_), refused);
    EXPECT_EQ(copied(value.data, &pageable), refused);
    EXPECT_EQ(copied(&pageable, value.data), refused);
    EXPECT_EQ(copied(value.data, pinned), cudaSuccess);
    EXPECT_EQ(copied(pinned, value.data), cudaSuccess);
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
              cudaErrorIllegalState);
    std::thread([&] {  // which goes its own way, but not on this stream
      EXPECT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
      EXPECT_EQ(cudaFree(memory), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(stream_), refused);
      cudaGraph_t stolen = nullptr;
      EXPECT_EQ(cudaStreamEndCapture(stream_, &stolen), cudaErrorStreamCaptureWrongThread);
    })
        .join();
  });
  cudaGraph_t none = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &none), cudaErrorIllegalState);
  for (cudaGraphExec_t each : {graph, empty}) cudaGraphExecDestroy(each);
  cudaFreeHost(pinned);
  cudaEventDestroy(event);
  cudaStreamDestroy(other);
}

TEST_F(EmulatedGraph, Em6AGraphUnderWayIsNotDestroyed) {
  const OnDevice<int> value(1, stream_);
  cudaGraphExec_t graph = record([&] { cudaMemsetAsync(value.data, 0, sizeof(int), stream_); });
  cudaGraphLaunch(graph, stream_);
  EXPECT_DEATH(cudaGraphExecDestroy(graph), "destroyed before its work had run");
  run();
  EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

// No thread waits for the kernel before its result is there: it runs on a thread of the driver's,
// while this thread runs another kernel, and one more stream waits for neither.
TEST_F(Emulator, Em5Em7KernelsOfSeveralStreamsRunOnWhateverThread) {
  struct Told {
    int* value;
    std::promise<int> seen;
  };
  cudaStream_t other = nullptr, waits = nullptr;
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&waits, cudaStreamNonBlocking);
  const OnDevice<int> values(64, stream_), theirs(64, other);
  std::promise<void> over;
  const auto await = [](void* until) {
    static_cast<std::promise<void>*>(until)->get_future().wait();
  };
  EXPECT_EQ(cudaLaunchHostFunc(waits, await, &over), cudaSuccess);
  for (int round = 0; round < 20; ++round) {
    Told told{.value = values.data, .seen = {}};
    launch(1, 64, 0, neighbour_kernel, values.data, true);
    const auto tell = [](void* argument) {
      auto& to = *static_cast<Told*>(argument);
      int value = 0;
      EXPECT_EQ(tandem_emulated_read(to.value, &value, sizeof value), 0);
      to.seen.set_value(value);
    };
    EXPECT_EQ(tandem_emulated_enqueue(stream_, tell, &told), 0);
    const cudaLaunchConfig_t config{.gridDim = 1, .blockDim = 64, .stream = other};
    EXPECT_EQ(cudaLaunchKernelEx(&config, neighbour_kernel, theirs.data, true), cudaSuccess);
    if (round % 2 == 0) {
      EXPECT_EQ(theirs.read()[63], 0);
    }
    EXPECT_EQ(told.seen.get_future().get(), 1);
  }
  EXPECT_EQ(cudaStreamQuery(waits), cudaErrorNotReady);
  over.set_value();
  for (cudaStream_t stream : {other, waits}) {
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
}

// Registers filled and read by the PTX ISA's tables for mma.m16n8k16, row by row; b is [8][16], of
// the transpose. out = a * b + c.
__global__ void product_kernel(const __nv_bfloat16* a, const __nv_bfloat16* b, const float* c,
                               float* out) {
  const int lane = static_cast<int>(threadIdx.x), group = lane / 4, member = lane % 4;
  const auto pair = [](const __nv_bfloat16* at) { return at[0].bits | unsigned{at[1].bits} << 16; };
  const unsigned left[4] = {
      pair(a + group * 16 + member * 2), pair(a + (group + 8) * 16 + member * 2),
      pair(a + group * 16 + member * 2 + 8), pair(a + (group + 8) * 16 + member * 2 + 8)};
  const float* own = c + group * 8 + member * 2;
  float sums[4] = {own[0], own[1], own[64], own[65]};
  kernels::cuda::multiply_matrices(left, pair(b + group * 16 + member * 2),
                                   pair(b + group * 16 + member * 2 + 8), sums);
  for (int i = 0; i < 4; ++i) out[(group + i / 2 * 8) * 8 + member * 2 + i % 2] = sums[i];
}

template <class T>
std::vector<T> numbers(std::size_t count, int step) {
  std::vector<T> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = static_cast<float>(static_cast<int>(i) * step % 31 - 15);
    if constexpr (std::is_same_v<T, float>) {
      all[i] = x;
    } else {
      all[i] = __float2bfloat16_rn(x);
    }
  }
  return all;
}

TEST_F(Emulator, MatricesAreMultiplied) {
  const auto a = numbers<__nv_bfloat16>(256, 7), b = numbers<__nv_bfloat16>(128, 11);
  const auto c = numbers<float>(128, 13);
  const OnDevice<__nv_bfloat16> left(256, stream_), right(128, stream_);
  const OnDevice<float> start(128, stream_), out(128, stream_);
  cudaMemcpyAsync(left.data, a.data(), 512, cudaMemcpyDefault, stream_);
  cudaMemcpyAsync(right.data, b.data(), 256, cudaMemcpyDefault, stream_);
  cudaMemcpyAsync(start.data, c.data(), 512, cudaMemcpyDefault, stream_);
  launch(1, 32, 0, product_kernel, left.data, right.data, start.data, out.data);
  std::vector<float> expected = c;  // small integers: exact in any order
  for (std::size_t i = 0; i < 128; ++i) {
    for (std::size_t k = 0; k < 16; ++k) {
      expected[i] += __bfloat162float(a[i / 8 * 16 + k]) * __bfloat162float(b[i % 8 * 16 + k]);
    }
  }
  EXPECT_EQ(out.read(), expected);
}

// Element c of row r of matrix m is m * 64 + r * 8 + c; matrices lie one behind another.
template <bool kTransposed>
__global__ void load_kernel(unsigned* out) {
  auto* matrices = dynamic_shared<std::uint16_t>();
  for (unsigned i = threadIdx.x; i < 256; i += 32) matrices[i] = static_cast<std::uint16_t>(i);
  __syncwarp();
  unsigned to[4];
  kernels::cuda::load_matrices<kTransposed>(matrices + threadIdx.x * 8, to);
  for (unsigned i = 0; i < 4; ++i) out[i * 32 + threadIdx.x] = to[i];
}

TEST_F(Emulator, MatricesAreLoadedAndTransposed) {
  const OnDevice<unsigned> plain(128, stream_), transposed(128, stream_);
  launch(1, 32, 512, load_kernel<false>, plain.data);
  launch(1, 32, 512, load_kernel<true>, transposed.data);
  std::vector<unsigned> rows, columns;
  for (unsigned i = 0; i < 128; ++i) {
    const unsigned matrix = i / 32 * 64, row = i % 32 / 4, column = i % 4 * 2;
    const auto pair = [](unsigned low, unsigned high) { return low | high << 16; };
    rows.push_back(pair(matrix + row * 8 + column, matrix + row * 8 + column + 1));
    columns.push_back(pair(matrix + column * 8 + row, matrix + (column + 1) * 8 + row));
  }
  EXPECT_EQ(plain.read(), rows);
  EXPECT_EQ(transposed.read(), columns);
}

// Two groups of copies, of which the first alone is waited for.
__global__ void copies_kernel(const float* from, float* out) {
  auto* held = dynamic_shared<float>();
  kernels::cuda::copy_async<16>(held, from, false);
  kernels::cuda::copy_async<4>(held + 4, from + 4, true);
  kernels::cuda::copy_async_commit();
  kernels::cuda::copy_async<4>(held + 5, from + 5, false);
  kernels::cuda::copy_async_commit();
  kernels::cuda::copy_async_wait<1>();
  for (int i = 0; i < 6; ++i) out[i] = held[i];
}

TEST_F(Emulator, Em5CopiesAreThereWhenWaitedFor) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const OnDevice<float> from(6, stream_), out(6, stream_);
  cudaMemcpyAsync(from.data, values.data(), 24, cudaMemcpyDefault, stream_);
  launch(1, 1, 32, copies_kernel, from.data, out.data);
  const std::vector<float> seen = out.read();
  EXPECT_EQ(std::vector(seen.begin(), seen.begin() + 5), (std::vector<float>{1, 2, 3, 4, 0}));
  EXPECT_TRUE(std::isnan(seen[5]));
}

TEST_F(EmulatorDeathTest, TheDefaultStreamIsRefused) {
  EXPECT_DEATH(cudaMemsetAsync(nullptr, 0, 0, nullptr), "default stream");
}

TEST(EmulatedNumbers, Bf16RoundsAsTheHostDoes) {
  for (const float x : {0.0f, -0.0f, 1.0f, 1.00390625f, 1.01171875f, -3.3e38f, 3.4e38f, 1e-40f,
                        std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(__float2bfloat16_rn(x).bits, device::f32_to_bf16(x)) << x;
  }
  EXPECT_EQ(__float2bfloat16_rn(std::numeric_limits<float>::quiet_NaN()).bits, 0x7fff);
}

// Another process shares a block, tells its handle, and ends when it is told to.
TEST_F(Emulator, ABlockOfAnotherProcessIsOpenedByItsHandle) {
  constexpr std::size_t kCount = 1000;
  std::array<int, 2> to_test{}, to_owner{};
  ASSERT_TRUE(::pipe(to_test.data()) == 0 && ::pipe(to_owner.data()) == 0);
  const pid_t owner = ::fork();
  ::close(owner == 0 ? to_owner[1] : to_test[1]);  // a process that is left alone reads the end
  cudaIpcMemHandle_t handle{};
  char go = 0;
  if (owner == 0) {
    const std::vector<unsigned> values(kCount, 17);
    OnDevice<unsigned> block(kCount, stream_);
    cudaMemcpyAsync(block.data, values.data(), kCount * 4, cudaMemcpyDefault, stream_);
    cudaStreamSynchronize(stream_);
    const bool shared = cudaIpcGetMemHandle(&handle, block.data) == cudaSuccess;
    const bool told = ::write(to_test[1], &handle, sizeof handle) == sizeof handle;
    const bool seen = ::read(to_owner[0], &go, 1) == 1 && block.read()[kCount - 1] == 18;
    ::_exit(shared && told && seen ? 0 : 1);
  }
  ASSERT_EQ(::read(to_test[0], &handle, sizeof handle), ssize_t{sizeof handle});
  void* opened = nullptr;
  ASSERT_EQ(cudaIpcOpenMemHandle(&opened, handle, 0), cudaSuccess);
  std::vector<unsigned> values(kCount);
  cudaMemcpyAsync(values.data(), opened, kCount * 4, cudaMemcpyDefault, stream_);
  cudaStreamSynchronize(stream_);
  EXPECT_EQ(std::exchange(values[kCount - 1], 18), 17u);
  cudaMemcpyAsync(opened, values.data(), kCount * 4, cudaMemcpyDefault, stream_);
  cudaStreamSynchronize(stream_);
  ASSERT_EQ(::write(to_owner[1], &go, 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(owner, &status, 0), owner);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(cudaFree(opened), cudaErrorInvalidValue) << "it is not ours to free";
  EXPECT_EQ(cudaIpcCloseMemHandle(opened), cudaSuccess);
  EXPECT_EQ(cudaIpcOpenMemHandle(&opened, handle, 0), cudaErrorInvalidResourceHandle);
  for (const int end : {to_test[0], to_owner[0], to_owner[1]}) ::close(end);
}

TEST_F(Emulator, AFreedBlockIsOpenedNoMore) {
  cudaIpcMemHandle_t first{}, second{};
  void* opened = nullptr;
  {
    OnDevice<float> block(7, stream_);
    EXPECT_EQ(cudaIpcGetMemHandle(&first, block.data), cudaSuccess);
    ASSERT_EQ(cudaIpcOpenMemHandle(&opened, first, 0), cudaSuccess);
    EXPECT_EQ(cudaIpcGetMemHandle(&second, opened), cudaErrorInvalidValue) << "it is another's";
    EXPECT_EQ(cudaIpcCloseMemHandle(block.data), cudaErrorInvalidValue);
    EXPECT_EQ(cudaIpcCloseMemHandle(opened), cudaSuccess);
  }
  OnDevice<float> next(7, stream_);  // its file has the same number
  EXPECT_EQ(cudaIpcGetMemHandle(&second, next.data), cudaSuccess);
  EXPECT_EQ(cudaIpcOpenMemHandle(&opened, first, 0), cudaErrorInvalidResourceHandle);
}

}  // namespace
}  // namespace tandem::emulator
