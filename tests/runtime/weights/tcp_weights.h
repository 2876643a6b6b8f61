// The common part of tests of weights over TCP: a family of its own for each test, and subscribers
// that wait until the network has carried out a request.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/rng.h"
#include "runtime/link/endpoint.h"
#include "runtime/weights/weight_family.h"

namespace tandem::weights {

inline constexpr std::uint64_t kArenaBytes = (1 << 20) + 12'345;
inline constexpr Duration kPatience = std::chrono::seconds(100);  // ends a hang; never measured
inline constexpr Duration kForever = std::chrono::hours(1);
inline constexpr Duration kSoon = std::chrono::milliseconds(50);

inline PolicyVersion v(std::int64_t number) { return {number}; }

inline std::vector<std::byte> arena_of(std::int64_t version, std::uint64_t lineage = 0) {
  Rng rng(derive_seed(static_cast<std::uint64_t>(version), {lineage}));
  std::vector<std::byte> bytes(kArenaBytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.next());
  return bytes;
}

// Looks again and again, without a clock of its own, until it is so.
inline bool comes_true(const std::function<bool()>& is_so) {
  const Time deadline = steady_now() + kPatience;
  while (!is_so()) {
    if (steady_now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

inline bool comes(WeightSubscriber& subscriber, PolicyVersion version) {
  return comes_true([&] { return subscriber.available(version); });
}

inline Result<std::vector<std::byte>> finish(WeightSubscriber& subscriber,
                                             std::vector<std::byte>& buffer) {
  for (;;) {
    const auto progress = subscriber.progress(64 << 10);
    if (!progress) return progress.error();
    if (progress->complete) return buffer;
    std::this_thread::yield();
  }
}

inline Result<std::vector<std::byte>> fetch(WeightSubscriber& subscriber, PolicyVersion version) {
  std::vector<std::byte> buffer(kArenaBytes);
  if (auto begun = subscriber.begin(version, buffer); !begun) return begun.error();
  return finish(subscriber, buffer);
}

inline link::Endpoint endpoint_of(const wire::WeightSource& source) {
  return link::parse_endpoint(source.endpoint).value();
}

class TcpWeights : public testing::Test {
 protected:
  TcpWeights() {
    std::string pattern = testing::TempDir() + "weights-tcp.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    config_ = {.type = WeightsType::kTcp,
               .name = weights_name("tcp-test", directory_),
               .slots = 3,
               .layout = {.arena_bytes = kArenaBytes, .hash = 17, .manifest_json = "{}\n"},
               .serving = Serving{.silence_max = kForever},
               .stall_max = kPatience,
               .bucket_bytes = 64 << 10};
  }
  ~TcpWeights() override {
    publisher_.reset();
    EXPECT_TRUE(remove_weights(config_));
    std::filesystem::remove_all(directory_);
  }

  wire::WeightSource start() {
    publisher_.reset();
    auto made = make_publisher(config_);
    EXPECT_TRUE(made) << render(made.error());
    publisher_ = std::move(*made);
    return publisher_->source().value();
  }
  Result<PublishStats> publish(std::int64_t version, std::uint64_t lineage = 0,
                               Duration timeout = kPatience) {
    return publisher_->publish(v(version), arena_of(version, lineage), timeout);
  }
  std::unique_ptr<WeightSubscriber> subscriber(const wire::WeightSource& source) const {
    auto made = make_subscriber(config_);
    made->look_at(source);
    return made;
  }

  std::filesystem::path directory_;
  WeightsConfig config_;
  std::unique_ptr<WeightPublisher> publisher_;
};

}  // namespace tandem::weights
