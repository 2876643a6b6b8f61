// The promises of every weight family, on each of them. A process that must die is a real one: this
// program again, in another role. Tests runtime/weights/weight_ends.h.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <thread>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/base/rng.h"
#include "runtime/device/memory.h"
#include "runtime/device/queue.h"
#include "runtime/node/process_host.h"
#include "tests/runtime/weights/families.h"

namespace tandem::weights {
namespace {

namespace fs = std::filesystem;

// The GPU is the emulated one, in this process and in those that it starts.
const int kChosen = ::setenv("TANDEM_CUDA_MODULE", TANDEM_CUDA_EMULATED, 1);
class Conformance : public testing::TestWithParam<std::string> {
 protected:
  Conformance() {
    std::string pattern = testing::TempDir() + "weights.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    fifo_ = directory_ / "fifo";
    EXPECT_EQ(::mkfifo(fifo_.c_str(), 0600), 0);
  }
  ~Conformance() override {
    EXPECT_TRUE(remove_weights(config()));
    EXPECT_FALSE(fs::exists("/dev/shm/tandem-weights." + config().name));
    EXPECT_FALSE(fs::exists(config().directory));
    fs::remove_all(directory_);
  }

  // Whether versions wait in so few slots that one reader keeps the publisher waiting. Files are as
  // many as it takes, and nccl has more slots.
  bool in_slots() const { return GetParam() != "disk" && places(0) == 0; }
  int places(int slots) const { return slots + (GetParam() == "nccl" ? 2 : 0); }
  // Published versions outlive their publisher.
  bool survives() const { return GetParam() != "cuda_ipc"; }
  // Over a network: events are seen a little later, and copies go on by themselves.
  bool far() const { return GetParam() == "tcp"; }
  WeightsConfig config(int slots = 4) const { return config_of(GetParam(), directory_, slots); }
  std::unique_ptr<WeightPublisher> publisher(int slots = 4) const {
    auto made = open_publisher(config(slots), directory_);
    EXPECT_TRUE(made) << render(made.error());
    return std::move(*made);
  }
  std::unique_ptr<WeightSubscriber> subscriber(int slots = 4) const {
    return open_subscriber(config(slots), directory_);
  }

  // Runs this program in another role.
  node::SpawnedProcess start(node::ProcessHost& host, const std::string& role, int slots = 4) {
    auto exit = std::make_shared<std::promise<node::ExitStatus>>();
    exit_ = exit->get_future();
    auto process = host.spawn(
        {.name = role,
         .argv = {"/proc/self/exe", role, GetParam(), directory_.string(), std::to_string(slots)},
         .environment = {},
         .log_path = directory_ / (role + ".log"),
         .working_directory = {}},
        [exit](node::ProcessId, const node::ExitStatus& status) { exit->set_value(status); });
    EXPECT_TRUE(process);
    return *process;
  }
  node::ExitStatus end_of_process() {
    EXPECT_EQ(exit_.wait_for(kLong), std::future_status::ready);
    return exit_.get();
  }
  // Waits until the process in the other role has reached the point that the test needs.
  void wait_for_process() const {
    const OwnedFd fd(::open(fifo_.c_str(), O_RDONLY | O_CLOEXEC));
    char byte = 0;
    EXPECT_EQ(::read(fd.get(), &byte, 1), 1);
  }

  bool comes_true(const std::function<bool()>& is_so) const;
  bool newest_is(WeightSubscriber& subscriber, std::optional<PolicyVersion> version) const;
  Result<std::vector<std::byte>> arrival(WeightSubscriber& subscriber, PolicyVersion version) const;
  void expect_left(WeightSubscriber& subscriber, std::int64_t version) const;

