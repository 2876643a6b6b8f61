// Rows that a child program made of a file, kept packed on the disk so that they are made once,
// whoever reads the file after that: the same job when it is resumed, or another one.
// An entry is named by the content that it was made of. Many processes may use one folder at a
// time.
//
//   KE-1  An entry is whole: it gets its name after its last row was written and synced. Rows whose
//         maker failed or was interrupted never have a name.
//   KE-2  The entries of a folder have at most `bytes_max` bytes together, the newest one alone
//         excepted: those that were not used for the longest time go first.
//   KE-3  Of processes that want the same entry at once, one makes it and the others wait for its
//         end, however that comes, for at most `wait_max`. Whoever finds no entry then makes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/byte_source.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace tandem::data {

struct RowCache {
  std::filesystem::path folder;
  std::uint64_t bytes_max = 0;
  // A maker may be stopped, and a reader may be a controller: it is held up no longer than by a
  // program that is silent (parquet_program.h). Most data sets are converted in seconds.
  Duration wait_max = std::chrono::minutes(2);
};

// The file of an entry.
std::filesystem::path entry_path(const RowCache& cache, const std::string& name);

// The rows of an entry, each with a newline behind it, and marks the entry as used; a null pointer
// where there is no such entry.
std::unique_ptr<ByteSource> open_entry(const RowCache& cache, const std::string& name);

// The turn to make an entry, until this object's end. A thread that has one and asks for the same
// again waits in vain, until `wait_max`.
class EntryTurn {
 public:
  // KE-3. Makes the folder where it is missing, for its owner alone. `waits` is called with the pid
  // of whoever has the turn, again and again. A null pointer where the turn cannot be had: in a
  // folder that cannot be written, or after `wait_max`. The entry may be made all the same.
  static std::unique_ptr<EntryTurn> take(const RowCache& cache, const std::string& name,
                                         const FileLock::Waits& waits);
  ~EntryTurn();
  EntryTurn(const EntryTurn&) = delete;
  EntryTurn& operator=(const EntryTurn&) = delete;

 private:
  EntryTurn(std::filesystem::path path, FileLock lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::filesystem::path path_;
  const FileLock lock_;
};

// Writes one entry. Without commit() nothing remains of it.
class RowCacheWriter {
 public:
  // Makes the folder where it is missing, for its owner alone. The turn ends with the writer, or
  // with commit().
  static Result<RowCacheWriter> begin(const RowCache& cache, std::string name,
                                      std::unique_ptr<EntryTurn> turn);
  RowCacheWriter(RowCacheWriter&&) noexcept;
  ~RowCacheWriter();

  // `row` has no newline.
  Result<void> add(std::string_view row);
  // KE-1, KE-2. The last call.
  Result<void> commit();

 private:
  struct State;
  explicit RowCacheWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tandem::data
