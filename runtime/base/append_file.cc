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
  if (!write_all(fd_.get(), std::as_bytes(std::span(piece)))) {
    const Error error = file_error("append to the file", path_);
    // A part of the piece may be there. If it cannot be taken back either, readers skip it.
    (void)!::ftruncate(fd_.get(), static_cast<off_t>(bytes_));
    return error;
  }
  bytes_ += piece.size();
  return {};
}

}  // namespace tandem
