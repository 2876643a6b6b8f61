// SegmentBook decides where payloads are placed and which segments may be deleted; FileSegments
// guards the book with one mutex and moves the bytes.
//
// It reads and writes by pread and pwrite without the mutex: extents never overlap (SS-3) and
// committed bytes never change (SS-1), so transfers need no order among themselves. Only the book
// and the cache of open files are guarded. Deleted files stay readable for whoever has them open.
//
// Within a process numbers of segments only grow. After a restart the first new one comes behind
// the highest that the directory holds.
#include "runtime/payload/segment_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/payload/segment_book.h"

namespace tandem::payload {

void SegmentBook::found(std::uint32_t segment, std::uint64_t bytes) {
  segments_[segment].bytes = bytes;
  bytes_ += bytes;
  open_ = std::max(open_, segment + 1);
}

std::optional<std::vector<Extent>> SegmentBook::reserve(std::span<const std::uint64_t> sizes) {
  if (!has_numbers(sizes.size())) return std::nullopt;
  std::uint64_t room = limits_.bytes_max - std::min(limits_.bytes_max, bytes_);
  for (const std::uint64_t size : sizes) {
    if (size > room) return std::nullopt;
    room -= size;
  }
  std::vector<Extent> extents;
  for (const std::uint64_t size : sizes) {
    const std::uint64_t used = segments_[open_].bytes;
    // The test is written without a sum that could overflow. A payload that is larger than a whole
    // segment goes into an empty one, which `used > 0` below lets through.
    const bool fits = used <= limits_.segment_bytes_max && size <= limits_.segment_bytes_max - used;
    if (used > 0 && !fits) ++open_;
    Segment& segment = segments_[open_];
    extents.push_back({open_, segment.bytes, size});
    segment.bytes += size;
    ++segment.writing;
    bytes_ += size;
  }
  return extents;
}

void SegmentBook::commit(const Extent& extent, std::uint64_t checksum) {
  // Either way the extent is no longer being written.
  abandon(extent);
  segments_.at(extent.segment).live.insert({extent.offset, extent.bytes, checksum});
}

void SegmentBook::abandon(const Extent& extent) {
  Segment& segment = segments_.at(extent.segment);
  CHECK(segment.writing > 0);
  --segment.writing;
}

bool SegmentBook::holds(const wire::PayloadRef& payload) const {
  const auto found = segments_.find(payload.segment);
  return found != segments_.end() &&
         found->second.live.contains({payload.offset, payload.bytes, payload.checksum});
}

void SegmentBook::retain(const wire::PayloadRef& payload) {
  const auto found = segments_.find(payload.segment);
  if (found == segments_.end()) return;
  found->second.live.insert({payload.offset, payload.bytes, payload.checksum});
}

bool SegmentBook::release(const wire::PayloadRef& payload) {
  if (!holds(payload)) return false;
  segments_.at(payload.segment).live.erase({payload.offset, payload.bytes, payload.checksum});
  return true;
}

std::vector<std::uint32_t> SegmentBook::reclaimable(std::uint32_t below) const {
  std::vector<std::uint32_t> dead;
  for (const auto& [number, segment] : segments_) {
    const bool sealed = number < open_ && number < below;
    if (sealed && segment.live.empty() && segment.writing == 0) dead.push_back(number);
  }
  return dead;
}

bool SegmentBook::erase(std::uint32_t segment) {
  const auto found = segments_.find(segment);
  if (found == segments_.end()) return false;
  bytes_ -= found->second.bytes;
  segments_.erase(found);
  // The open segment gets a new number, because a reused one would revive old references.
  if (segment == open_) ++open_;
  return true;
}

bool SegmentBook::contains(const Extent& extent) const {
  const auto found = segments_.find(extent.segment);
  if (found == segments_.end() || extent.offset > found->second.bytes) return false;
  return extent.bytes <= found->second.bytes - extent.offset;
}

namespace {

constexpr std::string_view kFilePrefix = "segment-";
constexpr std::size_t kOpenFilesMax = 64;  // descriptors that the cache keeps

class FileSegments final : public SegmentStore {
 public:
  FileSegments(std::filesystem::path directory, SegmentLimits limits)
      : limits_(limits),
        place_(directory.string()),
        directory_(std::move(directory)),
        book_(limits) {}

