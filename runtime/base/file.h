// Files and descriptors as more than one folder needs them: an owned descriptor, whole-file reads,
// atomic replacement, an exclusive lock. Every error names the path and the operating system's
// reason, and has the code kFailed (exit 1: a file that cannot be read or written).
// Not here: formats, and files that grow (journals, logs, payload segments).
//
//   FI-1  A file that is read by its path is a regular file, is opened without a wait, and is read
//         up to a limit. A path may lead anywhere: a FIFO would wait for its writer for ever, and a
//         link to /dev/zero has no end.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace tandem {

// A file descriptor with one owner, which closes it at its own end. -1 stands for no descriptor.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // Gives the descriptor up without closing it.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// "cannot <action>: <errno text>" with `where` = path. Reads errno: call it right after the
// failure.
Error file_error(std::string_view action, const std::filesystem::path& path);
// The same for a reason that is known already, such as the value of a std::error_code.
Error file_error(std::string_view action, const std::filesystem::path& path, int os_error);
// Whether the error of a write passes once somebody mends the disk: it is full, a quota is used up,
// its file system has become read-only, or the device refuses (EIO). The write is repeated whole.
bool waits_for_disk(const Error& error);
// Whether that is for want of room: the disk is full, or a quota is used up.
bool lacks_room(const Error& error);
// Whether nothing can be written until somebody makes room or the file system writable. EIO is not
// among these: it may be of a read, or pass by itself.
bool lacks_disk(const Error& error);
// What is waited for then: "there is room", or "the disk can be written again".
const char* awaited_of_disk(const Error& error);
// How often whoever waits for that tries again.
inline constexpr Duration kRoomEvery = std::chrono::seconds(1);
// Whoever has waited for so long gives up, with the disk's error.
inline constexpr Duration kRoomWaitMax = std::chrono::hours(24);

// The reason alone of an error of this header, for a message that says itself what was attempted:
// "No such file or directory", "it is a FIFO, not a regular file".
std::string cause_of(const Error& error);

// A regular file that is open for reading, with its facts at that moment.
struct OpenFile {
  OwnedFd fd;
  std::uint64_t bytes = 0;
  std::uint64_t inode = 0;
};
enum class Links { kFollowed, kRefused };  // a symbolic link in the last place of the path

// FI-1. An error says what else was found: "it is a FIFO, not a regular file".
Result<OpenFile> open_regular(const std::filesystem::path& path, Links links = Links::kFollowed);
// Returns that error where `path` is something else than a regular file, for libraries that open a
// path by themselves. There is no error where nothing is there.
Result<void> refuse_irregular(const std::filesystem::path& path);

// The limit of a file for which the caller knows no tighter one.
inline constexpr std::uint64_t kFileBytesMax = 256u << 20;

// The whole content (FI-1). A file of more than `bytes_max` bytes is an error.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::uint64_t bytes_max = kFileBytesMax);
// Reads a file that is open, from the descriptor's position on; `path` is for the error.
Result<std::string> read_file(const OwnedFd& fd, const std::filesystem::path& path,
                              std::uint64_t bytes_max = kFileBytesMax);

// The first bytes, at most `bytes` of them (FI-1). Empty where the file cannot be read.
std::string file_head(const std::filesystem::path& path, std::size_t bytes);

// Whether `path` names a descriptor that this process was given by its parent: /dev/stdin, or
// /dev/fd/63, which a shell puts in the place of <(command).
bool is_descriptor(const std::filesystem::path& path);
// read_file(), which also takes a pipe or a terminal where is_descriptor(path): its writer exists
// already. A writer that is silent for longer than `silence_max` is an error, kTimedOut.
Result<std::string> read_file_or_pipe(const std::filesystem::path& path, std::uint64_t bytes_max,
                                      Duration silence_max);

// Reads a file of exactly out.size() bytes into `out`. A file of another size is an error. After an
// error the content of `out` is undefined.
Result<void> read_file_into(const std::filesystem::path& path, std::span<std::byte> out);

// Makes or overwrites `path`, in place and without waiting for the disk. A crash may leave part of
// the content, or none.
Result<void> write_file(const std::filesystem::path& path, std::span<const std::byte> content);
Result<void> write_file(const std::filesystem::path& path,
                        std::span<const std::span<const std::byte>> parts);

// Writes all of it, in as many system calls as that takes. False: errno says why.
bool write_all(int fd, std::span<const std::byte> content);
// Replaces `path` whole or not at all, also through a crash or a power cut: writes a temporary file
// beside it, fsync, rename, fsync of the directory. The directory must exist. An error removes the
// temporary file. Two threads of one process must not write one path at a time.
Result<void> write_file_atomic(const std::filesystem::path& path, std::string_view content);
Result<void> write_file_atomic(const std::filesystem::path& path,
                               std::span<const std::byte> content);
// The same for content in several parts, which are written one after another.
Result<void> write_file_atomic(const std::filesystem::path& path,
                               std::span<const std::span<const std::byte>> parts);

// Makes a rename or an unlink in `directory` durable.
Result<void> sync_directory(const std::filesystem::path& directory);

// The path by which this program can be started once more: $TANDEM_PROGRAM where it is set, which a
// wrapper with a loader of its own does (scripts/bundle); else /proc/PID/exe, which names the
// executable that runs even after its file was replaced.
std::filesystem::path own_program();

// An exclusive lock on a file, by which one process at a time uses a directory. The kernel ends the
// lock when its owner ends, by `kill -9` too. The file also holds the owner's pid as text, for
// people, and stays when the lock ends. The error of a second taker names that pid, even where both
// take the lock at the same moment. Two takers in one process exclude each other as well.
class FileLock {
 public:
  // Takes the lock or fails; does not wait. `guarded` begins the message of the error, "the state
  // in ~/.tandem" of "the state in ~/.tandem is in use by process 4711"; `help` is the error's
  // help. Creates the file; its directory must exist.
  static Result<FileLock> take(const std::filesystem::path& path, std::string_view guarded,
                               std::string_view help);
  // The same, and waits for the owner's end, however that comes: looks every kLockEvery, for at
  // most `wait_max`, after which the error is kTimedOut. `waits` gets the owner's pid before each
  // wait; may be empty.
  using Waits = std::function<void(pid_t owner)>;
  static Result<FileLock> take_within(const std::filesystem::path& path, std::string_view guarded,
                                      Duration wait_max, const Waits& waits);
  static constexpr Duration kLockEvery = std::chrono::milliseconds(50);
  // The process that holds the lock at this moment; nullopt where none does, or there is no such
  // file. Takes nothing.
  static std::optional<pid_t> owner(const std::filesystem::path& path);
  static bool held(const std::filesystem::path& path) { return owner(path).has_value(); }

 private:
  explicit FileLock(OwnedFd fd) : fd_(std::move(fd)) {}

  OwnedFd fd_;
};

}  // namespace tandem
