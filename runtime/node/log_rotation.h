// Rotation of logs by size: NAME.log grows to a limit, becomes NAME.log.1, and a new NAME.log
// begins; at most `files_max` files stay, and the oldest goes. log_files.h reads over all of them.
//
// A process rotates its own log, and no other process does it for it. Its threads and libraries
// write by the descriptors 1 and 2, which dup2() moves to the new file between two writes. An agent
// could only copy and truncate, which loses what comes between the two, or read the log from a
// pipe, which would end with the agent, and ranks outlive agents. What this leaves out: a program
// that a process starts with the descriptors it has itself writes on into the file that was the
// newest then. Tandem starts none; a user's actor may.
//
//   LR-1  No byte is lost while fewer than `files_max` files exist: each write is in one file, in
//         order. A rotation that fails, as on a full disk, leaves the log as it was, and growing.
//   LR-2  After a crash at any point each file still has a name, and NAME.log is the newest. A file
//         may have two names then; readers and the next rotation count it once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace tandem::node {

// The variable by which a process learns that its output is a log, and which one. Its starter sets
// it (process_host.h, daemon.h).
inline constexpr const char* kLogVariable = "TANDEM_LOG";
std::pair<std::string, std::string> log_setting(const std::filesystem::path& log);

struct LogLimits {
  std::uint64_t bytes_max = std::uint64_t{64} << 20;  // of one file; 0: no limit, no rotation
  int files_max = 3;                                  // NAME.log and the files before it

  // From TANDEM_LOG_MAX_BYTES and TANDEM_LOG_MAX_FILES. kInvalid for a text that is no such number.
  static Result<LogLimits> from_environment();
};
inline constexpr int kLogFilesMax = 100;
inline constexpr std::uint64_t kLogBytesMin = 4096;

// NAME.log.2 for 2; NAME.log itself for 0.
std::filesystem::path rotated_path(const std::filesystem::path& log, int number);

struct Rotated {
  OwnedFd fresh;                    // the new, empty NAME.log, to append to
  std::uint64_t dropped_bytes = 0;  // of the files that went
};
// Makes NAME.log a new file, whose first line tells of it, and its former one NAME.log.1. Without
// `fresh`: another process is rotating it at this moment, or has just done so.
Result<Rotated> rotate_log(const std::filesystem::path& log, int files_max);

// Removes all files of a log.
void remove_log(const std::filesystem::path& log);

// How many bytes of this log are gone, as the first line of its newest file says.
std::uint64_t dropped_bytes_of(const std::filesystem::path& log);
std::uint64_t dropped_bytes_in(std::string_view head);  // by the beginning of that file
inline constexpr std::size_t kLogHeadBytes = 1024;      // of which so much is enough

// The log of this process. One thread uses it.
class OwnLog {
 public:
  OwnLog() = default;  // this process has none: nothing is ever done
  // The log that this process was given; none where its output is something else, as of one that a
  // user starts. Changes the environment: call it before threads and children exist, and once.
  static OwnLog inherited();
  // For tests: descriptors that append to `path`.
  OwnLog(std::filesystem::path path, std::vector<int> descriptors, const LogLimits& limits);

  // Rotates the log if it has grown too long, and goes on in the file that bears its name if that
  // is another one: a program such as logrotate has moved it. To be called every second or so.
  void look();

 private:
  void rotate();
  void go_on_in(const OwnedFd& file) const;

  std::filesystem::path path_;  // empty: none
  std::vector<int> descriptors_;
  LogLimits limits_;
  bool failed_ = false;   // the last try to rotate, and the log says so
  bool dropped_ = false;  // a file was dropped, and the log says so
};

}  // namespace tandem::node
