// A folder for the Unix sockets of one process, which only this user can open and whose path is
// short enough for a socket's address. The destructor removes it. A folder that a killed process
// left is removed by the next process that makes one in the same place.
//
// Programs that clean folders of temporary files remove what has not been used for some days, also
// a folder with sockets at which a process listens. keep() gives them no reason to, and makes the
// folder again where it is gone all the same; each ZmqSocket then makes its own file in it again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/result.h"
#include "runtime/link/endpoint.h"

namespace tandem::link {

class SocketFolder {
 public:
  // Makes the folder in `preferred` where that is a private directory of this user, else in
  // XDG_RUNTIME_DIR under the same condition, else in the folder for temporary files. A place is
  // skipped if its path leaves no room for a socket's name, or its file system has no sockets.
  // XDG_RUNTIME_DIR is removed when its user's last session ends, and temporary files are cleaned,
  // so a process that lasts for days names another place. Errors: the folder cannot be made.
  //
  // `former`: the folder of a process that died, whose clients dial there. It is taken over, or
  // made again where it is gone; another one is made where that cannot be done.
  static Result<SocketFolder> make(const std::filesystem::path& preferred = {},
                                   const std::filesystem::path& former = {});
  SocketFolder(SocketFolder&&) noexcept = default;
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  // Call it several times a minute. Marks the folder and the files in it as used, once in
  // kTouchEvery. Makes the folder again where it is gone. Errors: it is gone and cannot be made, or
  // its path was taken by another user.
  enum class Kept { kIntact, kMadeAgain };
  static constexpr Duration kTouchEvery = std::chrono::hours(1);
  Result<Kept> keep(Time now);

  // A path in the folder that no earlier call has returned. In a folder that was taken over the
  // first one is the first one of the process before, and the others are new.
  Endpoint next();
  const std::filesystem::path& path() const { return path_; }

 private:
  // They say that this folder is in use: the lock to other processes of ours, the descriptor, by
  // an flock, to systemd-tmpfiles.
  struct Claim {
    FileLock lock;
    OwnedFd folder;
  };
  static Result<Claim> claim(const std::filesystem::path& path);
  static Result<void> make_again(const std::filesystem::path& path);
  static Result<SocketFolder> take_over(const std::filesystem::path& former);
  static Result<SocketFolder> make_in(const std::filesystem::path& base);
  SocketFolder(std::filesystem::path path, Claim claim)
      : path_(std::move(path)), claim_(std::move(claim)) {}

  std::filesystem::path path_;
  Claim claim_;
  std::optional<Time> touched_;
  int used_ = 0;    // sockets that next() has named
  int former_ = 0;  // the highest one of the process before, where it was taken over
};

// Whether `path` is a directory, and no link, that belongs to this user and that nobody else can
// enter.
bool is_private_directory(const std::filesystem::path& path);

}  // namespace tandem::link
