// A test on the GPU that $TANDEM_CUDA_MODULE leads to: the emulator, which every machine has, or a
// real one.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "runtime/device/cuda_module.h"
#include "runtime/device/queue.h"

namespace tandem::device {

// Whether the GPU is the emulator: then shapes stay small.
inline bool emulated() {
  return std::strcmp(cuda_module().value()->devices().name, "emulated") == 0;
}

// Skips where the module reports no GPU; that there is no module is a failure.
class CudaCase : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_module()) {
      queue_ = std::make_unique<Queue>(DeviceKind::kCuda);
      return;
    }
    const std::string& why = cuda_module().error().message;
    ASSERT_FALSE(why.starts_with("no CUDA module")) << why;  // the build's fault, not the machine's
    std::printf("no GPU to test on: %s\n", why.c_str());     // by this ctest knows a skipped test
    GTEST_SKIP();
  }
  const Stream& gpu() { return queue_->stream(); }

 private:
  std::unique_ptr<Queue> queue_;
};

}  // namespace tandem::device
