// A folder for the Unix sockets of one process, which only this user can open and whose path is
// short enough for a socket's address. The destructor removes it. A folder that a killed process
// left is removed by the next process that makes one in the same place.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/base/file.h"
#include "runtime/base/result.h"
#include "runtime/link/endpoint.h"

namespace tandem::runtime {

class SocketFolder {
 public:
  // Makes the folder in `preferred` where that is a private directory of this user, else in
  // XDG_RUNTIME_DIR under the same condition, else in the folder for temporary files. A place whose
  // path leaves no room for a socket's name is skipped. XDG_RUNTIME_DIR is removed when its user's
  // last session ends, so a process that outlives sessions names another place. Errors: the folder
  // cannot be made.
  static Result<SocketFolder> make(const std::filesystem::path& preferred = {});
  SocketFolder(SocketFolder&&) noexcept = default;
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  // A path in the folder that no earlier call has returned.
  Endpoint next();
  const std::filesystem::path& path() const { return path_; }

 private:
  SocketFolder(std::filesystem::path path, FileLock lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  FileLock lock_;  // says to other processes that this folder is in use
  int used_ = 0;   // sockets that next() has named
};

}  // namespace tandem::runtime
