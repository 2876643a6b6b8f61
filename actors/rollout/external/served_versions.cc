#include "actors/rollout/external/served_versions.h"

#include <utility>

namespace tandem::rollout {
namespace {

constexpr std::size_t kExpectedMax = 64;  // versions whose scores are kept

}  // namespace

const std::string& ServedVersions::begin(PolicyVersion version) {
  pushed_ = version;
  label_ = prefix_ + "-" + std::to_string(version.value) + "-" + std::to_string(++pushes_);
  labels_[label_] = version;
  return label_;
}

const std::string& ServedVersions::refuted() {
  labels_.erase(label_);
  return begin(pushed_);
}

void ServedVersions::installed(PolicyVersion oldest_open) {
  installed_ = pushed_;
  served_before_ = std::move(served_);
  std::erase_if(labels_,
                [&](const auto& one) { return one.second < oldest_open || one.second > pushed_; });
}

void ServedVersions::expect(PolicyVersion version, std::vector<float> scores) {
  expected_.erase(expected_.lower_bound(version), expected_.end());
  if (!scores.empty()) expected_[version] = std::move(scores);
  if (expected_.size() > kExpectedMax) expected_.erase(expected_.begin());
}

Result<void> ServedVersions::prove(std::vector<float> served) {
  served_ = std::move(served);
  const auto known = expected_.find(pushed_);
  if (known == expected_.end()) return {};
  ProbeCheck check{.now = {served_, known->second}, .tolerance = tolerance_};
  const auto before = installed_ ? expected_.find(*installed_) : expected_.end();
  if (before != expected_.end()) check.before = {served_before_, before->second};
  const auto fault = probe_fault(check);
  proved_ = proved_ || !fault;
  if (!fault) return {};
  return Error{proved_ ? ErrorCode::kFailed : ErrorCode::kInvalid, *fault};
}

}  // namespace tandem::rollout
