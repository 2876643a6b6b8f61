#include "runtime/base/replacing_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <span>
#include <system_error>
#include <utility>

#include "runtime/base/missing_directory.h"

namespace tandem {

Result<ReplacingFile> ReplacingFile::create(const std::filesystem::path& path) {
  if (const auto regular = refuse_irregular(path); !regular) return regular.error();
  if (const auto there = refuse_missing_directory(path); !there) return there.error();
  std::error_code failure;
  std::filesystem::path whole = std::filesystem::weakly_canonical(path, failure);
  if (failure) return file_error("create file", path, failure.value());
  // The pid keeps the temporaries of two processes apart.
  std::filesystem::path temporary = whole.string() + ".tmp" + std::to_string(::getpid());
  OwnedFd fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) return file_error("create file", path);
  return ReplacingFile(std::move(fd), std::move(whole), std::move(temporary));
}

ReplacingFile::ReplacingFile(ReplacingFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      bytes_(other.bytes_) {}

ReplacingFile::~ReplacingFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> ReplacingFile::write(std::string_view piece) {
  if (!write_all(fd_.get(), std::as_bytes(std::span(piece))))
    return file_error("write file", path_);
  bytes_ += piece.size();
  return {};
}

Result<void> ReplacingFile::commit() {
  // The sync comes before the rename: otherwise a crash could leave the name on a part.
  if (::fsync(fd_.get()) != 0) return file_error("write file", path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return file_error("replace file", path_);
  temporary_.clear();
  return sync_directory(path_.parent_path());
}

}  // namespace tandem
