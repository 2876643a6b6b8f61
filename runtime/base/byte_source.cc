#include "runtime/base/byte_source.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace tandem {
namespace {

class FileBytes final : public ByteSource {
 public:
  FileBytes(OwnedFd fd, std::filesystem::path path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Result<std::size_t> read(std::span<char> out) override {
    for (;;) {
      const ssize_t got = ::read(fd_.get(), out.data(), out.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return file_error("read file", path_);
      bytes_read_ += static_cast<std::uint64_t>(got);
      return static_cast<std::size_t>(got);
    }
  }
  std::uint64_t bytes_read() const override { return bytes_read_; }

 private:
  const OwnedFd fd_;
  const std::filesystem::path path_;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> file_bytes(OwnedFd fd, std::filesystem::path path) {
  return std::make_unique<FileBytes>(std::move(fd), std::move(path));
}

}  // namespace tandem
