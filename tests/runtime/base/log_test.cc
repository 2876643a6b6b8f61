#include "runtime/base/log.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

TEST(Log, IsAsBeforeOnceTheScopeOfAnotherHasEnded) {
  testing::internal::CaptureStderr();
  {
    const ScopedLogging outer("outer", LogLevel::kWarnings);
    {
      const ScopedLogging inner("inner", LogLevel::kInfo);
      log::info("event=first");
    }
    log::info("event=second");
    log::warn("event=third");
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("inner event=first"), std::string::npos) << said;
  EXPECT_EQ(said.find("event=second"), std::string::npos) << said;
  EXPECT_NE(said.find("outer event=third"), std::string::npos) << said;
}

}  // namespace
}  // namespace tandem
