#include "runtime/base/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <span>
#include <utility>

namespace tandem {

Result<AppendFile> AppendFile::open(const std::filesystem::path& path) {
  if (const auto regular = refuse_irregular(path); !regular) return regular.error();
  OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  struct stat facts {};
  if (!fd || ::fstat(fd.get(), &facts) != 0) return file_error("open the file", path);
  return AppendFile(std::move(fd), path, static_cast<std::uint64_t>(facts.st_size));
}

Result<void> AppendFile::append(std::string_view piece) {
  if (torn_ && !take_back()) return file_error("append to the file", path_);
  if (write_all(fd_.get(), std::as_bytes(std::span(piece)))) {
    bytes_ += piece.size();
    return {};
  }
  const Error error = file_error("append to the file", path_);
  torn_ = true;
  (void)take_back();  // else the next append tries again
  return error;
}

bool AppendFile::take_back() {
  torn_ = ::ftruncate(fd_.get(), static_cast<off_t>(bytes_)) != 0;
  return !torn_;
}

}  // namespace tandem
