#include "actors/rollout/fake_weights.h"

#include <utility>

#include "runtime/base/check.h"

namespace tandem::rollout {

void FakeWeightBoard::publish(PolicyVersion version, PolicyVersion oldest_retained,
                              std::uint64_t checksum) {
  versions_[version] = checksum;
  damaged_.erase(version);
  versions_.erase(versions_.begin(), versions_.lower_bound(oldest_retained));
}

void FakeWeightBoard::forget_after(PolicyVersion last) {
  versions_.erase(versions_.upper_bound(last), versions_.end());
}

std::optional<PolicyVersion> FakeWeightBoard::newest() const {
  if (versions_.empty()) return std::nullopt;
  return versions_.rbegin()->first;
}

FakeWeightSubscriber::FakeWeightSubscriber(std::shared_ptr<const FakeWeightBoard> board,
                                           int progress_calls)
    : board_(std::move(board)), progress_calls_(progress_calls) {
  CHECK(progress_calls >= 1);
}

Result<void> FakeWeightSubscriber::begin(PolicyVersion version, std::span<std::byte>) {
  copying_.reset();
  if (!board_->holds(version))
    return Error{ErrorCode::kNotFound, "version " + std::to_string(version.value) +
                                           " is not offered by the simulated publisher"};
  copying_ = Installed{version, board_->checksum_of(version)};
  calls_left_ = progress_calls_;
  return {};
}

// A copy that is under way holds its version, as with the real subscribers (WT-2).
Result<weights::UpdateProgress> FakeWeightSubscriber::progress(std::uint64_t) {
  CHECK(copying_.has_value());
  if (--calls_left_ > 0) return weights::UpdateProgress{};
  const Installed copied = *std::exchange(copying_, std::nullopt);
  if (board_->is_damaged(copied.version))
    return Error{ErrorCode::kInvalid,
                 "version " + std::to_string(copied.version.value) + " is damaged"};
  installed_ = copied;
  return weights::UpdateProgress{.complete = true};
}

}  // namespace tandem::rollout
