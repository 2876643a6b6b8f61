#include "runtime/link/socket_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/log.h"

namespace tandem::link {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "tandem-sock-";
constexpr const char* kLock = "lock";
constexpr const char* kHelp =
    "set TANDEM_HOME to a short path, or XDG_RUNTIME_DIR or TMPDIR to a folder that you can write";
constexpr std::size_t kRandomBytes = 6;  // the characters that mkdtemp replaces
constexpr std::size_t kNameMax = 8;      // "/s12345"
// A folder this young may be about to get its lock.
constexpr auto kSettled = std::chrono::minutes(1);

bool has_room(const fs::path& base) {
  return base.string().size() + 1 + std::string_view(kPrefix).size() + kRandomBytes + kNameMax <=
         kSocketPathMax;
}

// The places for the folder, the best one first. The last one is tried whatever it is.
std::vector<fs::path> places(const fs::path& preferred) {
  const char* const runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  std::vector<fs::path> places;
  for (const fs::path& base : {preferred, fs::path(runtime_dir == nullptr ? "" : runtime_dir)}) {
    if (base.is_absolute() && is_private_directory(base) && has_room(base)) places.push_back(base);
  }
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);  // TMPDIR, else /tmp
  places.push_back(error || !has_room(temporary) ? fs::path("/tmp") : temporary);
  return places;
}

// Some file systems of home directories have no Unix sockets.
bool has_sockets(const fs::path& folder) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = (folder / "probe").string();
  CHECK(path.size() <= kSocketPathMax);
  path.copy(address.sun_path, path.size());
  const OwnedFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool bound =
      fd && ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  ::unlink(path.c_str());
  return bound;
}

// The number of the last socket that next() named in the folder; 0: there is none.
int highest_socket(const fs::path& folder) {
  int highest = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    int number = 0;
    if (name.starts_with('s') &&
        std::from_chars(name.data() + 1, name.data() + name.size(), number).ec == std::errc())
      highest = std::max(highest, number);
  }
  return highest;
}

void remove_sockets(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_socket(error)) ::unlink(entry.path().c_str());
}

// Removes a folder that a killed process left. Such a folder has a lock file that no process holds,
// and sockets; other files in it are not touched, and rmdir then keeps the folder.
void reclaim(const fs::path& folder) {
  std::error_code error;
  const auto changed = fs::last_write_time(folder, error);
  const bool settled = !error && fs::file_time_type::clock::now() - changed > kSettled;
  if (!settled || !is_private_directory(folder)) return;
  // A folder without its lock file is left alone: a cleaner of old files may have removed the lock
  // of a process that still runs.
  if (!fs::exists(folder / kLock, error) || FileLock::held(folder / kLock)) return;
  remove_sockets(folder);
  ::unlink((folder / kLock).c_str());
  if (::rmdir(folder.c_str()) == 0) {
    log::info("event=stale_sockets_removed folder={}", folder.string());
  }
}

void reclaim_all(const fs::path& parent) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    if (entry.path().filename().string().starts_with(kPrefix)) reclaim(entry.path());
  }
}

}  // namespace

bool is_private_directory(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

Result<SocketFolder> SocketFolder::make(const fs::path& preferred, const fs::path& former) {
  if (!former.empty()) {
    auto taken = take_over(former);
    if (taken) return taken;
    log::warn("event=sockets_not_taken_over folder={} error=\"{}\"", former.string(),
              taken.error().message);
  }
  const std::vector<fs::path> bases = places(preferred);
  for (std::size_t i = 0; i + 1 < bases.size(); ++i) {
    auto made = make_in(bases[i]);
    if (made) return made;
    log::warn("event=no_sockets_here folder={} error=\"{}\"", bases[i].string(),
              made.error().message);
  }
  return make_in(bases.back());
}

// The lock tells a folder whose process has died from one in use.
Result<SocketFolder> SocketFolder::take_over(const fs::path& former) {
  if (!former.is_absolute() || !former.filename().string().starts_with(kPrefix))
    return Error{ErrorCode::kInvalid, "this is no folder for sockets", former.string(), kHelp};
  if (auto made = make_again(former); !made) return made.error();
  auto claimed = claim(former);
  if (!claimed) return claimed.error();
  SocketFolder folder(former, *std::move(claimed));
  folder.former_ = highest_socket(former);
  remove_sockets(former);
  if (!has_sockets(former))
    return Error{ErrorCode::kFailed, "no Unix socket can be made in this folder", former.string(),
                 kHelp};
  return folder;
}

Result<SocketFolder> SocketFolder::make_in(const fs::path& base) {
  reclaim_all(base);
  std::string path = (base / (std::string(kPrefix) + "XXXXXX")).string();
  // Mode 0700, and never one that is there.
  if (::mkdtemp(path.data()) == nullptr) {
    Error error = file_error("make a folder for sockets", base);
    error.help = kHelp;
    return error;
  }
  auto claimed = claim(path);
  if (!claimed) return claimed.error();
  SocketFolder folder(path, *std::move(claimed));
  if (!has_sockets(path))
    return Error{ErrorCode::kFailed, "no Unix socket can be made in this folder", path, kHelp};
  return folder;
}

Result<SocketFolder::Claim> SocketFolder::claim(const fs::path& path) {
  auto lock = FileLock::take(path / kLock, "the folder " + path.string(), "");
  if (!lock) return lock.error();
  OwnedFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // systemd-tmpfiles leaves a directory alone on which another process has such a lock. A file
  // system without locks is no reason to go without sockets.
  if (folder) (void)::flock(folder.get(), LOCK_SH | LOCK_NB);
  return Claim{*std::move(lock), std::move(folder)};
}

// Does nothing where it is there.
Result<void> SocketFolder::make_again(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return file_error("make the folder for sockets again", path);
  if (!is_private_directory(path))
    return Error{ErrorCode::kUnauthorised,
                 "the folder for sockets is gone, and something else is in its place",
                 path.string(), kHelp};
  return {};
}

Result<SocketFolder::Kept> SocketFolder::keep(Time now) {
  std::error_code error;
  if (is_private_directory(path_) && fs::exists(path_ / kLock, error)) {
    if (touched_ && now - *touched_ < kTouchEvery) return Kept::kIntact;
    touched_ = now;
    const auto touch = [](const fs::path& path) {
      ::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
    };
    for (const auto& entry : fs::directory_iterator(path_, error)) touch(entry.path());
    touch(path_);
    return Kept::kIntact;
  }
  if (auto made = make_again(path_); !made) return made.error();
  auto claimed = claim(path_);
  if (!claimed) return claimed.error();
  claim_ = *std::move(claimed);
  touched_ = now;
  return Kept::kMadeAgain;
}

SocketFolder::~SocketFolder() {
  if (path_.empty()) return;  // moved from
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Endpoint SocketFolder::next() {
  ++used_;
  if (used_ == 2) used_ = std::max(used_, former_ + 1);
  return {.path = (path_ / ("s" + std::to_string(used_))).string()};
}

}  // namespace tandem::link
