#include <optional>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/weights/tcp.h"
#include "runtime/weights/weight_family.h"

namespace tandem::weights {
namespace {

// Owns the subscriber that fits the publisher's host, and replaces it when the publisher moves
// between this host and another. A copy does not survive such a move: the copy fails with
// kNotFound, and the owner begins it again.
class AutoSubscriber final : public WeightSubscriber {
 public:
  AutoSubscriber(const WeightsConfig& config, WeightsType first) : config_(config) {
    become(first);
  }

  void look_at(const wire::WeightSource& source) override {
    const WeightsType fitting =
        source.host == host_identity() ? WeightsType::kShm : WeightsType::kTcp;
    if (fitting != config_.type) become(fitting);
    inner_->look_at(source);
  }
  Result<std::optional<PolicyVersion>> newest() override { return inner_->newest(); }
  bool available(PolicyVersion version) override { return inner_->available(version); }
  Result<void> begin(PolicyVersion version, std::span<std::byte> buffer) override {
    moved_during_.reset();
    Result<void> begun = inner_->begin(version, buffer);
    copying_ = begun ? std::optional(version) : std::nullopt;
    return begun;
  }
  Result<UpdateProgress> progress(std::uint64_t bytes_max) override;
  void cancel() override {
    inner_->cancel();
    copying_.reset();
    moved_during_.reset();
  }
  bool in_place() const override { return inner_->in_place(); }
  std::span<const std::byte> held() override { return inner_->held(); }
  std::optional<Installed> installed() const override {
    const auto newer = inner_->installed();
    return newer ? newer : installed_before_;
  }
  std::optional<std::uint64_t> checksum_of(PolicyVersion version) override {
    return inner_->checksum_of(version);
  }
  std::uint64_t publisher_life() override { return inner_->publisher_life(); }

 private:
  void become(WeightsType type);

  WeightsConfig config_;  // the type is always that of inner_
  std::unique_ptr<WeightSubscriber> inner_;
  std::optional<PolicyVersion> copying_;
  std::optional<PolicyVersion> moved_during_;  // the copy that the last move ended
  std::optional<Installed> installed_before_;  // by the subscribers before inner_
};

void AutoSubscriber::become(WeightsType type) {
  if (inner_) {
    installed_before_ = installed();
    // The copy's buffer is free at once; the error is reported by the next progress().
    if (copying_) moved_during_ = std::exchange(copying_, std::nullopt);
    inner_.reset();
  }
  config_.type = type;
  inner_ = make_subscriber(config_);
}

Result<UpdateProgress> AutoSubscriber::progress(std::uint64_t bytes_max) {
  if (const auto ended = std::exchange(moved_during_, std::nullopt)) {
    return Error{.code = ErrorCode::kNotFound,
                 .message = "the publisher of " + config_.name +
                            " is elsewhere now: policy version " + std::to_string(ended->value) +
                            " has to be fetched from there"};
  }
  Result<UpdateProgress> progress = inner_->progress(bytes_max);
  if (!progress || progress->complete) copying_.reset();
  return progress;
}

}  // namespace

std::unique_ptr<WeightSubscriber> make_auto_subscriber(const WeightsConfig& config,
                                                       WeightsType fallback) {
  return std::make_unique<AutoSubscriber>(config, fallback);
}

}  // namespace tandem::weights
