#include "scheduler/fleet/failure.h"

#include <gtest/gtest.h>

namespace tandem::scheduler {
namespace {

TEST(Failure, OnlyTheInputIsPermanent) {  // RB-4
  for (const ErrorCode code : {ErrorCode::kFailed, ErrorCode::kTimedOut, ErrorCode::kUnreachable,
                               ErrorCode::kUnauthorised}) {
    EXPECT_EQ(class_of(code), FailureClass::kMendable) << name(code);
    for (const bool was_ready : {false, true})
      EXPECT_TRUE(worth_another_start(code, was_ready)) << name(code);
  }
  for (const ErrorCode code : {ErrorCode::kInvalid, ErrorCode::kInfeasible, ErrorCode::kNotFound}) {
    EXPECT_EQ(class_of(code), FailureClass::kInput) << name(code);
    for (const bool was_ready : {false, true})
      EXPECT_FALSE(worth_another_start(code, was_ready)) << name(code);
  }
}

TEST(Failure, AWantOfMemoryIsWorthAnotherStartOnlyOfWhoHasWorked) {  // RB-4
  EXPECT_EQ(class_of(ErrorCode::kOutOfMemory), FailureClass::kMemory);
  EXPECT_TRUE(worth_another_start(ErrorCode::kOutOfMemory, true));
  EXPECT_FALSE(worth_another_start(ErrorCode::kOutOfMemory, false));
}

}  // namespace
}  // namespace tandem::scheduler
