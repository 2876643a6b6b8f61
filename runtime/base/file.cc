// Calls of the operating system, retried where a signal interrupts them, and their failures as
// Errors.
//
// Two parts have an idea of their own. write_file_atomic makes the content durable before the name
// points at it: fsync of the temporary, then rename, then fsync of the directory, without which a
// power cut may undo the rename. FileLock tells the owner's pid without reading the file: the owner
// locks the bytes 0 … pid, so that the length of the lock is the pid. A pid in the content could be
// read before the new owner has written it, or after an owner that has ended.
//
// The lock belongs to the open file (F_OFD_SETLK) and not to the process (F_SETLK): two takers in
// one process exclude each other, and closing another descriptor of the file does not end the lock.
#include "runtime/base/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "runtime/base/missing_directory.h"

namespace tandem {
namespace {

// A new file can be read by everybody (0644); secrets are made in secret.cc. O_NONBLOCK means
// nothing for regular files; without it the open of a FIFO would wait for the other end, whether to
// read or to write.
OwnedFd open_file(const std::filesystem::path& path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
  } while (fd < 0 && errno == EINTR);
  return OwnedFd(fd);
}

const char* kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISBLK(mode)) return "a block device";
  return "a socket";
}

Error irregular(const std::filesystem::path& path, mode_t mode) {
  return {.message = std::string("it is ") + kind_of(mode) + ", not a regular file",
          .where = path.string(),
          .help = "put a file in its place, or name another path"};
}

Error too_long(const std::filesystem::path& path, const std::string& bytes,
               std::uint64_t bytes_max) {
  return {.message = "the file has " + bytes + " bytes; at most " + std::to_string(bytes_max) +
                     " are read",
          .where = path.string(),
          .help = "a file for this purpose is never so long: is it the right one?"};
}

// Waits until `fd` has something to read or is at its end. False after `timeout`.
bool readable_within(int fd, Duration timeout) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  pollfd waited{.fd = fd, .events = POLLIN, .revents = 0};
  int ready = -1;
  do {
    ready = ::poll(&waited, 1, static_cast<int>(milliseconds));
  } while (ready < 0 && errno == EINTR);
  return ready != 0;
}

// Reads from the descriptor's position to the end. Waits where there is nothing to read now, which
// happens with pipes and terminals alone.
Result<std::string> read_to_end(const OwnedFd& fd, const std::filesystem::path& path,
                                std::uint64_t bytes_max, Duration silence_max) {
  std::string content;
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t got = ::read(fd.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      if (readable_within(fd.get(), silence_max)) continue;
      return Error{.code = ErrorCode::kTimedOut,
                   .message = "nothing came from the program that writes it, for " +
                              std::to_string(silence_max / std::chrono::seconds(1)) + " s",
                   .where = path.string(),
                   .help = "write it into a file first, and name that file"};
    }
    if (got < 0) return file_error("read file", path);
    if (got == 0) return content;
    content.append(block.data(), static_cast<std::size_t>(got));
    if (content.size() > bytes_max)
      return too_long(path, "more than " + std::to_string(bytes_max), bytes_max);
  }
}

}  // namespace

bool write_all(int fd, std::span<const std::byte> content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content = content.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

namespace {

// A lock whose owner ends between our try and our look at it is tried again. Owners that come and
// go faster than this many times are reported without a pid.
constexpr int kLockTries = 100;

// The bytes 0 … pid of a lock file. A taker that finds byte 0 locked learns the pid from the length
// of the lock, which the kernel sets together with the lock itself.
struct flock lock_range(pid_t pid) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_len = off_t{pid} + 1;
  return range;
}

// The pid of the process that holds the lock on an open file; 0: no process does.
pid_t lock_owner(int fd) {
  struct flock range = lock_range(0);
  if (::fcntl(fd, F_OFD_GETLK, &range) != 0 || range.l_type == F_UNLCK) return 0;
  return static_cast<pid_t>(range.l_len - 1);
}

// How a person mends the disk; nothing where the error is not of a disk.
std::string help_of_disk(int os_error) {
  switch (os_error) {
    case ENOSPC:
      return "make room on its file system, or choose another folder";
    case EDQUOT:
      return "make room within the quota, or choose another folder";
    case EROFS:
      return "its file system is read-only: make it writable, or choose another folder";
    case EIO:
      return "the disk refuses: look at the kernel's messages, or choose another folder";
    case ESTALE:
    case ETIMEDOUT:
      return "the server of a network file system does not answer: look at it, or choose another "
             "folder";
    case EMFILE:
    case ENFILE:
      return "too many files are open: raise `ulimit -n`, or close some";
    default:
      return {};
  }
}

}  // namespace

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

