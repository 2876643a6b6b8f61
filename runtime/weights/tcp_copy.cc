#include "runtime/weights/tcp_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/digest.h"
#include "runtime/base/log.h"

namespace tandem::weights {

TcpCopy::TcpCopy(const WeightsConfig& config, const WeightOffer& wanted,
                 std::span<std::byte> buffer, std::optional<WeightOffer> held,
                 std::vector<DeltaOffer> changes, std::uint64_t& numbers)
    : config_(config),
      wanted_(wanted),
      buffer_(buffer),
      held_(held),
      changes_(std::move(changes)),
      numbers_(numbers) {
  // A version that the buffer holds was fetched before, and given up before it was installed.
  if (!changes_.empty())
    fetch_change();
  else if (held_ == wanted_ && checksum64(buffer_) == wanted_.checksum)
    complete_ = true;
  else
    fetch_whole(nullptr);
}

// `why`: what was wrong with a delta; null: there was none.
void TcpCopy::fetch_whole(const char* why) {
  if (why)
    log::warn(
        "event=weights_delta_refused weights={} version={} reason=\"{}\" "
        "next=\"the version is fetched whole\"",
        config_.name, wanted_.version.value, why);
  changes_.clear();
  arrived_ = {};
  number_ = ++numbers_;
  window_ = FetchWindow(buffer_.size(), config_.bucket_bytes);
  whole_.emplace(wanted_.version, wanted_.checksum, buffer_);
}

void TcpCopy::fetch_change() {
  const DeltaOffer& change = changes_[change_];
  number_ = ++numbers_;
  window_ = FetchWindow(change.bytes, config_.bucket_bytes);
  arrived_.clear();
  arrived_.reserve(change.bytes);
}

std::optional<WeightFetch> TcpCopy::next() const {
  const auto chunk = window_.next();
  if (complete_ || !chunk) return std::nullopt;
  WeightFetch fetch{.copy = number_,
                    .version = wanted_.version,
                    .checksum = wanted_.checksum,
                    .offset = chunk->offset,
                    .bytes = chunk->bytes};
  if (!changes_.empty()) {
    const DeltaName& name = changes_[change_].name;
    fetch.version = name.next.version;
    fetch.checksum = name.next.checksum;
    fetch.base = name.base;
  }
  return fetch;
}

Result<bool> TcpCopy::take(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (complete_ || !window_.arrived({.offset = offset, .bytes = bytes.size()})) return false;
  taken_ += bytes.size();
  if (changes_.empty()) return take_whole(bytes);
  arrived_.insert(arrived_.end(), bytes.begin(), bytes.end());
  if (arrived_.size() == changes_[change_].bytes) change_arrived();
  return true;
}

Result<bool> TcpCopy::take_whole(std::span<const std::byte> bytes) {
  held_.reset();
  const std::span<std::byte> part = whole_->next(bytes.size());
  std::memcpy(part.data(), bytes.data(), part.size());
  whole_->take(part);
  if (!whole_->complete()) return true;
  if (const Result<void> verified = whole_->verify(config_.name); !verified)
    return verified.error();
  complete_ = true;
  held_ = wanted_;
  return true;
}

void TcpCopy::change_arrived() {
  const DeltaName& name = changes_[change_].name;
  const auto applied = apply_delta(config_.layout, name, arrived_, buffer_);
  if (!applied) return fetch_whole(applied.error().message.c_str());
  held_.reset();
  if (++change_ < changes_.size()) return fetch_change();
  if (checksum64(buffer_) != wanted_.checksum)
    return fetch_whole("the changes do not give the version: the buffer was not their base");
  arrived_ = {};
  complete_ = true;
  held_ = wanted_;
}

bool TcpCopy::gone() {
  if (changes_.empty()) return false;
  fetch_whole("it is not offered any more");
  return true;
}

UpdateProgress TcpCopy::progress() const {
  if (whole_) return whole_->progress();
  std::uint64_t done = arrived_.size(), total = 0;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    total += changes_[i].bytes;
    if (i < change_) done += changes_[i].bytes;
  }
  return {.bytes_done = complete_ ? total : done, .bytes_total = total, .complete = complete_};
}

std::optional<WeightOffer> TcpCopy::held() const { return held_; }

}  // namespace tandem::weights
