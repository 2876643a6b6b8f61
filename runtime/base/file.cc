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
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace tandem {
namespace {

// A new file can be read by everybody (0644); secrets are made in secret.cc.
OwnedFd open_file(const std::filesystem::path& path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (fd < 0 && errno == EINTR);
  return OwnedFd(fd);
}

// Writes all of `content`, in as many calls as the system needs. False with errno set.
bool write_all(int fd, std::span<const std::byte> content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content = content.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

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

Error file_error(std::string_view action, const std::filesystem::path& path) {
  const int reason = errno;
  return {.message = "cannot " + std::string(action) + ": " + errno_text(reason),
          .where = path.string(),
          .help = {},
          .os_error = reason};
}

Result<std::string> read_file(const std::filesystem::path& path) {
  const OwnedFd fd = open_file(path, O_RDONLY);
  if (!fd) return file_error("open file", path);
  return read_file(fd, path);
}

Result<std::string> read_file(const OwnedFd& fd, const std::filesystem::path& path) {
  std::string content;
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t got = ::read(fd.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read file", path);
    if (got == 0) return content;
    content.append(block.data(), static_cast<std::size_t>(got));
  }
}

Result<void> read_file_into(const std::filesystem::path& path, std::span<std::byte> out) {
  const OwnedFd fd = open_file(path, O_RDONLY);
  if (!fd) return file_error("open file", path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return file_error("examine file", path);
  const auto wrong_size = [&](std::size_t bytes) {
    return Error{.message = "it has " + std::to_string(bytes) + " bytes instead of " +
                            std::to_string(out.size()),
                 .where = path.string(),
                 .help = {}};
  };
  if (static_cast<std::size_t>(status.st_size) != out.size())
    return wrong_size(static_cast<std::size_t>(status.st_size));
  for (std::size_t done = 0; done < out.size();) {
    const ssize_t got = ::read(fd.get(), out.data() + done, out.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read file", path);
    if (got == 0) return wrong_size(done);  // the file was truncated after fstat
    done += static_cast<std::size_t>(got);
  }
  return {};
}

Result<void> write_file(const std::filesystem::path& path, std::span<const std::byte> content) {
  const OwnedFd fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!fd) return file_error("create file", path);
  if (!write_all(fd.get(), content)) return file_error("write file", path);
  return {};
}

Result<void> write_file_atomic(const std::filesystem::path& path,
                               std::span<const std::span<const std::byte>> parts) {
  // The pid keeps the temporaries of two processes apart.
  const std::filesystem::path temporary = path.string() + ".tmp" + std::to_string(::getpid());
  const auto fail = [&](std::string_view action, const std::filesystem::path& where) {
    Error error = file_error(action, where);
    ::unlink(temporary.c_str());
    return error;
  };
  {
    const OwnedFd fd = open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (!fd) return file_error("create file", temporary);
    for (const std::span<const std::byte> part : parts) {
      if (!write_all(fd.get(), part)) return fail("write file", temporary);
    }
    // Before the rename: otherwise a crash could leave the new name on content not yet on the disk.
    if (::fsync(fd.get()) != 0) return fail("sync file", temporary);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail("replace file", path);
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

bool FileLock::held(const std::filesystem::path& path) {
  const OwnedFd fd = open_file(path, O_RDWR);
  return fd && lock_owner(fd.get()) != 0;
}

}  // namespace tandem
