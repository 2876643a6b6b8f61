// An entry is one zstd frame at level 1, with a checksum: rows of JSON repeat their keys and shrink
// to a quarter, faster than most disks write. It is written to a file with a name of its own in the
// same folder, so that two processes that make one entry at the same time, of which one waited too
// long for the other, do not meet: both rename, and both files hold the same rows.
//
// A file that a killed process left, an entry without a name or the lock of one, is not looked at
// by anybody. Whoever commits an entry removes such files once they have not been written to for an
// hour, which is longer than any maker of rows may be silent.
//
// The lock of an entry is a file beside it, which its owner removes before it ends the lock. A
// process that has opened that file just before locks what has no name any more, and another one
// may then lock a new file: where the first of three fails, two make the entry, and nothing is
// wrong with it.
#include "actors/data/row_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "actors/data/packed_bytes.h"
#include "runtime/base/check.h"

namespace tandem::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".jsonl.zst";
constexpr std::string_view kLockExtension = ".lock";
constexpr std::string_view kUnfinished = "unfinished-";
constexpr auto kUnfinishedAgeMax = std::chrono::hours(1);
constexpr int kLevel = 1;

constexpr const char* kHelp =
    "the rows of parquet files are kept there as JSON: make room, or set TANDEM_HOME to a folder "
    "on another disk";

Error cache_error(std::string_view action, const fs::path& path) {
  Error error = file_error(action, path);
  error.help = kHelp;
  return error;
}

struct Entry {
  fs::path path;
  std::uint64_t bytes = 0;
  fs::file_time_type used;
};

// Removes files that were never finished, and entries above the bound (KE-2). What cannot be
// removed stays: another process may have removed it.
void tidy(const RowCache& cache, const fs::path& newest) {
  std::vector<Entry> entries;
  std::uint64_t bytes = 0;
  std::error_code failure;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator at(cache.folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    std::error_code gone;
    const std::string name = at->path().filename();
    const auto used = at->last_write_time(gone);
    const std::uint64_t size = gone ? 0 : at->file_size(gone);
    if (gone) continue;
    const bool locks = name.ends_with(kLockExtension);
    if (name.starts_with(kUnfinished) || locks) {
      const bool old = now - used > kUnfinishedAgeMax;
      if (old && !(locks && FileLock::held(at->path()))) fs::remove(at->path(), gone);
    } else if (name.ends_with(kExtension)) {
      bytes += size;
      if (at->path() != newest) entries.push_back({at->path(), size, used});
    }
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    if (bytes <= cache.bytes_max) return;
    fs::remove(entry.path, failure);
    bytes -= entry.bytes;
  }
}

// Makes the folder and those above it, where they are missing, for their owner alone.
Result<void> make_folder(const fs::path& folder) {
  std::error_code failure;
  if (folder.empty() || fs::is_directory(folder, failure)) return {};
  if (auto made = make_folder(folder.parent_path()); !made) return made;
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return cache_error("make folder", folder);
  return {};
}

}  // namespace

fs::path entry_path(const RowCache& cache, const std::string& name) {
  return cache.folder / (name + std::string(kExtension));
}

std::unique_ptr<ByteSource> open_entry(const RowCache& cache, const std::string& name) {
  const fs::path path = entry_path(cache, name);
  auto file = open_regular(path);
  if (!file) return nullptr;
  ::futimens(file->fd.get(), nullptr);  // where that is not allowed, the entry merely looks older
  return unpacked(file_bytes(std::move(file->fd), path), Packing::kZstd, path);
}

std::unique_ptr<EntryTurn> EntryTurn::take(const RowCache& cache, const std::string& name,
                                           const FileLock::Waits& waits) {
  if (!make_folder(cache.folder)) return nullptr;
  const fs::path path = cache.folder / (name + std::string(kLockExtension));
  auto lock = FileLock::take_within(path, "the conversion", cache.wait_max, waits);
  if (!lock) return nullptr;
  return std::unique_ptr<EntryTurn>(new EntryTurn(path, std::move(*lock)));
}

EntryTurn::~EntryTurn() { ::unlink(path_.c_str()); }

struct RowCacheWriter::State {
  State(RowCache to, std::string named, std::unique_ptr<EntryTurn> held)
      : cache(std::move(to)), name(std::move(named)), turn(std::move(held)) {}
  ~State() {
    if (!temporary.empty()) ::unlink(temporary.c_str());
    ::ZSTD_freeCCtx(packer);
  }