OwnedFd::~OwnedFd() {
  if (fd_ >= 0) ::close(fd_);
}

bool lacks_room(const Error& error) { return error.os_error == ENOSPC || error.os_error == EDQUOT; }

bool lacks_disk(const Error& error) { return lacks_room(error) || error.os_error == EROFS; }

namespace {

// ESTALE and ETIMEDOUT are those of a network file system whose server is away.
bool refuses(const Error& error) {
  constexpr std::array kReasons{EROFS, EIO, ESTALE, ETIMEDOUT};
  return std::ranges::find(kReasons, error.os_error) != kReasons.end();
}
bool lacks_descriptors(const Error& error) {
  return error.os_error == EMFILE || error.os_error == ENFILE;
}

}  // namespace

bool waits_for_disk(const Error& error) {
  return lacks_room(error) || refuses(error) || lacks_descriptors(error);
}

const char* awaited_of_disk(const Error& error) {
  if (lacks_descriptors(error)) return "there are descriptors again";
  return refuses(error) ? "the disk can be written again" : "there is room";
}

Error file_error(std::string_view action, const std::filesystem::path& path) {
  return file_error(action, path, errno);
}

Error file_error(std::string_view action, const std::filesystem::path& path, int os_error) {
  return {.message = "cannot " + std::string(action) + ": " + errno_text(os_error),
          .where = path.string(),
          .help = help_of_disk(os_error),
          .os_error = os_error};
}

std::string cause_of(const Error& error) {
  return error.os_error != 0 ? errno_text(error.os_error) : error.message;
}

Result<OpenFile> open_regular(const std::filesystem::path& path, Links links) {
  OwnedFd fd = open_file(path, links == Links::kFollowed ? O_RDONLY : O_RDONLY | O_NOFOLLOW);
  if (!fd && errno == ENXIO) return irregular(path, S_IFSOCK);  // sockets cannot be opened
  if (!fd) return file_error("open file", path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return file_error("examine file", path);
  if (!S_ISREG(status.st_mode)) return irregular(path, status.st_mode);
  return OpenFile{.fd = std::move(fd),
                  .bytes = static_cast<std::uint64_t>(status.st_size),
                  .inode = status.st_ino};
}

Result<void> refuse_irregular(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return {};
  return irregular(path, status.st_mode);
}

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t bytes_max) {
  const auto file = open_regular(path);
  if (!file) return file.error();
  if (file->bytes > bytes_max) return too_long(path, std::to_string(file->bytes), bytes_max);
  return read_file(file->fd, path, bytes_max);
}

Result<std::string> read_file(const OwnedFd& fd, const std::filesystem::path& path,
                              std::uint64_t bytes_max) {
  return read_to_end(fd, path, bytes_max, Duration::zero());
}

std::string file_head(const std::filesystem::path& path, std::size_t bytes) {
  std::string head(bytes, '\0');
  const auto file = open_regular(path);
  const ssize_t got = file ? ::pread(file->fd.get(), head.data(), bytes, 0) : 0;
  head.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return head;
}

bool is_descriptor(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  return path == "/dev/stdin" || folder == "/dev/fd" || folder == "/proc/self/fd";
}

Result<std::string> read_file_or_pipe(const std::filesystem::path& path, std::uint64_t bytes_max,
                                      Duration silence_max) {
  if (!is_descriptor(path)) return read_file(path, bytes_max);
  const OwnedFd fd = open_file(path, O_RDONLY);
  if (!fd) return file_error("open file", path);
  return read_to_end(fd, path, bytes_max, silence_max);
}

Result<void> read_file_into(const std::filesystem::path& path, std::span<std::byte> out) {
  const auto file = open_regular(path);
  if (!file) return file.error();
  const auto wrong_size = [&](std::size_t bytes) {
    return Error{.message = "it has " + std::to_string(bytes) + " bytes instead of " +
                            std::to_string(out.size()),
                 .where = path.string(),
                 .help = {}};
  };
  if (file->bytes != out.size()) return wrong_size(file->bytes);
  for (std::size_t done = 0; done < out.size();) {
    const ssize_t got = ::read(file->fd.get(), out.data() + done, out.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read file", path);
    if (got == 0) return wrong_size(done);  // the file was truncated after fstat
    done += static_cast<std::size_t>(got);
  }
  return {};
}

Result<void> write_file(const std::filesystem::path& path,
                        std::span<const std::span<const std::byte>> parts) {
  const OwnedFd fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!fd) return file_error("create file", path);
  for (const std::span<const std::byte> part : parts)
    if (!write_all(fd.get(), part)) return file_error("write file", path);
  return {};
}

