// A GPU as a value: the module's three errors, and memory and queues on it. On the emulator, which
// is a module like the other.
//
// Tests runtime/device/cuda_module.h.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/arena.h"
#include "runtime/device/cuda_module.h"
#include "runtime/device/memory.h"
#include "runtime/device/queue.h"

namespace tandem::device {
namespace {

// This process uses the emulator, whatever it was started with.
const int kChosen = ::setenv("TANDEM_CUDA_MODULE", TANDEM_CUDA_EMULATED, 1);

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Environment() { ::unsetenv(name_); }

 private:
  const char* name_;
};

std::string refusal(const std::string& path) {
  const Result<const CudaModule*> module = open_cuda_module(path);
  if (module) return "it opened";
  EXPECT_EQ(module.error().code, ErrorCode::kInfeasible);
  EXPECT_FALSE(module.error().help.empty());
  return module.error().message;
}

TEST(CudaModule, NoModuleIsToldWithThePathAndTheReason) {
  const std::string why = refusal("/nowhere/libtandem_cuda.so");
  EXPECT_TRUE(why.starts_with("no CUDA module: cannot open /nowhere/libtandem_cuda.so:")) << why;
  EXPECT_NE(why.find("No such file"), std::string::npos) << why;
  EXPECT_NE(refusal("libm.so.6").find(kCudaModuleEntry), std::string::npos);
}

TEST(CudaModule, AMissingCublasIsToldWithWhereItWasLookedFor) {
  const Environment path("LD_LIBRARY_PATH", "/nowhere/lib");
  const Result<const CudaModule*> module = open_cuda_module(TANDEM_NEEDS_CUBLAS);
  ASSERT_FALSE(module);
  const std::string folder = std::filesystem::path(TANDEM_NEEDS_CUBLAS).parent_path();
  const std::string& why = module.error().message;
  EXPECT_NE(why.find("libcublasLt.so.0: cannot open"), std::string::npos) << why;
  EXPECT_TRUE(why.ends_with("; looked in LD_LIBRARY_PATH=/nowhere/lib, " + folder +
                            ", /usr/local/cuda/lib64 and the system's folders"))
      << why;
  EXPECT_NE(module.error().help.find("LD_LIBRARY_PATH"), std::string::npos);
}

TEST(CudaModule, AModuleOfAnotherBuildIsRefused) {
  void* library = ::dlopen(TANDEM_CUDA_EMULATED, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  auto* entry = reinterpret_cast<CudaModuleEntry*>(::dlsym(library, kCudaModuleEntry));
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry(kCudaModuleAbi + 1), nullptr);
  EXPECT_NE(entry(kCudaModuleAbi), nullptr);
}

TEST(CudaModule, NoDriverAndNoDeviceAreToldApart) {
  {
    const Environment environment("TANDEM_EMULATED_WITHOUT_DRIVER", "1");
    EXPECT_TRUE(refusal(TANDEM_CUDA_EMULATED).starts_with("no NVIDIA driver"));
  }
  {
    const Environment environment("CUDA_VISIBLE_DEVICES", "");
    const std::string why = refusal(TANDEM_CUDA_EMULATED);
    EXPECT_TRUE(why.starts_with("no CUDA device: the driver (CUDA 13.0) shows none")) << why;
    EXPECT_NE(why.find("cudaErrorNoDevice; CUDA_VISIBLE_DEVICES="), std::string::npos) << why;
  }
  EXPECT_EQ(refusal(TANDEM_CUDA_EMULATED), "it opened");
}

TEST(CudaModule, TheFirstDeviceThatIsShownHasItsOwnBusId) {
  const Environment devices("TANDEM_EMULATED_GPUS", "2");
  const CudaModule& module = **open_cuda_module(TANDEM_CUDA_EMULATED);
  EXPECT_EQ(module.devices().count, 2);
  const std::string first = module.devices().bus_id;
  const Environment environment("CUDA_VISIBLE_DEVICES", "1");
  EXPECT_EQ(module.devices().count, 1);
  EXPECT_EQ(std::string(module.devices().bus_id), "0000:02:00.0");
  EXPECT_EQ(first, "0000:01:00.0");
}

// Other libraries find them by these names in the module that the loader opened.
TEST(CudaModule, TheEmulatorOffersItsMemoryToOtherLibraries) {
  void* library = ::dlopen(TANDEM_CUDA_EMULATED, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  for (const char* name :
       {"tandem_emulated_allocate", "tandem_emulated_free", "tandem_emulated_read",
        "tandem_emulated_write", "tandem_emulated_enqueue"})
    EXPECT_NE(::dlsym(library, name), nullptr) << name;
}

TEST(CudaModule, IsLookedForBesideTheExecutable) {
  EXPECT_EQ(cuda_module_path(), TANDEM_CUDA_EMULATED);
  ::unsetenv("TANDEM_CUDA_MODULE");
  const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  EXPECT_EQ(cuda_module_path(), beside / "libtandem_cuda.so");
  ::setenv("TANDEM_CUDA_MODULE", TANDEM_CUDA_EMULATED, 1);
}

// The same body for any device: it is a value.
class Devices : public testing::TestWithParam<DeviceKind> {};

TEST_P(Devices, BlocksBeginAsZerosAndCopiesFollowTheQueue) {
  const DeviceKind device = GetParam();
  const Queue queue(device);
  const std::size_t bytes = 1000;
  const Buffer operand = *Buffer::allocate(bytes, "a test", operand_memory(device));
  const Buffer other = *Buffer::allocate(bytes, "a test", operand_memory(device));
  const Buffer staging = *Buffer::allocate(bytes, "a test", staging_memory(device));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(other.data()) % kAlignmentBytes, 0u);
  std::vector<unsigned char> host(bytes, 7), counted(bytes);
  std::iota(counted.begin(), counted.end(), static_cast<unsigned char>(0));

  copy(queue.stream(), host.data(), operand.data(), bytes);
  synchronize(queue.stream());
  EXPECT_EQ(host, std::vector<unsigned char>(bytes, 0));

  copy(queue.stream(), operand.data(), counted.data(), bytes);
  copy(queue.stream(), other.data(), operand.data(), bytes);
  zero(queue.stream(), operand.data(), bytes);
  copy(queue.stream(), staging.data(), other.data(), bytes);
  copy(queue.stream(), host.data(), operand.data(), bytes);
  synchronize(queue.stream());
  EXPECT_EQ(std::memcmp(staging.bytes().data(), counted.data(), bytes), 0);
  EXPECT_EQ(host, std::vector<unsigned char>(bytes, 0));
}

bool comes_true(const std::function<bool()>& question) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!question() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  return question();
}

