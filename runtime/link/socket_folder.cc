#include "runtime/link/socket_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "runtime/base/log.h"

namespace tandem::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "tandem-sock-";
constexpr const char* kLock = "lock";
constexpr std::size_t kRandomBytes = 6;  // the characters that mkdtemp replaces
constexpr std::size_t kNameMax = 8;      // "/s12345"
// A folder this young may be about to get its lock.
constexpr auto kSettled = std::chrono::minutes(1);

bool is_ours(const fs::path& path, mode_t forbidden) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & forbidden) == 0;
}

bool has_room(const fs::path& base) {
  return base.string().size() + 1 + std::string_view(kPrefix).size() + kRandomBytes + kNameMax <=
         kSocketPathMax;
}

// Where the folder is made.
fs::path parent(const fs::path& preferred) {
  const char* const runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  for (const fs::path& base : {preferred, fs::path(runtime_dir == nullptr ? "" : runtime_dir)}) {
    if (base.is_absolute() && is_ours(base, S_IRWXG | S_IRWXO) && has_room(base)) return base;
  }
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);  // TMPDIR, else /tmp
  return error || !has_room(temporary) ? fs::path("/tmp") : temporary;
}

// Removes a folder that a killed process left. Such a folder has a lock file that no process holds,
// and sockets; other files in it are not touched, and rmdir then keeps the folder.
void reclaim(const fs::path& folder) {
  std::error_code error;
  const auto changed = fs::last_write_time(folder, error);
  const bool settled = !error && fs::file_time_type::clock::now() - changed > kSettled;
  if (!settled || !is_ours(folder, S_IRWXG | S_IRWXO)) return;
  // A folder without its lock file is left alone: a cleaner of old files may have removed the lock
  // of a process that still runs.
  if (!fs::exists(folder / kLock, error) || FileLock::held(folder / kLock)) return;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_socket(error) || entry.path().filename() == kLock) {
      ::unlink(entry.path().c_str());
    }
  }
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

Result<SocketFolder> SocketFolder::make(const fs::path& preferred) {
  const fs::path base = parent(preferred);
  reclaim_all(base);
  std::string path = (base / (std::string(kPrefix) + "XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr) {  // mode 0700, and never one that is there
    Error error = file_error("make a folder for sockets", base);
    error.help = "set XDG_RUNTIME_DIR or TMPDIR to a folder that you can write";
    return error;
  }
  auto lock = FileLock::take(fs::path(path) / kLock, "the folder " + path, "");
  if (!lock) return lock.error();
  return SocketFolder(path, std::move(*lock));
}

SocketFolder::~SocketFolder() {
  if (path_.empty()) return;  // moved from
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Endpoint SocketFolder::next() {
  return {.path = (path_ / ("s" + std::to_string(++used_))).string()};
}

}  // namespace tandem::runtime
