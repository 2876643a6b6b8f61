#include "runtime/base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <thread>

namespace tandem {
namespace {

// open() of a directory entry; retried where a signal interrupts it.
OwnedFd open_file(const std::filesystem::path& path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (fd < 0 && errno == EINTR);
  return OwnedFd(fd);
}

// False with errno set.
bool write_all(int fd, std::span<const std::byte> content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content = content.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

// The two bytes of a lock file. The owner has kOwning as long as it lives; whoever takes the lock
// or asks who has it has kNaming meanwhile, so that nobody reads a name before it is written.
constexpr off_t kOwning = 0, kNaming = 1;

struct flock lock_range(off_t byte, short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = byte;
  range.l_len = 1;
  return range;
}

// Locks of the open file, not of the process: two takers in one process exclude each other too.
bool change_lock(int fd, off_t byte, short type) {
  struct flock range = lock_range(byte, type);
  return ::fcntl(fd, F_OFD_SETLK, &range) == 0;
}

// False where somebody else keeps the name for a second: it was stopped just there.
bool lock_naming(int fd) {
  for (int tries = 0; tries < 1000; ++tries) {
    if (change_lock(fd, kNaming, F_WRLCK)) return true;
    if (errno != EAGAIN && errno != EACCES) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

int pid_in(int fd) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  int pid = 0;
  std::from_chars(text.data(), text.data() + (got > 0 ? got : 0), pid);
  return pid;
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
          .help = {}};
}

Result<std::string> read_file(const std::filesystem::path& path) {
  const OwnedFd fd = open_file(path, O_RDONLY);
  if (!fd) return file_error("open file", path);
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

Result<void> write_file(const std::filesystem::path& path, std::span<const std::byte> content) {
  const OwnedFd fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!fd) return file_error("create file", path);
  if (!write_all(fd.get(), content)) return file_error("write file", path);
  return {};
}

Result<void> write_file_atomic(const std::filesystem::path& path,
                               std::span<const std::span<const std::byte>> parts) {
  // The pid keeps two processes' temporaries apart; two threads do not write one path.
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
  const std::filesystem::path where = directory.empty() ? "." : directory;
  const OwnedFd fd = open_file(where, O_RDONLY | O_DIRECTORY);
  if (!fd) return file_error("open directory", where);
  if (::fsync(fd.get()) != 0) return file_error("sync directory", where);
  return {};
}

Result<FileLock> FileLock::take(const std::filesystem::path& path, std::string_view guarded,
                                std::string_view help) {
  OwnedFd fd = open_file(path, O_RDWR | O_CREAT);
  if (!fd) return file_error("open lock file", path);
  const bool named = lock_naming(fd.get());
  if (!change_lock(fd.get(), kOwning, F_WRLCK)) {
    if (errno != EAGAIN && errno != EACCES) return file_error("lock file", path);
    const int pid = named ? pid_in(fd.get()) : 0;
    const std::string owner = pid > 0 ? "process " + std::to_string(pid) : "another process";
    return Error{.message = std::string(guarded) + " is in use by " + owner,
                 .where = path.string(),
                 .help = std::string(help)};
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 || !write_all(fd.get(), std::as_bytes(std::span(pid)))) {
    return file_error("write lock file", path);
  }
  change_lock(fd.get(), kNaming, F_UNLCK);
  return FileLock(std::move(fd));
}

bool FileLock::held(const std::filesystem::path& path) {
  const OwnedFd fd = open_file(path, O_RDWR);
  struct flock range = lock_range(kOwning, F_WRLCK);
  return fd && ::fcntl(fd.get(), F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

}  // namespace tandem