  // Begins the frame. Of the threads beside this one, which pack while this one reads, there is one
  // or none. False: the machine gives no thread, or no memory.
  bool begin_frame(int threads) {
    ::ZSTD_CCtx_reset(packer, ZSTD_reset_session_and_parameters);
    ::ZSTD_CCtx_setParameter(packer, ZSTD_c_compressionLevel, kLevel);
    ::ZSTD_CCtx_setParameter(packer, ZSTD_c_checksumFlag, 1);
    // A zstd that was built without threads refuses this, and packs in the calls.
    ::ZSTD_CCtx_setParameter(packer, ZSTD_c_nbWorkers, threads);
    ZSTD_inBuffer nothing{nullptr, 0, 0};
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    const std::size_t left = ::ZSTD_compressStream2(packer, &out, &nothing, ZSTD_e_continue);
    return !::ZSTD_isError(left) && write({piece.data(), out.pos}).has_value();
  }

  // Packs `text`; with ZSTD_e_end also writes the frame's end.
  Result<void> pack(std::string_view text, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{text.data(), text.size(), 0};
    for (bool done = false; !done;) {
      ZSTD_outBuffer out{piece.data(), piece.size(), 0};
      const std::size_t left = ::ZSTD_compressStream2(packer, &out, &in, directive);
      if (::ZSTD_isError(left))
        return Error{ErrorCode::kOutOfMemory,
                     std::string("cannot pack rows: ") + ::ZSTD_getErrorName(left), temporary,
                     kHelp};
      if (auto written = write({piece.data(), out.pos}); !written) return written;
      done = directive == ZSTD_e_end ? left == 0 : in.pos == in.size;
    }
    return {};
  }

  Result<void> write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t wrote = ::write(fd.get(), bytes.data(), bytes.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return cache_error("write file", temporary);
      bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return {};
  }

  const RowCache cache;
  const std::string name;
  std::unique_ptr<EntryTurn> turn;  // may be null
  std::string temporary;            // empty: there is no such file
  OwnedFd fd;
  ZSTD_CCtx* const packer = ::ZSTD_createCCtx();
  std::vector<char> piece = std::vector<char>(::ZSTD_CStreamOutSize());
  std::string rows;  // that are not packed yet
};

RowCacheWriter::RowCacheWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
RowCacheWriter::RowCacheWriter(RowCacheWriter&&) noexcept = default;
RowCacheWriter::~RowCacheWriter() = default;

Result<RowCacheWriter> RowCacheWriter::begin(const RowCache& cache, std::string name,
                                             std::unique_ptr<EntryTurn> turn) {
  if (auto made = make_folder(cache.folder); !made) return made.error();
  auto state = std::make_unique<State>(cache, std::move(name), std::move(turn));
  CHECK(state->packer != nullptr);
  std::string path = cache.folder / (std::string(kUnfinished) + "XXXXXX");
  state->fd = OwnedFd(::mkostemp(path.data(), O_CLOEXEC));  // mode 0600
  if (!state->fd) return cache_error("create file", path);
  state->temporary = std::move(path);
  if (!state->begin_frame(1) && !state->begin_frame(0))
    return Error{ErrorCode::kOutOfMemory, "there is no memory to pack rows", state->temporary,
                 kHelp};
  return RowCacheWriter(std::move(state));
}

Result<void> RowCacheWriter::add(std::string_view row) {
  constexpr std::size_t kRowsBytes = std::size_t{1} << 17;  // packed at a time
  std::string& rows = state_->rows;
  rows.append(row).push_back('\n');
  if (rows.size() < kRowsBytes) return {};
  auto packed = state_->pack(rows, ZSTD_e_continue);
  rows.clear();
  return packed;
}

Result<void> RowCacheWriter::commit() {
  if (auto packed = state_->pack(state_->rows, ZSTD_e_end); !packed) return packed;
  if (::fsync(state_->fd.get()) != 0) return cache_error("sync file", state_->temporary);
  const fs::path path = entry_path(state_->cache, state_->name);
  if (::rename(state_->temporary.c_str(), path.c_str()) != 0)
    return cache_error("replace file", path);
  state_->temporary.clear();
  if (auto synced = sync_directory(state_->cache.folder); !synced) return synced;
  state_->turn.reset();
  tidy(state_->cache, path);
  return {};
}

}  // namespace tandem::data