Result<void> write_file(const std::filesystem::path& path, std::span<const std::byte> content) {
  return write_file(path, std::span(&content, 1));
}

Result<void> write_file_atomic(const std::filesystem::path& path,
                               std::span<const std::span<const std::byte>> parts) {
  // The pid keeps the temporaries of two processes apart.
  const std::filesystem::path temporary = path.string() + ".tmp" + std::to_string(::getpid());
  const auto fail = [&](std::string_view action) {
    Error error = file_error(action, path);  // callers do not know the temporary
    ::unlink(temporary.c_str());
    return error;
  };
  {
    const OwnedFd fd = open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (!fd) {
      Error error = file_error("create file", path);
      if (const auto there = refuse_missing_directory(path); !there) return there.error();
      return error;
    }
    for (const std::span<const std::byte> part : parts) {
      if (!write_all(fd.get(), part)) return fail("write file");
    }
    // The sync comes before the rename: otherwise a crash could leave the new name on content not
    // yet on the disk.
    if (::fsync(fd.get()) != 0) return fail("sync file");
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail("replace file");
  return sync_directory(path.parent_path());
}

Result<void> write_file_atomic(const std::filesystem::path& path,
                               std::span<const std::byte> content) {
  return write_file_atomic(path, std::span(&content, 1));
}

Result<void> write_file_atomic(const std::filesystem::path& path, std::string_view content) {
  return write_file_atomic(path, std::as_bytes(std::span(content)));
}

Result<void> sync_directory(const std::filesystem::path& directory) {
  // The parent path of a bare file name is empty.
  const std::filesystem::path where = directory.empty() ? "." : directory;
  const OwnedFd fd = open_file(where, O_RDONLY | O_DIRECTORY);
  if (!fd) return file_error("open directory", where);
  if (::fsync(fd.get()) != 0) return file_error("sync directory", where);
  return {};
}

std::filesystem::path own_program() {
  const char* const wrapper = std::getenv("TANDEM_PROGRAM");
  return wrapper != nullptr ? wrapper : "/proc/" + std::to_string(::getpid()) + "/exe";
}

Result<FileLock> FileLock::take(const std::filesystem::path& path, std::string_view guarded,
                                std::string_view help) {
  OwnedFd fd = open_file(path, O_RDWR | O_CREAT);
  if (!fd) return file_error("open lock file", path);
  struct flock range = lock_range(::getpid());
  for (int tries = 1; ::fcntl(fd.get(), F_OFD_SETLK, &range) != 0; ++tries) {
    if (errno != EAGAIN && errno != EACCES) return file_error("lock file", path);
    const pid_t owner = lock_owner(fd.get());
    if (owner == 0 && tries < kLockTries) continue;  // the owner has just ended: try again
    const std::string who = owner == 0 ? "another process" : "process " + std::to_string(owner);
    return Error{.message = std::string(guarded) + " is in use by " + who,
                 .where = path.string(),
                 .help = std::string(help)};
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 || !write_all(fd.get(), std::as_bytes(std::span(pid)))) {
    return file_error("write lock file", path);
  }
  return FileLock(std::move(fd));
}

Result<FileLock> FileLock::take_within(const std::filesystem::path& path, std::string_view guarded,
                                       Duration wait_max, const Waits& waits) {
  const Time until = steady_now() + wait_max;
  for (bool ended = false;;) {
    auto taken = take(path, guarded, "");
    if (taken) return taken;
    // An owner that ended after take() had seen it leaves a lock that can be had. Where there is no
    // owner the second time either, the file itself cannot be locked.
    const auto holder = owner(path);
    if (!holder && std::exchange(ended, true)) return taken;
    if (!holder) continue;
    ended = false;
    if (steady_now() >= until) {
      Error error = taken.error();
      error.code = ErrorCode::kTimedOut;
      return error;
    }
    if (waits) waits(*holder);
    constexpr auto kWait = std::chrono::duration_cast<std::chrono::milliseconds>(kLockEvery);
    ::poll(nullptr, 0, static_cast<int>(kWait.count()));
  }
}

std::optional<pid_t> FileLock::owner(const std::filesystem::path& path) {
  // To ask needs no right to write: the file system may have become read-only meanwhile.
  const OwnedFd fd = open_file(path, O_RDONLY);
  const pid_t owner = fd ? lock_owner(fd.get()) : 0;
  return owner == 0 ? std::nullopt : std::optional(owner);
}

}  // namespace tandem