  fs::path directory_, fifo_;
  std::future<node::ExitStatus> exit_;
};

// Whether `is_so` is true at once, or after a while for a family on a network.
bool Conformance::comes_true(const std::function<bool()>& is_so) const {
  const Time deadline = steady_now() + (far() ? kLong : Duration::zero());
  while (!is_so()) {
    if (steady_now() >= deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

bool Conformance::newest_is(WeightSubscriber& subscriber,
                            std::optional<PolicyVersion> version) const {
  return comes_true([&] { return newest(subscriber) == version; });
}

// fetch(), when the subscriber has heard of the version.
Result<std::vector<std::byte>> Conformance::arrival(WeightSubscriber& subscriber,
                                                    PolicyVersion version) const {
  Result<std::vector<std::byte>> arena = std::vector<std::byte>();
  comes_true([&] {
    arena = fetch(subscriber, version);
    return arena || arena.error().code != ErrorCode::kNotFound;
  });
  return arena;
}

// The versions of a publisher that has died are there, or are known to be gone.
void Conformance::expect_left(WeightSubscriber& subscriber, std::int64_t version) const {
  const auto arena = arrival(subscriber, v(version));
  if (survives()) {
    ASSERT_TRUE(arena) << render(arena.error());
    EXPECT_EQ(*arena, arena_of(version));
    return;
  }
  ASSERT_FALSE(arena);
  EXPECT_EQ(arena.error().code, ErrorCode::kNotFound) << arena.error().message;
  EXPECT_FALSE(subscriber.available(v(version)));
  EXPECT_EQ(newest(subscriber), std::nullopt);
}

TEST_P(Conformance, WT1AVersionArrivesByteForByteAtEverySubscriber) {
  auto learner = publisher();
  const auto early = subscriber();
  EXPECT_EQ(newest(*early), std::nullopt);
  EXPECT_EQ(early->installed(), std::nullopt);

  const auto arena = arena_of(-1);
  const PublishStats stats = learner->publish(kInitialWeights, arena, kLong).value();
  EXPECT_EQ(stats.bytes, kArenaBytes);
  EXPECT_EQ(stats.checksum, checksum64(arena));
  const auto late = subscriber();
  for (WeightSubscriber* reader : {early.get(), late.get()}) {
    EXPECT_TRUE(newest_is(*reader, kInitialWeights));
    EXPECT_EQ(fetch(*reader, kInitialWeights).value(), arena);
    ASSERT_TRUE(reader->installed());
    EXPECT_EQ(reader->installed()->version, kInitialWeights);
    EXPECT_EQ(reader->installed()->checksum, stats.checksum);
  }
}

TEST_P(Conformance, ProgressKeepsToItsBudgetAndCanBeCancelled) {
  auto learner = publisher();
  ASSERT_TRUE(publish(*learner, 1));
  const auto reader = subscriber();
  std::vector<std::byte> buffer(kArenaBytes);
  ASSERT_TRUE(newest_is(*reader, v(1)));
  ASSERT_TRUE(reader->begin(v(1), buffer));
  if (!far()) {
    EXPECT_EQ(reader->progress(100)->bytes_done, 100u);
    EXPECT_EQ(reader->progress(0)->bytes_done, 101u);
  }
  EXPECT_FALSE(reader->installed());
  reader->cancel();
  EXPECT_FALSE(reader->installed());
  std::ranges::fill(buffer, std::byte{7});
  EXPECT_EQ(fetch(*reader, v(1)).value(), arena_of(1));
  EXPECT_EQ(buffer, std::vector<std::byte>(kArenaBytes, std::byte{7})) << "written after the end";
}

TEST_P(Conformance, SubscribersMaySkipVersionsAndGoBackToRetainedOnes) {
  auto learner = publisher(4);  // K = 2
  const auto reader = subscriber(4);
  for (std::int64_t version = 0; version <= 9; ++version) {
    learner->retain(v(version - 3));
    ASSERT_TRUE(publish(*learner, version));
  }
  EXPECT_TRUE(newest_is(*reader, v(9)));
  for (const std::int64_t version : {9, 7, 8}) {
    EXPECT_TRUE(reader->available(v(version)));
    EXPECT_EQ(fetch(*reader, v(version)).value(), arena_of(version));
  }
  for (const std::int64_t version : {-1, 0, 9 - places(4), 10}) {
    EXPECT_FALSE(reader->available(v(version)));
    const auto absent = fetch(*reader, v(version));
    ASSERT_FALSE(absent);
    EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
  }
}

TEST_P(Conformance, AnotherLayoutIsRefused) {
  auto learner = publisher();
  ASSERT_TRUE(publish(*learner, 1));
  WeightsConfig other = config();
  other.layout.hash = 18;
  const auto reader = open_subscriber(other, directory_);
  for (const Error& error : {arrival(*reader, v(1)).error(), reader->newest().error()})
    EXPECT_EQ(error.code, ErrorCode::kInvalid);
}

TEST_P(Conformance, APublisherWithAnotherLayoutReplacesWhatADeadOneLeft) {
  node::PosixProcessHost host;
  start(host, "--publish-two-and-die");
  EXPECT_EQ(end_of_process().signal, SIGKILL);
  const auto old_reader = open_subscriber_on_host(config());
  EXPECT_EQ(newest(*old_reader), survives() ? std::optional(v(2)) : std::nullopt);

  WeightsConfig other = config();
  other.layout.hash = 18;
  auto learner = open_publisher(other, directory_);
  ASSERT_TRUE(learner) << render(learner.error());
  const auto reader = open_subscriber(other, directory_);
  EXPECT_EQ(newest(*reader), std::nullopt);
  ASSERT_TRUE(publish(**learner, 1));
  EXPECT_EQ(arrival(*reader, v(1)).value(), arena_of(1));
  EXPECT_FALSE(fetch(*old_reader, v(1)));
}

TEST_P(Conformance, WT4ASecondPublisherLearnsWhoTheFirstIs) {
  auto learner = publisher();
  const auto second = make_publisher(config());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("process " + std::to_string(::getpid())), std::string::npos)
      << second.error().message;
  EXPECT_FALSE(remove_weights(config()));
  learner.reset();
  EXPECT_TRUE(make_publisher(config()));
}

TEST_P(Conformance, TheSameContentAgainIsNothingNewAndOtherContentANewLineage) {
  auto learner = publisher();
  const auto reader = subscriber();
  for (std::int64_t version = 0; version <= 3; ++version) {
    ASSERT_TRUE(publish(*learner, version));
  }
  EXPECT_EQ(learner->publish(v(2), arena_of(2), kLong)->bytes, 0u);
  EXPECT_TRUE(newest_is(*reader, v(3)));

  std::vector<std::byte> buffer(kArenaBytes);
  ASSERT_TRUE(reader->begin(v(3), buffer));
  if (!far()) {
    ASSERT_TRUE(reader->progress(10));
  }
  ASSERT_TRUE(publish(*learner, 2, 1));
  EXPECT_TRUE(newest_is(*subscriber(), v(2)));
  EXPECT_TRUE(newest_is(*reader, v(2)));
  EXPECT_FALSE(reader->progress(kArenaBytes)) << "installed a version that was withdrawn";
  EXPECT_FALSE(reader->installed());
  EXPECT_EQ(arrival(*reader, v(2)).value(), arena_of(2, 1));
  EXPECT_EQ(arrival(*reader, v(1)).value(), arena_of(1));

  learner->forget_after(v(0));
  EXPECT_TRUE(newest_is(*reader, v(0)));
}

TEST_P(Conformance, WT3ASuccessorCarriesOnFromWhatADeadPublisherLeft) {
  node::PosixProcessHost host;
  start(host, "--publish-two-and-die");
  EXPECT_EQ(end_of_process().signal, SIGKILL);
  const auto on_host = open_subscriber_on_host(config());
  EXPECT_EQ(on_host->publisher_life(), 1u);
  expect_left(*on_host, 2);

  const auto reader = subscriber();
  auto successor = publisher();
  EXPECT_TRUE(comes_true([&] { return reader->publisher_life() == 2u; }));
  expect_left(*reader, 1);
  EXPECT_EQ(successor->publish(v(2), arena_of(2), kLong)->bytes, survives() ? 0u : kArenaBytes);
  ASSERT_TRUE(publish(*successor, 3));
  EXPECT_TRUE(newest_is(*reader, v(3)));
  EXPECT_EQ(fetch(*reader, v(3)).value(), arena_of(3));
}

TEST_P(Conformance, WT3ACleanEndLeavesTheFamilyToItsSuccessor) {
  auto learner = publisher();
  ASSERT_TRUE(publish(*learner, 1) && publish(*learner, 2));
  const auto reader = subscriber();
  learner.reset();
  expect_left(*open_subscriber_on_host(config()), 1);
  learner = publisher();
  expect_left(*reader, 2);
  ASSERT_TRUE(publish(*learner, 3));
  EXPECT_TRUE(newest_is(*reader, v(3)));
}

TEST_P(Conformance, WT1APublisherKilledAtAnyMomentLeavesNoTornVersion) {
  constexpr std::uint64_t kSeed = 23;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Rng rng(kSeed);
  node::PosixProcessHost host;
  const auto reader = subscriber();
  const auto on_host = open_subscriber_on_host(config());
  for (int round = 0; round < 8; ++round) {
    const node::SpawnedProcess process = start(host, "--publish-until-killed");
    wait_for_process();
    // A random number of copies decides when the publisher dies.
    for (std::uint64_t copy = rng.below(20); copy > 0; --copy) {
      const auto version = newest(*reader);
      if (!version) continue;
      const auto arena = fetch(*reader, *version);
      if (arena) {
        EXPECT_EQ(*arena, arena_of(version->value));
      } else {
        EXPECT_EQ(arena.error().code, ErrorCode::kNotFound) << arena.error().message;
      }
    }
    ::kill(process.pid, SIGKILL);
    EXPECT_EQ(end_of_process().signal, SIGKILL);
    const auto left = newest(*on_host);
    ASSERT_EQ(left.has_value(), survives());
    if (!left) continue;
    EXPECT_EQ(fetch(*on_host, *left).value(), arena_of(left->value));
  }
}

TEST_P(Conformance, WT3ASubscriberThatDiesHoldsNothing) {
  auto learner = publisher(2);
  ASSERT_TRUE(publish(*learner, 1));
  node::PosixProcessHost host;
  const node::SpawnedProcess reader = start(host, "--begin-and-hang", 2);
  wait_for_process();
  ASSERT_TRUE(publish(*learner, 2));
  const auto blocked = publish(*learner, 3, 0, kSoon);
  if (in_slots()) {
    ASSERT_FALSE(blocked);
    EXPECT_EQ(blocked.error().code, ErrorCode::kTimedOut);
    EXPECT_NE(blocked.error().message.find("version 1 is being copied by process " +
                                           std::to_string(far() ? ::getpid() : reader.pid)),
              std::string::npos)
        << blocked.error().message;
  } else {
    EXPECT_TRUE(blocked);  // the reader's place is not needed
  }
  ::kill(reader.pid, SIGKILL);
  EXPECT_EQ(end_of_process().signal, SIGKILL);
  EXPECT_TRUE(publish(*learner, 4));
}

TEST_P(Conformance, WT2APublisherWaitsForASubscriberAndIsWoken) {
  if (far()) GTEST_SKIP() << "such a copy goes on by itself: tcp_test holds it up";
  auto learner = publisher(2);
  ASSERT_TRUE(publish(*learner, 1));
  const auto reader = subscriber(2);
  std::vector<std::byte> buffer(kArenaBytes);
  ASSERT_TRUE(reader->begin(v(1), buffer));
  ASSERT_TRUE(publish(*learner, 2));
  ASSERT_TRUE(reader->progress(kArenaBytes / 2));
  EXPECT_EQ(publish(*learner, 3, 0, kSoon).has_value(), !in_slots());  // a directory need not wait
  auto third = std::async(std::launch::async, [&] { return publish(*learner, 3); });
  for (;;) {
    const auto progress = reader->progress(997);
    ASSERT_TRUE(progress) << render(progress.error());
    if (progress->complete) break;
  }
  EXPECT_EQ(buffer, arena_of(1));
  EXPECT_TRUE(third.get());
  EXPECT_EQ(fetch(*reader, v(3)).value(), arena_of(3));
}

TEST_P(Conformance, WT1AThousandPublishesAreNeverTorn) {
  constexpr std::int64_t kLast = 1000;
  auto learner = publisher(3);
  ASSERT_TRUE(publish(*learner, 0));
  node::PosixProcessHost host;
  start(host, "--read-until-1000", 3);
  std::atomic<int> copies = 0;
  const auto read = [&] {
    const auto subscribed = subscriber(3);
    for (std::optional<PolicyVersion> seen; seen != v(kLast);) {
      const auto version = newest(*subscribed);
      if (!version || version == seen) continue;
      const auto arena = fetch(*subscribed, *version);
      if (!arena) {
        EXPECT_EQ(arena.error().code, ErrorCode::kNotFound) << arena.error().message;
        continue;
      }
      EXPECT_EQ(*arena, arena_of(version->value));
      EXPECT_TRUE(!seen || *seen < *version);
      seen = version;
      ++copies;
    }
  };
  std::thread reader(read);
  for (std::int64_t version = 1; version <= kLast; ++version) {
    ASSERT_TRUE(publish(*learner, version));
  }
  reader.join();
  EXPECT_GT(copies, 0);
  EXPECT_EQ(end_of_process().code, 0);
}

INSTANTIATE_TEST_SUITE_P(Family, Conformance, testing::Values(TANDEM_WEIGHT_FAMILIES),
                         [](const auto& family) { return family.param; });

class ShmWeights : public Conformance {};
INSTANTIATE_TEST_SUITE_P(Family, ShmWeights, testing::Values("shm"));

TEST_P(ShmWeights, RemovingThemLeavesNothingButFinishesCopies) {
  auto learner = publisher();
  ASSERT_TRUE(publish(*learner, 1));
  const auto subscriber = make_subscriber(config());
  std::vector<std::byte> buffer(kArenaBytes);
  ASSERT_TRUE(subscriber->begin(v(1), buffer));
  learner.reset();
  ASSERT_TRUE(remove_weights(config()));
  EXPECT_FALSE(fs::exists("/dev/shm/tandem-weights." + config().name));
  EXPECT_EQ(newest(*subscriber), std::nullopt);
  EXPECT_TRUE(subscriber->progress(kArenaBytes)->complete);
  EXPECT_EQ(buffer, arena_of(1));
  learner = publisher();
  ASSERT_TRUE(publish(*learner, 5));
  EXPECT_EQ(newest(*subscriber), v(5));  // it found the new segment by itself
}

TEST_P(ShmWeights, WT1ASlotThatSomebodyWritesToWhileItIsCopiedIsNotInstalled) {
  auto learner = publisher();
  ASSERT_TRUE(publish(*learner, 1));
  const auto subscriber = make_subscriber(config());
  std::vector<std::byte> buffer(kArenaBytes);
  ASSERT_TRUE(subscriber->begin(v(1), buffer));
  ASSERT_TRUE(subscriber->progress(kArenaBytes / 2));
  const fs::path segment = "/dev/shm/tandem-weights." + config().name;
  const OwnedFd file(::open(segment.c_str(), O_RDWR | O_CLOEXEC));
  for (off_t slot = 1; slot <= config().slots; ++slot) {  // its last byte, of each
    const off_t at = static_cast<off_t>(fs::file_size(segment) - (slot - 1) * kArenaBytes) - 1;
    char byte = 0;
    ASSERT_EQ(::pread(file.get(), &byte, 1, at), 1);
    byte ^= 1;
    ASSERT_EQ(::pwrite(file.get(), &byte, 1, at), 1);
  }
  const auto damaged = subscriber->progress(kArenaBytes);
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().message.find("checksum"), std::string::npos);
  EXPECT_FALSE(subscriber->installed());
}

TEST_P(ShmWeights, WhatEverybodyLeftIsReclaimed) {
  node::PosixProcessHost host;
  start(host, "--publish-two-and-die");
  EXPECT_EQ(end_of_process().signal, SIGKILL);
  {
    const auto subscriber = make_subscriber(config());
    EXPECT_EQ(newest(*subscriber), v(2));
    EXPECT_EQ(reclaim_stale_weights(config().name), 0);
  }
  EXPECT_EQ(reclaim_stale_weights(config().name), 1);
  EXPECT_EQ(newest(*make_subscriber(config())), std::nullopt);
}

TEST_P(ShmWeights, NoRoomIsAnErrorThatNamesTheWayOut) {
  WeightsConfig huge = config();
  huge.layout.arena_bytes = std::uint64_t{1} << 50;
  EXPECT_EQ(resolve({.type = WeightsType::kAuto, .layout = huge.layout}), WeightsType::kDisk);
  EXPECT_EQ(resolve({.type = WeightsType::kAuto, .layout = config().layout}), WeightsType::kShm);
  const auto made = make_publisher(huge);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().help.find("weight_broadcast.type"), std::string::npos);
}

// kCudaIpc; none where the emulator cannot run.
class GpuWeights : public Conformance {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuWeights);
INSTANTIATE_TEST_SUITE_P(Family, GpuWeights,
                         testing::ValuesIn(std::vector<std::string>{TANDEM_GPU_FAMILIES}));

TEST_P(GpuWeights, AVersionGoesFromOneProcessesGpuMemoryToAnothers) {
  node::PosixProcessHost host;
  const node::SpawnedProcess learner = start(host, "--publish-two-and-wait");
  wait_for_process();
  const auto subscriber = make_subscriber(config());
  const device::Queue queue(device::DeviceKind::kCuda);
  const auto sink = device::Buffer::allocate(kArenaBytes, "a sink", device::MemoryKind::kDevice);
  ASSERT_TRUE(sink);
  std::vector<std::byte> arena(kArenaBytes);
  for (const std::int64_t version : {2, 1}) {
    ASSERT_TRUE(subscriber->begin(v(version), {sink->data(), sink->size()}));
    while (!subscriber->progress(10'007)->complete) continue;
    copy(queue.stream(), arena.data(), sink->data(), arena.size());
    synchronize(queue.stream());
    EXPECT_EQ(arena, arena_of(version));
  }
  ASSERT_TRUE(subscriber->begin(v(2), arena));
  ASSERT_TRUE(subscriber->progress(1000));
  ::kill(learner.pid, SIGKILL);
  EXPECT_EQ(end_of_process().signal, SIGKILL);
  const auto gone = subscriber->progress(1000);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  EXPECT_NE(gone.error().message.find("has gone"), std::string::npos) << gone.error().message;
  EXPECT_EQ(subscriber->installed()->version, v(1)) << "the last whole one";
  const auto last = arena_of(1);
  EXPECT_TRUE(std::equal(arena.begin() + 1000, arena.end(), last.begin() + 1000))
      << "read from a publisher that had gone";
}

class DiskWeights : public Conformance {};
INSTANTIATE_TEST_SUITE_P(Family, DiskWeights, testing::Values("disk"));

TEST_P(DiskWeights, WhatAKilledPublisherHadBegunIsRemovedWithTheRest) {
  ASSERT_TRUE(publish(*publisher(), 1));
  ASSERT_TRUE(write_file_atomic(config().directory / "LATEST.tmp123", "2\n"));
  ASSERT_TRUE(write_file_atomic(config().directory / "family.json.tmp123", "{"));
  ASSERT_TRUE(remove_weights(config()));
  EXPECT_FALSE(fs::exists(config().directory));
}

TEST_P(DiskWeights, KeepsSlotsVersionsAndADamagedOneIsNotInstalled) {
  auto learner = publisher(2);
  for (std::int64_t version = 0; version <= 5; ++version) {
    ASSERT_TRUE(publish(*learner, version));
  }
  const fs::path directory = config().directory;
  EXPECT_FALSE(fs::exists(directory / "v3"));
  EXPECT_TRUE(fs::exists(directory / "v4" / "manifest.json"));
  EXPECT_EQ(read_file(directory / "LATEST").value(), "5\n");
  const OwnedFd arena(::open((directory / "v5" / "arena.bin").c_str(), O_WRONLY));
  ASSERT_EQ(::pwrite(arena.get(), "x", 1, 1000), 1);
  const auto subscriber = make_subscriber(config(2));
  const auto damaged = fetch(*subscriber, v(5));
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().message.find("checksum"), std::string::npos);
  EXPECT_FALSE(subscriber->installed());
}

void tell_test(const fs::path& directory) {
  const OwnedFd fd(::open((directory / "fifo").c_str(), O_WRONLY));
  CHECK(::write(fd.get(), "r", 1) == 1);
}

int publish_until_killed(const WeightsConfig& config, const fs::path& directory) {
  auto publisher = open_publisher(config, directory);
  CHECK(publisher.has_value());
  const auto newest_there = newest(*open_subscriber_on_host(config));
  std::int64_t version = newest_there ? newest_there->value : 0;
  CHECK(publish(**publisher, ++version).has_value());
  tell_test(directory);
  for (;;) CHECK(publish(**publisher, ++version).has_value());
}

int read_until_1000(const WeightsConfig& config, const fs::path& directory) {
  const auto subscriber = open_subscriber(config, directory);
  for (std::optional<PolicyVersion> seen; seen != v(1000);) {
    const auto version = newest(*subscriber);
    if (!version || version == seen) continue;
    const auto arena = fetch(*subscriber, *version);
    if (!arena && arena.error().code != ErrorCode::kNotFound) return 2;
    if (!arena) continue;
    if (*arena != arena_of(version->value)) return 3;
    seen = version;
  }
  return 0;
}

// Holds a part of the version when it hangs.
[[noreturn]] void begin_and_hang(const WeightsConfig& config, const fs::path& directory) {
  const auto subscriber = open_subscriber(config, directory);
  std::vector<std::byte> buffer(kArenaBytes);
  UpdateProgress progress{.complete = true};
  while (progress.bytes_done == 0 || progress.complete) {
    if (progress.complete && !subscriber->begin(v(1), buffer)) continue;
    progress = subscriber->progress(10).value();
  }
  tell_test(directory);
  for (;;) ::pause();
}

int play(const std::string& role, const WeightsConfig& config, const fs::path& directory) {
  if (role == "--publish-until-killed") return publish_until_killed(config, directory);
  if (role == "--read-until-1000") return read_until_1000(config, directory);
  if (role.starts_with("--publish-two-and-")) {
    auto publisher = open_publisher(config, directory);
    CHECK(publish(**publisher, 1).has_value() && publish(**publisher, 2).has_value());
    if (role == "--publish-two-and-die") return ::raise(SIGKILL);
    tell_test(directory);
    for (;;) ::pause();
  }
  CHECK(role == "--begin-and-hang");
  begin_and_hang(config, directory);
}

}  // namespace
}  // namespace tandem::weights

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  if (argc == 5) {
    return tandem::weights::play(
        arguments[1],
        tandem::weights::config_of(arguments[2], arguments[3], std::stoi(arguments[4])),
        arguments[3]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
