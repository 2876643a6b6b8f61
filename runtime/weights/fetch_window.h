// Decides which chunks of one copy are asked for next, which one is due to arrive, and which ones
// are asked for again: a value without a clock or a socket. Chunks are accepted in the order of
// their offsets alone, because the checksum is computed as they arrive. Internal to
// runtime/weights.
//
// TW-1  Every byte is accepted exactly once, in order, and only after it was asked for.
// TW-2  A chunk is asked for again only if its answer was certainly lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace tandem::weights {

class FetchWindow {
 public:
  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    bool operator==(const Range&) const = default;
  };

  // At most `bucket_bytes` bytes are on their way at a time (WeightsConfig::bucket_bytes).
  FetchWindow(std::uint64_t bytes_total, std::uint64_t bucket_bytes);

  // The next chunk to ask for; none while enough chunks are on their way, and when all have been
  // asked for.
  std::optional<Range> next() const;
  // The chunk of next() was asked for, after the probe of that number had been sent.
  void asked(std::uint64_t probe);
  // Whether `chunk` is the one that is due; if so, it counts as arrived. Any other chunk is
  // ignored.
  bool arrived(const Range& chunk);
  // The answer to a probe has arrived: chunks that were asked for before the probe and have not
  // arrived are lost. All chunks from the first lost one on are asked for again.
  void answered(std::uint64_t probe);
  void lose_all();  // all requests went to a publisher that will not answer them

  bool waits() const { return !asked_.empty(); }  // chunks are on their way

 private:
  struct Asked {
    Range chunk;
    std::uint64_t probe = 0;  // the last one sent before the request
  };

  std::uint64_t bytes_total_;
  std::uint64_t chunk_bytes_;
  std::size_t chunks_max_;
  std::uint64_t due_ = 0;    // the first byte that has not arrived
  std::deque<Asked> asked_;  // adjacent chunks on their way, the first at due_
};

}  // namespace tandem::weights