  // Finds the segments of earlier processes. Other files of the directory are left alone.
  Result<void> scan() {
    std::error_code error;
    std::filesystem::create_directories(directory_, error);
    if (error) return failure("create", error.value());
    for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
      const std::string name = entry.path().filename().string();
      std::uint32_t number = 0;
      const char* const end = name.data() + name.size();
      // The name must be the one that path() gives, else another file would be read as this
      // segment. New segments take the numbers behind those that are found.
      if (!name.starts_with(kFilePrefix) ||
          std::from_chars(name.data() + kFilePrefix.size(), end, number).ptr != end ||
          path(number) != entry.path() || number > kSegmentMax || !entry.is_regular_file(error)) {
        continue;
      }
      const std::uint64_t bytes = entry.file_size(error);
      if (error) break;
      book_.found(number, bytes);
    }
    if (error) return failure("read", error.value());
    return {};
  }

  Result<void> write(const Extent& within, std::uint64_t offset,
                     std::span<const std::byte> bytes) override {
    CHECK(offset + bytes.size() <= within.bytes);
    if (bytes.empty()) return {};
    // The file of a new segment is made by its first write.
    const auto file = open(within.segment, O_RDWR | O_CREAT | O_CLOEXEC);
    if (!file) return file.error();
    while (!bytes.empty()) {
      const ssize_t wrote = pwrite((*file)->get(), bytes.data(), bytes.size(),
                                   static_cast<off_t>(within.offset + offset));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return failure("write a payload into", errno);
      bytes = bytes.subspan(static_cast<std::size_t>(wrote));
      offset += static_cast<std::uint64_t>(wrote);
    }
    return {};
  }

