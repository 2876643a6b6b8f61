// One version on its way over TCP into a subscriber's buffer: whole, or as the deltas that lead to
// it from what the buffer holds. Which chunks are asked for, and what their bytes become; without a
// socket. Where a delta is damaged, has gone, or does not give the version, the version is fetched
// whole. Internal to runtime/weights; used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/weights/delta_log.h"
#include "runtime/weights/fetch_window.h"
#include "runtime/weights/tcp_messages.h"
#include "runtime/weights/version_copy.h"
#include "runtime/weights/weights_config.h"

namespace tandem::weights {

class TcpCopy {
 public:
  // `changes` lead from `held`, which the buffer holds, to `wanted`; without any the version is
  // fetched whole, unless the buffer holds it. Config, buffer and `numbers` are borrowed. Each
  // object that is fetched, a version or a delta, takes the next of the numbers by which the
  // publisher tells copies apart.
  TcpCopy(const WeightsConfig& config, const WeightOffer& wanted, std::span<std::byte> buffer,
          std::optional<WeightOffer> held, std::vector<DeltaOffer> changes, std::uint64_t& numbers);

  const WeightOffer& wanted() const { return wanted_; }
  std::uint64_t number() const { return number_; }

  // The next chunk to ask for, as of FetchWindow::next(); asked(), answered(), lose_all() and
  // waits() are the window's.
  std::optional<WeightFetch> next() const;
  void asked(std::uint64_t probe) { window_.asked(probe); }
  void answered(std::uint64_t probe) { window_.answered(probe); }
  void lose_all() { window_.lose_all(); }
  bool waits() const { return window_.waits(); }

  // Takes a chunk of the copy of number(). False: it was not due. An error ends the copy: the whole
  // version is damaged.
  Result<bool> take(std::uint64_t offset, std::span<const std::byte> bytes);
  // The publisher no longer offers the object that is being fetched. False: it is the version
  // itself, which ends the copy.
  bool gone();

  bool complete() const { return complete_; }  // the buffer is the version, verified
  // Of the bytes that travel: the version's, or those of all deltas.
  UpdateProgress progress() const;
  // The version that the buffer holds if the copy ends now; none while it is a mixture.
  std::optional<WeightOffer> held() const;
  std::uint64_t bytes_taken() const { return taken_; }  // over the network, all in all

 private:
  void fetch_whole(const char* why);
  void fetch_change();
  void change_arrived();
  Result<bool> take_whole(std::span<const std::byte> bytes);

  const WeightsConfig& config_;
  WeightOffer wanted_;
  std::span<std::byte> buffer_;
  std::optional<WeightOffer> held_;
  std::vector<DeltaOffer> changes_;  // empty: whole
  std::size_t change_ = 0;           // the one that is fetched
  std::vector<std::byte> arrived_;   // of that one
  std::uint64_t& numbers_;
  std::uint64_t number_ = 0;
  FetchWindow window_{0, 1};
  std::optional<VersionCopy> whole_;
  std::uint64_t taken_ = 0;
  bool complete_ = false;
};

}  // namespace tandem::weights
