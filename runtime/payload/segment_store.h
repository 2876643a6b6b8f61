// A store of payloads in append-only segments: bytes go to the end of the open segment, a full
// segment is sealed, and a sealed one is deleted as a whole once no payload in it is live. A
// segment is a file in a directory.
//
// A put is three calls: reserve() room, write() the pieces as they come, commit(). A put that fails
// ends with abandon() instead. Only committed payloads are live. All calls from any thread.
//
// Invariants:
//   SS-1  bytes of a committed payload never change until its segment is deleted.
//   SS-2  reclaim() deletes a segment only if it is sealed, below the watermark, and none of its
//         payloads is live or being written.
//   SS-3  no two payloads have the same segment and offset: an empty one is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/payload/segment_book.h"
#include "runtime/wire/payload_ref.h"

namespace tandem::payload {

class SegmentStore {
 public:
  virtual ~SegmentStore() = default;
  // Room for payloads of these sizes, each contiguous; all or none. Errors: kFailed, no room;
  // kInvalid, one is empty.
  virtual Result<std::vector<Extent>> reserve(std::span<const std::uint64_t> sizes) = 0;
  // Writes `bytes` at `offset` within a reserved extent, or within several that lie one behind the
  // other in a segment; CHECKed: they fit into it.
  virtual Result<void> write(const Extent& within, std::uint64_t offset,
                             std::span<const std::byte> bytes) = 0;
  // The bytes are complete, and SS-1 holds from here on. The store does not verify the checksum: it
  // becomes part of the payload's identity (see holds()).
  virtual void commit(const Extent& extent, std::uint64_t checksum) = 0;
  // The put failed; its bytes stay unused until their segment is deleted.
  virtual void abandon(const Extent& extent) = 0;
  // Fills `to` from `offset` within `from`, which may be several extents likewise. Errors:
  // kNotFound, no such segment or beyond its end; kFailed, the read failed.
  virtual Result<void> read(const Extent& from, std::uint64_t offset,
                            std::span<std::byte> to) const = 0;

  // The next three are about one payload. All fields of the reference but `node` must be those with
  // which it was committed: a made-up or stale reference frees nothing.
  virtual bool holds(const wire::PayloadRef& payload) const = 0;  // whether it is live
  virtual bool release(const wire::PayloadRef& payload) = 0;  // ends that; false: it was not live
  virtual void retain(
      const wire::PayloadRef&
          payload) = 0;  // after a restart: declares it live, if its segment is found
  // Deletes what SS-2 allows among the segments before `below_segment`.
  virtual Result<void> reclaim(std::uint32_t below_segment) = 0;
  // Deletes one segment, whatever is live in it. kNotFound: no such segment.
  virtual Result<void> delete_segment(std::uint32_t segment) = 0;
  virtual std::uint64_t bytes() const = 0;         // in all segments
  virtual std::uint32_t open_segment() const = 0;  // all before it are sealed
};

// Files DIRECTORY/segment-00000042. Segments that an earlier process left are kept, sealed, with
// nothing live in them; retain() declares payloads live again. A full disk is an Error that names
// the directory.
Result<std::unique_ptr<SegmentStore>> open_file_segments(std::filesystem::path directory,
                                                         SegmentLimits limits);

}  // namespace tandem::payload
