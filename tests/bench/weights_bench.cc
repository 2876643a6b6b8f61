// How weights travel, each way in turns with what bounds it (A B A B …, in one run):
//   weights/memcpy          an arena into warm memory
//   weights/shm_publish     publish() into warm slots, the checksum included; beside memcpy
//   weights/shm_install     begin() to the last progress(), likewise; beside memcpy
//   weights/raw_zmq         as many bytes from another process by bare ZeroMQ over TCP loopback
//   weights/raw_zmq_curve   the same with CURVE; beside raw_zmq
//   weights/tcp_fetch       a rollout's copy over TCP loopback, checksum included; beside
//                           raw_zmq_curve
//   weights/tcp_delta       from publish() of a bf16 version, of which so many of 10,000 elements
//                           have changed, to a rollout that has the version before has it whole and
//                           verified, over TCP loopback; beside the same without deltas
// p50_us is the median time of one version, and `ratio` the median of what stands beside the row
// over it: above 1 the row is the faster one. bytes_per_second is of all iterations.
#include <benchmark/benchmark.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/device/memory.h"
#include "runtime/weights/weight_family.h"
#include "tests/bench/must.h"
#include "tests/bench/raw_stream.h"

namespace tandem::bench {
namespace {

constexpr int kSlots = 3;  // as many as a job with max_staleness 1 has
constexpr std::uint64_t kBytesPerStep = std::uint64_t{8} << 20;  // as a rollout on a CPU asks for

double timed(const std::function<void()>& work) {
  const Time begin = steady_now();
  work();
  return seconds(steady_now() - begin);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The row's figures are of `subject`; `beside`, where there is one, runs once after each.
void measure(benchmark::State& state, std::uint64_t bytes, const std::function<void()>& subject,
             const std::function<void()>& beside) {
  std::vector<double> own, others;
  for (auto _ : state) {
    own.push_back(timed(subject));
    state.SetIterationTime(own.back());
    if (beside) others.push_back(timed(beside));
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  state.counters["p50_us"] = median(own) * 1e6;
  if (beside) state.counters["ratio"] = median(others) / median(own);
}

device::Buffer filled(std::uint64_t bytes) {
  device::Buffer buffer = must(device::Buffer::allocate(bytes, "a benchmark's weights"));
  const auto words = buffer.as<std::uint64_t>();
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = i * 0x9e3779b97f4a7c15u;
  return buffer;
}

// Uses memcpy in the place of a publisher: as many warm copies, one after the other.
class Copies {
 public:
  explicit Copies(const device::Buffer& arena) : arena_(arena) {
    for (int i = 0; i < kSlots; ++i) copies_.push_back(filled(arena.size()));
  }
  void next() {
    std::memcpy(copies_[at_].data(), arena_.data(), arena_.size());
    benchmark::ClobberMemory();
    at_ = (at_ + 1) % copies_.size();
  }

 private:
  const device::Buffer& arena_;
  std::vector<device::Buffer> copies_;
  std::size_t at_ = 0;
};

// A publisher whose slots have all been written once.
class Family {
 public:
  Family(const device::Buffer& arena, weights::WeightsType type,
         weights::DeltaUse delta = weights::DeltaUse::kNever)
      : arena_(arena),
        config_{.type = type,
                .name = weights::weights_name(
                    "bench", std::to_string(getpid()) + std::string(spelling(delta))),
                .slots = kSlots,
                .layout = {.arena_bytes = arena.size(),
                           .hash = 1,
                           .manifest_json = "{}\n",
                           .tensors = {{.name = "w", .bytes = arena.size()}}},
                .delta = delta},
        publisher_(must(weights::make_publisher(config_))) {
    for (int i = 0; i < kSlots; ++i) publish();
  }
  ~Family() {
    publisher_.reset();
    must(weights::remove_weights(config_));
  }
  void publish() { must(publisher_->publish({++newest_}, arena_.bytes(), kPatience)); }
  PolicyVersion newest() const { return {newest_}; }
  const weights::WeightsConfig& config() const { return config_; }
  std::optional<wire::WeightSource> source() const { return publisher_->source(); }

 private:
  const device::Buffer& arena_;
  const weights::WeightsConfig config_;
  std::unique_ptr<weights::WeightPublisher> publisher_;
  std::int64_t newest_ = 0;
};

// A subscriber with the two buffers of a rollout, which takes the versions in turn.
class Installer {
 public:
  explicit Installer(const Family& family)
      : family_(family), subscriber_(weights::make_subscriber(family.config())) {
    for (device::Buffer& buffer : buffers_) buffer = filled(family.config().layout.arena_bytes);
    if (const auto source = family.source()) subscriber_->look_at(*source);
    while (!subscriber_->available(family_.newest())) look_later();
    for (int slot = 0; slot < kSlots; ++slot) next();  // this process' first look at each slot
  }
  void next() {
    const PolicyVersion version{family_.newest().value - installed_ % kSlots};
    const device::Buffer& buffer = buffers_[installed_ % 2];
    must(subscriber_->begin(version, buffer.bytes()));
    for (;;) {
      const weights::UpdateProgress progress = must(subscriber_->progress(kBytesPerStep));
      if (progress.complete) break;
      if (progress.arrives_by_itself) look_later();
    }
    ++installed_;
  }

 private:
  // A rollout without work waits like this.
  static void look_later() { ::poll(nullptr, 0, 1); }

  const Family& family_;
  std::unique_ptr<weights::WeightSubscriber> subscriber_;
  device::Buffer buffers_[2];
  std::int64_t installed_ = 0;
};

// A rollout that follows its learner from version to version.
class Follower {
 public:
  Follower(device::Buffer& arena, std::int64_t changes, weights::DeltaUse delta)
      : arena_(arena),
        changes_(static_cast<std::size_t>(changes)),
        family_(arena, weights::WeightsType::kTcp, delta),
        subscriber_(weights::make_subscriber(family_.config())),
        buffer_(filled(arena.size())) {
    subscriber_->look_at(*family_.source());
    for (int i = 0; i < kSlots; ++i) next();  // each slot's first
  }
  void next() {
    const auto elements = arena_.as<std::uint16_t>();
    for (std::size_t at = ++steps_ % 100; at < elements.size(); at += 10'000 / changes_)
      ++elements[at];
    family_.publish();
    while (!subscriber_->available(family_.newest())) look_later();
    must(subscriber_->begin(family_.newest(), buffer_.bytes()));
    while (!must(subscriber_->progress(kBytesPerStep)).complete) look_later();
  }

 private:
  static void look_later() { ::poll(nullptr, 0, 1); }

  device::Buffer& arena_;
  std::size_t changes_;
  std::size_t steps_ = 0;
  Family family_;
  std::unique_ptr<weights::WeightSubscriber> subscriber_;
  device::Buffer buffer_;
};

std::uint64_t bytes_of(const benchmark::State& state) {
  return static_cast<std::uint64_t>(state.range(0)) << 20;
}

void memcpy_alone(benchmark::State& state) {
  const device::Buffer arena = filled(bytes_of(state));
  Copies copies(arena);
  measure(state, arena.size(), [&] { copies.next(); }, {});
}

void shm_publish(benchmark::State& state) {
  const device::Buffer arena = filled(bytes_of(state));
  Copies copies(arena);
  Family family(arena, weights::WeightsType::kShm);
  measure(
      state, arena.size(), [&] { family.publish(); }, [&] { copies.next(); });
}

void shm_install(benchmark::State& state) {
  const device::Buffer arena = filled(bytes_of(state));
  Copies copies(arena);
  Family family(arena, weights::WeightsType::kShm);
  Installer installer(family);
  measure(
      state, arena.size(), [&] { installer.next(); }, [&] { copies.next(); });
}

void tcp_fetch(benchmark::State& state) {
  const device::Buffer arena = filled(bytes_of(state));
  Family family(arena, weights::WeightsType::kTcp);
  Installer installer(family);
  RawStream curve(Encryption::kCurve);
  measure(
      state, arena.size(), [&] { installer.next(); }, [&] { curve.fetch(arena.size()); });
}

void tcp_delta(benchmark::State& state) {
  device::Buffer arena = filled(std::uint64_t{256} << 20);
  Follower whole(arena, state.range(0), weights::DeltaUse::kNever);
  Follower delta(arena, state.range(0), weights::DeltaUse::kAuto);
  measure(
      state, arena.size(), [&] { delta.next(); }, [&] { whole.next(); });
}

void raw_zmq(benchmark::State& state) {
  RawStream plain(Encryption::kNone);
  measure(state, bytes_of(state), [&] { plain.fetch(bytes_of(state)); }, {});
}

void raw_zmq_curve(benchmark::State& state) {
  RawStream plain(Encryption::kNone), curve(Encryption::kCurve);
  measure(
      state, bytes_of(state), [&] { curve.fetch(bytes_of(state)); },
      [&] { plain.fetch(bytes_of(state)); });
}

void add(const std::string& name, void (*function)(benchmark::State&),
         const std::vector<std::int64_t>& arguments, const char* argument = "mib") {
  auto* row = benchmark::RegisterBenchmark(("weights/" + name).c_str(), function);
  row->ArgName(argument)->UseManualTime()->Unit(benchmark::kMillisecond);
  for (const std::int64_t value : arguments) row->Arg(value);
}

int run_weights(int argc, char** argv) {
  init_logging("weights_bench", LogLevel::kWarnings);
  const std::span<const char* const> words(argv + 1, static_cast<std::size_t>(argc - 1));
  if (!words.empty() && std::string_view(words[0]) == kRawSender)
    return run_raw_sender(words.subspan(1));
  const std::vector<std::int64_t> in_memory{8, 64, 512}, by_tcp{8, 256};
  add("memcpy", memcpy_alone, in_memory);
  add("shm_publish", shm_publish, in_memory);
  add("shm_install", shm_install, in_memory);
  add("raw_zmq", raw_zmq, by_tcp);
  add("raw_zmq_curve", raw_zmq_curve, by_tcp);
  add("tcp_fetch", tcp_fetch, by_tcp);
  add("tcp_delta", tcp_delta, {60, 200, 1000}, "of_10000");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 64;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) { return tandem::bench::run_weights(argc, argv); }
