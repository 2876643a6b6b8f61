#include "runtime/base/result.h"

#include <system_error>

#include "runtime/base/text.h"

namespace tandem {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return 64;
    case ErrorCode::kFailed:
    case ErrorCode::kOutOfMemory:
      return 1;
    case ErrorCode::kInfeasible:
      return 2;
    case ErrorCode::kNotFound:
      return 3;
    case ErrorCode::kUnauthorised:
      return 4;
    case ErrorCode::kTimedOut:
      return 5;
    case ErrorCode::kUnreachable:
      return 69;  // EX_UNAVAILABLE of sysexits.h, as 64 is EX_USAGE
  }
  return 1;
}

const char* name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kFailed:
      return "failed";
    case ErrorCode::kOutOfMemory:
      return "out_of_memory";
    case ErrorCode::kInfeasible:
      return "infeasible";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kUnauthorised:
      return "unauthorised";
    case ErrorCode::kTimedOut:
      return "timed_out";
    case ErrorCode::kUnreachable:
      return "unreachable";
  }
  return "failed";
}

std::string render(const Error& error) {
  std::string text = "error[" + std::string(name(error.code)) + "]: " + error.message;
  if (!error.where.empty()) text += "\n  --> " + error.where;
  if (!error.help.empty()) text += "\n  help: " + error.help;
  return visible(text, Lines::kMany);
}

std::string errno_text(int error_number) { return std::generic_category().message(error_number); }

}  // namespace tandem
