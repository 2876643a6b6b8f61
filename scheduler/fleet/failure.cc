#include "scheduler/fleet/failure.h"

#include "runtime/base/check.h"

namespace tandem::scheduler {

FailureClass class_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kFailed:
    case ErrorCode::kTimedOut:
    case ErrorCode::kUnreachable:
    case ErrorCode::kUnauthorised:  // in a gang another process may have taken its port by then
      return FailureClass::kMendable;
    case ErrorCode::kOutOfMemory:
      return FailureClass::kMemory;
    case ErrorCode::kInvalid:
    case ErrorCode::kInfeasible:
    case ErrorCode::kNotFound:
      return FailureClass::kInput;
  }
  CHECK(false);
}

bool worth_another_start(ErrorCode code, bool was_ready) {
  switch (class_of(code)) {
    case FailureClass::kMendable:
      return true;
    case FailureClass::kMemory:
      return was_ready;
    case FailureClass::kInput:
      return false;
  }
  CHECK(false);
}

}  // namespace tandem::scheduler
