#include "runtime/node/gpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace tandem::node {
namespace {

class Gpus : public testing::Test {
 protected:
  ~Gpus() override {
    for (const char* name : {"FAKE_GPUS", "FAKE_GPUS_GONE", "FAKE_GPUS_LOST", "FAKE_GPUS_DEAF",
                             "FAKE_GPUS_MIG", "CUDA_VISIBLE_DEVICES"})
      ::unsetenv(name);
  }
  static std::string uuids(const char* visible) {
    ::setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    const auto gpus = read_gpus(TANDEM_FAKE_NVML);
    if (!gpus) return gpus.error().message;
    std::string all;
    for (const Gpu& gpu : gpus->usable) all += gpu.uuid.substr(0, 5) + " ";
    return all;
  }
};

TEST_F(Gpus, AreReadThroughNvml) {
  ::setenv("FAKE_GPUS", "2", 1);
  const auto gpus = read_gpus(TANDEM_FAKE_NVML);
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_EQ(gpus->usable.size(), 2u);
  EXPECT_TRUE(gpus->unusable.empty());
  EXPECT_EQ(gpus->usable[1].name, "Fake GPU 1");
  EXPECT_EQ(gpus->usable[1].uuid, "GPU-10000000-fake");
  EXPECT_EQ(gpus->usable[1].memory_bytes, std::int64_t{80} << 30);
  EXPECT_EQ(gpus->usable[1].memory_free_bytes, std::int64_t{79} << 30);
}

TEST_F(Gpus, NoneSaysWhatWasFound) {
  EXPECT_EQ(read_gpus("libnowhere.so.1").error().message,
            "no GPU: no NVIDIA driver (libnowhere.so.1: cannot open shared object file: No such "
            "file or directory)");
  EXPECT_TRUE(read_gpus("libm.so.6").error().message.starts_with("no GPU: libm.so.6 is too old"));
  EXPECT_EQ(read_gpus(TANDEM_FAKE_NVML).error().message, "no GPU: the NVIDIA driver lists none");
  ::setenv("FAKE_GPUS", "broken", 1);
  EXPECT_EQ(read_gpus(TANDEM_FAKE_NVML).error().message,
            "no GPU: the NVIDIA driver does not answer: Driver Not Loaded");
}

TEST_F(Gpus, ThoseThatFailAreNamedAndHideNoOther) {
  ::setenv("FAKE_GPUS", "5", 1);
  ::setenv("FAKE_GPUS_GONE", "0", 1);
  ::setenv("FAKE_GPUS_LOST", "2", 1);
  ::setenv("FAKE_GPUS_DEAF", "3", 1);
  const auto gpus = read_gpus(TANDEM_FAKE_NVML);
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_EQ(gpus->usable.size(), 2u);
  EXPECT_EQ(gpus->usable[1].name, "Fake GPU 4");
  EXPECT_EQ(gpus->unusable,
            (std::vector<std::string>{
                "GPU 0: GPU is lost (nvmlDeviceGetHandleByIndex)",
                "GPU 2: GPU is lost (nvmlDeviceGetName)",
                "GPU 3 (Fake GPU 3, GPU-30000000-fake): GPU is lost (nvmlDeviceGetMemoryInfo)"}));
  EXPECT_EQ(uuids("3,4,1"), "GPU-4 GPU-1 ") << "a lost GPU keeps its number";
  EXPECT_EQ(uuids("GPU-0,GPU-1"), "GPU-1 ") << "a lost GPU may not know its uuid";
  EXPECT_EQ(absence_of(*gpus), "");
  EXPECT_EQ(uuids("0,3"), "");
  const auto none = read_gpus(TANDEM_FAKE_NVML);
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(none->unusable, (std::vector{gpus->unusable[0], gpus->unusable[2]}));
  EXPECT_EQ(absence_of(*none),
            "no usable GPU: GPU 0: GPU is lost (nvmlDeviceGetHandleByIndex); "
            "GPU 3 (Fake GPU 3, GPU-30000000-fake): GPU is lost (nvmlDeviceGetMemoryInfo)");
  ::setenv("CUDA_VISIBLE_DEVICES", "4", 1);
  EXPECT_TRUE(read_gpus(TANDEM_FAKE_NVML)->unusable.empty()) << "hidden GPUs are not offered";
}

TEST_F(Gpus, OneInMigModeIsNotOffered) {
  ::setenv("FAKE_GPUS", "3", 1);
  ::setenv("FAKE_GPUS_MIG", "1", 1);
  const auto gpus = read_gpus(TANDEM_FAKE_NVML);
  ASSERT_TRUE(gpus) << gpus.error().message;
  EXPECT_EQ(gpus->usable.size(), 2u);
  EXPECT_EQ(gpus->unusable, std::vector<std::string>{
                                "GPU 1 (Fake GPU 1, GPU-10000000-fake): it is in MIG mode, and "
                                "parts of a GPU are not in this version"});
  EXPECT_EQ(read_gpus(TANDEM_FAKE_NVML_OLD)->usable.size(), 3u) << "it knows of no such mode";
  EXPECT_EQ(uuids("MIG-7,0"), "GPU-0 ");
  EXPECT_EQ(uuids("MIG-7"), "");
  EXPECT_EQ(read_gpus(TANDEM_FAKE_NVML)->unusable,
            std::vector<std::string>{"MIG-7: parts of a GPU are not in this version"});
}

TEST_F(Gpus, SayHowNearTheyAre) {
  ::setenv("FAKE_GPUS", "4", 1);
  ::setenv("FAKE_GPUS_LOST", "2", 1);
  const auto links = [](const Gpu& gpu) {
    std::string all;
    for (const GpuLink link : gpu.links) all += std::string(name(link)) + " ";
    return all;
  };
  const auto gpus = read_gpus(TANDEM_FAKE_NVML);
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_EQ(gpus->usable.size(), 3u);
  EXPECT_EQ(links(gpus->usable[0]), "X NV SYS ");
  EXPECT_EQ(links(gpus->usable[2]), "SYS SYS X ");
  EXPECT_EQ(gpus->usable[0].cpu_affinity, "62-65,128");
  EXPECT_EQ(gpus->usable[0].numa_affinity, "0");
  EXPECT_EQ(gpus->usable[2].numa_affinity, "1");
  ::setenv("CUDA_VISIBLE_DEVICES", "3,1", 1);
  EXPECT_EQ(links(read_gpus(TANDEM_FAKE_NVML)->usable[1]), "SYS X ") << "in the listing's order";
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ::unsetenv("FAKE_GPUS_LOST");
  EXPECT_EQ(links(read_gpus(TANDEM_FAKE_NVML)->usable[3]), "SYS SYS PIX X ");
  const auto old = read_gpus(TANDEM_FAKE_NVML_OLD);
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_EQ(links(old->usable[1]), "unknown X unknown unknown ");
  EXPECT_EQ(old->usable[1].cpu_affinity + old->usable[1].numa_affinity, "");
}

TEST_F(Gpus, TheEnvironmentChoosesAndOrders) {
  ::setenv("FAKE_GPUS", "3", 1);
  EXPECT_EQ(uuids("2,0"), "GPU-2 GPU-0 ");
  EXPECT_EQ(uuids("GPU-1,2"), "GPU-1 GPU-2 ");
  EXPECT_EQ(uuids("1,7,0"), "GPU-1 ");  // CUDA sees nothing behind a device that is not there
  EXPECT_EQ(uuids("0, 2"), "GPU-0 GPU-2 ");
  EXPECT_EQ(uuids("0,GPU-0"), "GPU-0 ") << "one GPU is not two";
  EXPECT_EQ(uuids(""), "no GPU: CUDA_VISIBLE_DEVICES= leaves none of this machine's 3");
}

}  // namespace
}  // namespace tandem::node
