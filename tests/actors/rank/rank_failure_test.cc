#include "actors/rank/rank_failure.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "runtime/base/file.h"
#include "scheduler/fleet/restart_budget.h"

namespace tandem::rank {
namespace {

using scheduler::class_of;
using scheduler::FailureClass;

Error refused(int os_error) {
  errno = os_error;
  return file_error("read file", "/models/m/config.json");
}

TEST(RankFailure, InputThatIsWrongOrMissingIsPermanent) {
  EXPECT_EQ(of_input(Error{.message = "not valid JSON"}).code, ErrorCode::kInvalid);
  EXPECT_EQ(of_input(refused(ENOENT)).code, ErrorCode::kNotFound);
  EXPECT_EQ(of_input(refused(ENOTDIR)).code, ErrorCode::kNotFound);
  EXPECT_EQ(of_input(Error{.code = ErrorCode::kOutOfMemory}).code, ErrorCode::kOutOfMemory);
}

TEST(RankFailure, ADiskThatFailsMayWorkAgain) {
  const node::RankId id{"job-1/learner/0", {3}, 1};
  for (const int os_error : {EIO, ESTALE, EMFILE, ETIMEDOUT}) {
    const messages::RankFailed failed = rank_failed(id, of_input(refused(os_error)));
    EXPECT_EQ(class_of(failed.code), FailureClass::kMendable) << os_error;
    EXPECT_EQ(failed.message,
              "cannot read file: " + errno_text(os_error) + " (/models/m/config.json)");
    EXPECT_EQ(failed.rank, 1);
  }
  for (const int os_error : {ENOSPC, EROFS, EACCES})
    EXPECT_EQ(class_of(rank_failed(id, refused(os_error)).code), FailureClass::kInput) << os_error;
}

TEST(RankFailure, AtWorkOnlyAFaultOfTheJobIsPermanent) {
  const node::RankId id{"job-1/learner/0", {3}, 0};
  for (const ErrorCode code : {ErrorCode::kNotFound, ErrorCode::kInfeasible, ErrorCode::kTimedOut})
    EXPECT_EQ(class_of(rank_failed_at_work(id, Error{.code = code}).code), FailureClass::kMendable);
  EXPECT_EQ(rank_failed_at_work(id, Error{.code = ErrorCode::kInvalid}).code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace tandem::rank