TEST_P(Devices, WorkIsAskedAboutAndJoinedWithoutWaiting) {
  const DeviceKind device = GetParam();
  const Queue first(device), second(device);
  const std::size_t bytes = 1000;
  const Buffer operand = *Buffer::allocate(bytes, "a test", operand_memory(device));
  const std::vector<unsigned char> counted(bytes, 5);
  Event copied, back;
  EXPECT_TRUE(copied.done()) << "nothing is recorded";
  copied.hold_back(second.stream());
  for (int i = 0; i < 100; ++i) {
    std::vector<unsigned char> host(bytes, 7);
    copy(first.stream(), operand.data(), counted.data(), bytes);
    copied.record(first.stream());
    copied.hold_back(second.stream());
    copy(second.stream(), host.data(), operand.data(), bytes);
    back.record(second.stream());
    EXPECT_TRUE(comes_true([&] { return back.done(); }));
    EXPECT_EQ(host, counted);
    EXPECT_TRUE(copied.done());
    zero(second.stream(), operand.data(), bytes);
    EXPECT_TRUE(comes_true([&] { return idle(second.stream()); }));
    EXPECT_TRUE(idle(first.stream()));
  }
}

TEST_P(Devices, MemoryInfoFollowsWhatIsHeld) {
  const DeviceKind device = GetParam();
  const MemoryInfo before = memory_info(device);
  EXPECT_GT(before.free_bytes, 0u);
  EXPECT_GE(before.total_bytes, before.free_bytes);
  if (device == DeviceKind::kCpu) return;  // memory of other processes counts here too
  {
    const Buffer held = *Buffer::allocate(1 << 20, "a test", MemoryKind::kDevice);
    EXPECT_EQ(memory_info(device).free_bytes, before.free_bytes - (1 << 20));
  }
  EXPECT_EQ(memory_info(device).free_bytes, before.free_bytes);
}

TEST_P(Devices, AnArenaLiesOnIt) {
  const DeviceKind device = GetParam();
  Manifest manifest;
  manifest.add("q", DType::kBF16, {8, 16});
  manifest.add("k", DType::kBF16, {8, 16});
  const Arena arena = *Arena::allocate(manifest, "a test", operand_memory(device));
  EXPECT_EQ(arena.flat().dim(0), 256);
  EXPECT_EQ(arena.flat().dtype, DType::kBF16);
  EXPECT_EQ(arena.fused("q", "k").data, arena.flat().data);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Devices, testing::Values(DeviceKind::kCpu, DeviceKind::kCuda),
                         [](const auto& kind) {
                           return kind.param == DeviceKind::kCpu ? "cpu" : "cuda";
                         });

TEST(CudaMemory, OutOfMemorySaysWhatWasAskedAndWhatWasFree) {
  const MemoryInfo info = memory_info(DeviceKind::kCuda);
  const Result<Buffer> buffer =
      Buffer::allocate(info.total_bytes + 1, "KV pages", MemoryKind::kDevice);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(buffer.error().message, "cannot allocate " + std::to_string(info.total_bytes + 1) +
                                        " bytes of memory for KV pages: of the GPU's " +
                                        std::to_string(info.total_bytes) + " bytes " +
                                        std::to_string(info.free_bytes) + " are free");
  EXPECT_TRUE(Buffer::allocate(1000, "KV pages", MemoryKind::kDevice));
}

TEST(CudaMemoryDeathTest, TheHostDoesNotLookIntoIt) {
  const Buffer buffer = *Buffer::allocate(64, "a test", MemoryKind::kDevice);
  EXPECT_DEATH(buffer.bytes(), "kind_ != MemoryKind::kDevice");
  EXPECT_DEATH(buffer.as<float>(), "kind_ != MemoryKind::kDevice");
}

TEST(CudaErrorDeathTest, EndsTheProcessWithExpressionPlaceAndName) {
  EXPECT_DEATH(
      cuda_module().value()->release(reinterpret_cast<void*>(8)),
      "CUDA error: cudaErrorInvalidValue .*: cudaFree\\(memory\\) at .*cuda_functions.cc:");
}

}  // namespace
}  // namespace tandem::device
