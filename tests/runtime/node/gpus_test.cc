#include "runtime/node/gpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace tandem::runtime {
namespace {

class Gpus : public testing::Test {
 protected:
  ~Gpus() override {
    ::unsetenv("FAKE_GPUS");
    ::unsetenv("CUDA_VISIBLE_DEVICES");
  }
  static std::string uuids(const char* visible) {
    ::setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    const auto gpus = read_gpus(TANDEM_FAKE_NVML);
    if (!gpus) return gpus.error().message;
    std::string all;
    for (const Gpu& gpu : *gpus) all += gpu.uuid.substr(0, 5) + " ";
    return all;
  }
};

TEST_F(Gpus, AreReadThroughNvml) {
  ::setenv("FAKE_GPUS", "2", 1);
  const auto gpus = read_gpus(TANDEM_FAKE_NVML);
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_EQ(gpus->size(), 2u);
  EXPECT_EQ((*gpus)[1].name, "Fake GPU 1");
  EXPECT_EQ((*gpus)[1].uuid, "GPU-10000000-fake");
  EXPECT_EQ((*gpus)[1].memory_bytes, std::int64_t{80} << 30);
  EXPECT_EQ((*gpus)[1].memory_free_bytes, std::int64_t{79} << 30);
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
}  // namespace tandem::runtime
