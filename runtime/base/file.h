// Files and descriptors as more than one folder needs them: an owned descriptor, whole-file reads,
// atomic replacement, an exclusive lock. Every error names the path and the operating system's
// reason, and has the code kFailed (exit 1: a file that cannot be read or written).
// Not here: formats, and files that grow (journals, logs, payload segments).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem {

// A file descriptor with one owner, closed with it. -1 holds none.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// "cannot <action>: <errno text>" with `where` = path; reads errno, so call it at once.
Error file_error(std::string_view action, const std::filesystem::path& path);

Result<std::string> read_file(const std::filesystem::path& path);

// A file of exactly out.size() bytes, into `out`, whose content is undefined after an error.
Result<void> read_file_into(const std::filesystem::path& path, std::span<std::byte> out);

// Makes or overwrites `path`, in place and without waiting for the disk: for what a crash may lose.
Result<void> write_file(const std::filesystem::path& path, std::span<const std::byte> content);

// Replaces `path` whole or not at all, also through a crash or a power cut: a temporary beside it,
// fsync, rename, fsync of the directory. The directory must exist. Nothing is left behind on error.
Result<void> write_file_atomic(const std::filesystem::path& path, std::string_view content);
Result<void> write_file_atomic(const std::filesystem::path& path,
                               std::span<const std::byte> content);
// The parts one after another, for content that does not lie in one piece.
Result<void> write_file_atomic(const std::filesystem::path& path,
                               std::span<const std::span<const std::byte>> parts);

// Makes a rename or an unlink in `directory` durable.
Result<void> sync_directory(const std::filesystem::path& directory);

// What starts this program once more: $TANDEM_PROGRAM where a wrapper that carries its own loader
// set it (scripts/bundle), else the executable itself, also if its file was replaced meanwhile.
std::filesystem::path own_program();

// An exclusive lock on a file (an open file description lock), which ends with its owner however
// that dies; the file holds the owner's pid and stays when the lock ends. The error of a second
// taker names that pid, also where both take it at the same moment.
class FileLock {
 public:
  // `guarded` completes "… is in use by process 4711": "the state in ~/.tandem". `help` goes into
  // the error as it is. Creates the file; its directory must exist. Does not wait.
  static Result<FileLock> take(const std::filesystem::path& path, std::string_view guarded,
                               std::string_view help);
  // Whether somebody has it now; takes nothing. False where the file does not exist.
  static bool held(const std::filesystem::path& path);

 private:
  explicit FileLock(OwnedFd fd) : fd_(std::move(fd)) {}

  OwnedFd fd_;
};

}  // namespace tandem
