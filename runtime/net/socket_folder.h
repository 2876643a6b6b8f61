// A short folder of this user's alone for the Unix sockets of one process. It goes with its owner;
// one that a killed process left is removed by the next process that makes one in the same place.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/base/file.h"
#include "runtime/base/result.h"
#include "runtime/net/endpoint.h"

namespace tandem::runtime {

class SocketFolder {
 public:
  // In `preferred` where that is a private directory of ours, else in XDG_RUNTIME_DIR under the
  // same condition, else in the folder for temporary files; a path that leaves no room for a
  // socket's name is passed over. A process that outlives its user's sessions names a place of its
  // own: XDG_RUNTIME_DIR goes with the last of them. Errors: the folder cannot be made.
  static Result<SocketFolder> make(const std::filesystem::path& preferred = {});
  SocketFolder(SocketFolder&&) noexcept = default;
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  // A place that no earlier call has returned.
  Endpoint next();
  const std::filesystem::path& path() const { return path_; }

 private:
  SocketFolder(std::filesystem::path path, FileLock lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  FileLock lock_;
  int used_ = 0;
};

}  // namespace tandem::runtime