  Result<void> read(const Extent& from, std::uint64_t offset,
                    std::span<std::byte> to) const override {
    {
      const std::lock_guard lock(mutex_);
      if (!book_.contains(from)) return no_segment(from.segment);
    }
    if (to.empty()) return {};
    const auto file = open_to_read(from.segment);
    if (!file) return file.error();
    while (!to.empty()) {
      const ssize_t got =
          pread((*file)->get(), to.data(), to.size(), static_cast<off_t>(from.offset + offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failure("read a payload from", errno);
      // The file ends before the extent: its bytes were reserved and never written.
      if (got == 0) return no_segment(from.segment);
      to = to.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    return {};
  }

  Result<std::vector<Extent>> reserve(std::span<const std::uint64_t> sizes) override {
    // SS-3: an empty payload would have the offset of the payload behind it.
    if (const auto empty = std::ranges::find(sizes, 0u); empty != sizes.end())
      return Error{ErrorCode::kInvalid,
                   "payload " + std::to_string(empty - sizes.begin()) + " of " +
                       std::to_string(sizes.size()) +
                       " is empty, and would have its place in common with the next one",
                   place_, "store a payload of at least one byte"};
    const std::lock_guard lock(mutex_);
    auto extents = book_.reserve(sizes);
    if (extents) return std::move(*extents);
    if (!book_.has_numbers(sizes.size()))
      return Error{ErrorCode::kFailed,
                   "no room for a payload: segment " + std::to_string(book_.open_segment()) +
                       " comes behind a file that is no segment of this store",
                   place_, "remove the files with numbers that high, and start anew"};
    return Error{ErrorCode::kFailed,
                 "no room for a payload: " + std::to_string(book_.bytes()) + " of " +
                     std::to_string(limits_.bytes_max) + " bytes are taken",
                 place_,
                 "payloads go once their groups are durable; raise the limit, or save more often"};
  }
  void commit(const Extent& extent, std::uint64_t checksum) override {
    const std::lock_guard lock(mutex_);
    book_.commit(extent, checksum);
  }
  void abandon(const Extent& extent) override {
    const std::lock_guard lock(mutex_);
    book_.abandon(extent);
  }
  bool holds(const wire::PayloadRef& payload) const override {
    const std::lock_guard lock(mutex_);
    return book_.holds(payload);
  }
  bool release(const wire::PayloadRef& payload) override {
    const std::lock_guard lock(mutex_);
    return book_.release(payload);
  }
  void retain(const wire::PayloadRef& payload) override {
    const std::lock_guard lock(mutex_);
    book_.retain(payload);
  }
  Result<void> reclaim(std::uint32_t below_segment) override {
    // Each deletion takes the lock for itself. A segment that may be deleted stays so in between:
    // nothing is written into a sealed one.
    std::vector<std::uint32_t> dead;
    {
      const std::lock_guard lock(mutex_);
      dead = book_.reclaimable(below_segment);
    }
    for (const std::uint32_t segment : dead) {
      if (auto deleted = delete_segment(segment); !deleted) return deleted;
    }
    return {};
  }
  Result<void> delete_segment(std::uint32_t segment) override {
    const std::lock_guard lock(mutex_);
    if (!book_.erase(segment)) return no_segment(segment);
    return drop(segment);
  }
  std::uint64_t bytes() const override {
    const std::lock_guard lock(mutex_);
    return book_.bytes();
  }
  std::uint32_t open_segment() const override {
    const std::lock_guard lock(mutex_);
    return book_.open_segment();
  }

 private:
  // Shared, so that a file that is deleted or leaves the cache stays open for a transfer under way.
  using File = std::shared_ptr<const OwnedFd>;

  Error no_segment(std::uint32_t segment) const {
    return {
        ErrorCode::kNotFound,
        "no payload there: segment " + std::to_string(segment) + " is gone or shorter than that",
        place_};
  }

  std::filesystem::path path(std::uint32_t segment) const {
    std::string digits = std::to_string(segment);
    digits.insert(0, 8 - std::min<std::size_t>(8, digits.size()), '0');
    return directory_ / (std::string(kFilePrefix) + digits);
  }

  Error failure(std::string_view action, int error_number) const {
    return file_error(std::string(action) + " the payload directory", directory_, error_number);
  }

  Result<File> open(std::uint32_t segment, int flags) const {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(segment);
    if (found != files_.end()) return found->second;
    const int fd = ::open(path(segment).c_str(), flags, 0644);
    if (fd < 0 && errno == ENOENT) return no_segment(segment);
    if (fd < 0) return failure("open a segment of", errno);
    // The lowest number is the oldest segment.
    if (files_.size() >= kOpenFilesMax) files_.erase(files_.begin());
    return files_[segment] = std::make_shared<const OwnedFd>(fd);
  }

  // A file that could be opened for reading only is not kept in the cache: a write that comes once
  // the disk can be written again needs one that is open for both.
  Result<File> open_to_read(std::uint32_t segment) const {
    auto file = open(segment, O_RDWR | O_CLOEXEC);
    if (file || file.error().os_error != EROFS) return file;
    const int fd = ::open(path(segment).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return failure("open a segment of", errno);
    return std::make_shared<const OwnedFd>(fd);
  }

  // Deletes the bytes. `mutex_` is held.
  Result<void> drop(std::uint32_t segment) {
    files_.erase(segment);
    if (unlink(path(segment).c_str()) != 0 && errno != ENOENT) {
      return failure("delete a segment of", errno);
    }
    return {};
  }

  const SegmentLimits limits_;
  const std::string place_;  // for errors
  const std::filesystem::path directory_;
  mutable std::mutex mutex_;
  SegmentBook book_;                             // guarded by mutex_
  mutable std::map<std::uint32_t, File> files_;  // guarded by mutex_
};

}  // namespace

Result<std::unique_ptr<SegmentStore>> open_file_segments(std::filesystem::path directory,
                                                         SegmentLimits limits) {
  auto store = std::make_unique<FileSegments>(std::move(directory), limits);
  if (auto scanned = store->scan(); !scanned) return scanned.error();
  return std::unique_ptr<SegmentStore>(std::move(store));
}

}  // namespace tandem::payload
