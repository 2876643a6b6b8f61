// The weight families by name, their publishers and subscribers as a test opens them, and versions
// whose bytes tell their number.
#pragma once

#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/base/rng.h"
#include "runtime/weights/weight_family.h"
#include "runtime/wire/codec.h"

namespace tandem::weights {

inline constexpr std::uint64_t kArenaBytes = 64 << 10;

inline constexpr Duration kSoon = std::chrono::milliseconds(50);
inline constexpr Duration kLong = std::chrono::seconds(30);

inline PolicyVersion v(std::int64_t number) { return {number}; }

// An arena of words that say which version, lineage and place they belong to: a torn arena cannot
// hide.
inline std::vector<std::byte> arena_of(std::int64_t version, std::uint64_t lineage = 0) {
  std::vector<std::uint64_t> words(kArenaBytes / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = derive_seed(static_cast<std::uint64_t>(version), {lineage}) + i;
  }
  std::vector<std::byte> bytes(kArenaBytes);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

// No rank of nccl is in an epoch here, so everything is fetched; broadcast_test.cc has epochs.
inline WeightsConfig config_of(const std::string& type, const std::filesystem::path& directory,
                               int slots) {
  return {.type = spelt<WeightsType>(type).value(),
          .name = weights_name("test", directory),
          .directory = directory / "weights",
          .slots = slots,
          .layout = {.arena_bytes = kArenaBytes, .hash = 17, .manifest_json = "{}\n"},
          .serving = Serving{.silence_max = std::chrono::seconds(3)},
          .bucket_bytes = kArenaBytes / 4,
          .broadcasting = Broadcasting{.device = device::DeviceKind::kCpu, .name = "test/weights"}};
}

// A publisher, and a file that says where it serves.
inline Result<std::unique_ptr<WeightPublisher>> open_publisher(
    const WeightsConfig& config, const std::filesystem::path& directory) {
  auto made = make_publisher(config);
  if (made && (*made)->source())
    CHECK(write_file_atomic(directory / "source", encode(*(*made)->source())).has_value());
  return made;
}

// A subscriber that is told where its publisher is, as an actor is, whenever that has changed.
class ToldSubscriber final : public WeightSubscriber {
 public:
  ToldSubscriber(const WeightsConfig& config, const std::filesystem::path& directory)
      : file_(directory / "source"), inner_(make_subscriber(config)) {}

  Result<std::optional<PolicyVersion>> newest() override { return told().newest(); }
  bool available(PolicyVersion version) override { return told().available(version); }
  Result<void> begin(PolicyVersion version, std::span<std::byte> buffer) override {
    return told().begin(version, buffer);
  }
  Result<UpdateProgress> progress(std::uint64_t bytes_max) override {
    return inner_->progress(bytes_max);
  }
  void cancel() override { inner_->cancel(); }
  std::optional<Installed> installed() const override { return inner_->installed(); }
  std::uint64_t publisher_life() override { return told().publisher_life(); }

 private:
  WeightSubscriber& told() {
    if (const auto bytes = read_file(file_))
      inner_->look_at(wire::decode<wire::WeightSource>(*bytes).value());
    return *inner_;
  }
  const std::filesystem::path file_;
  const std::unique_ptr<WeightSubscriber> inner_;
};

inline std::unique_ptr<WeightSubscriber> open_subscriber(const WeightsConfig& config,
                                                         const std::filesystem::path& directory) {
  if (config.type == WeightsType::kTcp) return std::make_unique<ToldSubscriber>(config, directory);
  return make_subscriber(config);
}

// A subscriber on the publisher's host, which can read published versions without their publisher.
inline std::unique_ptr<WeightSubscriber> open_subscriber_on_host(WeightsConfig config) {
  if (config.type == WeightsType::kTcp) config.type = WeightsType::kShm;
  return make_subscriber(config);
}

inline Result<void> publish(WeightPublisher& publisher, std::int64_t version,
                            std::uint64_t lineage = 0, Duration timeout = kLong) {
  const auto stats = publisher.publish(v(version), arena_of(version, lineage), timeout);
  if (!stats) return stats.error();
  return {};
}

// Copies a version in odd parts; the buffer is whole afterwards.
inline Result<std::vector<std::byte>> fetch(WeightSubscriber& subscriber, PolicyVersion version) {
  std::vector<std::byte> buffer(kArenaBytes);
  if (auto begun = subscriber.begin(version, buffer); !begun) return begun.error();
  for (;;) {
    const auto progress = subscriber.progress(10'007);
    if (!progress) return progress.error();
    if (progress->complete) return buffer;
  }
}

inline std::optional<PolicyVersion> newest(WeightSubscriber& subscriber) {
  return subscriber.newest().value();
}

}  // namespace tandem::weights
