// Result<T>: a value, or an Error that says what was attempted, on what, why it failed, and how to
// mend it. It is for events of the world: a file, a peer, a config, no room. Bugs of our own are
// CHECKed (check.h). The member names are those of std::expected (C++23).
//
//   Result<std::string> text = read_file(path);
//   if (!text) return text.error();
//   use(*text);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/check.h"

namespace tandem {

// The kinds of failure that a user can tell apart: each has one exit code (docs/reasons.md), which
// is the number at the start of each line.
enum class ErrorCode {
  kInvalid,       // 64: flags or the content of a job file
  kFailed,        // 1: a job or actor failed, a file cannot be read
  kOutOfMemory,   // 1: a device has no room; the message says what was asked and what was free
  kInfeasible,    // 2: accepted but not placed, or never placeable
  kNotFound,      // 3
  kUnauthorised,  // 4
  kTimedOut,      // 5
  kUnreachable,   // 69: no controller
};

int exit_code(ErrorCode code);
// "invalid", "not_found", …: the `code` of an HTTP error, and of the text of render().
const char* name(ErrorCode code);

// One more fault of the same input, with the code of the first one.
struct FurtherError {
  std::string message, where, help;  // as in Error
};

// The errors that one Error tells, the first one among them.
inline constexpr std::size_t kErrorsToldMax = 20;

struct Error {
  ErrorCode code = ErrorCode::kFailed;
  std::string message;     // what was attempted and why it failed, without a final full stop
  std::string where = {};  // "job.yaml:14:5", a path, "--set a.b=c"; may be empty
  std::string help = {};   // how to mend it; may be empty
  int os_error = 0;        // errno where the operating system refused; 0: it did not
  // For input in which several faults are found at once, such as a job file: those after the first,
  // in the order of the text, at most kErrorsToldMax - 1, and how many more there are.
  std::vector<FurtherError> further = {};
  std::uint32_t further_left_out = 0;
};

// The error as a terminal shows it, with control characters as escapes (text.h); the lines of
// `where` and `help` are left out where these are empty. Further errors follow in the same form:
//
//   error[invalid]: message
//     --> where
//     help: help
//   error[invalid]: message of the next one
//   and 7 more errors
std::string render(const Error& error);

// The text of errno for messages: "No space left on device".
std::string errno_text(int error_number);

// Both constructors convert, so that a function can return a T or an Error as it is. value(), * and
// -> are for a Result that has a value, error() for one that has not: anything else is CHECKed.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & {
    CHECK(has_value());
    return std::get<0>(state_);
  }
  const T& value() const& {
    CHECK(has_value());
    return std::get<0>(state_);
  }
  T&& value() && {
    CHECK(has_value());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const {
    CHECK(!has_value());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

// The result of functions without a value: `return {};` says that all went well.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }
  void value() const { CHECK(has_value()); }
  const Error& error() const {
    CHECK(error_.has_value());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace tandem
