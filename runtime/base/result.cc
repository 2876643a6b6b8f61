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
  std::string text;
  const auto add = [&](const auto& one) {
    text += "error[" + std::string(name(error.code)) + "]: " + one.message;
    if (!one.where.empty()) text += "\n  --> " + one.where;
    if (!one.help.empty()) text += "\n  help: " + one.help;
  };
  add(error);
  for (const FurtherError& further : error.further) {
    text += '\n';
    add(further);
  }
  if (const auto more = error.further_left_out; more > 0)
    text += "\nand " + std::to_string(more) + (more == 1 ? " more error" : " more errors");
  return visible(text, Lines::kMany);
}

std::string errno_text(int error_number) { return std::generic_category().message(error_number); }

}  // namespace tandem
