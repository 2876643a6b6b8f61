// Publish and subscribe versions of one arena, pull family: the publisher (the learner's rank 0)
// leaves a few whole versions where subscribers (rollout actors) fetch them when it suits them.
// Nobody waits for anybody, save a publisher whose places are all being read or retained.
// Not here: what the bytes mean (Manifest), who should install what (scheduler/), and broadcasts to
// a group (the collective family).
//
// Invariants, for every implementation (tests/runtime/weights/conformance_test.cc)
//   WT-1  A version is installed whole and as published (checksum64), or not at all; it is never
//         torn, whichever side is killed at whatever moment.
//   WT-2  A version that the publisher retains, or that a subscriber is copying or holds in place,
//         is not replaced. Over TCP a subscriber copies as long as it is heard
//         (Serving::silence_max).
//   WT-3  A subscriber that dies holds nothing; a publisher that dies leaves what it had published,
//         and its successor of the same name carries on from it. Of kCudaIpc nothing is left: the
//         versions go with the publisher's GPU memory, and are no longer offered. Over TCP the
//         successor serves what is left; until then nothing arrives.
//   WT-4  One publisher per name at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/device/manifest.h"
#include "runtime/net/endpoint.h"
#include "runtime/weights/broadcast.h"
#include "runtime/wire/weight_source.h"

namespace tandem::runtime {

enum class WeightsType {
  kAuto,  // shm where it fits into half of the shared memory's file system, else disk
  kShm,   // POSIX shared memory: publisher and subscribers on one host
  kDisk,  // a directory that all of them see
  // GPU memory of the publisher: all of them in processes of their own, on one GPU. A subscriber's
  // buffer may be in either memory.
  kCudaIpc,
  // Versions lie in shared memory, as of kShm, and every subscriber fetches them over TCP. (With
  // kAuto and `serving`, those of the publisher's host read the shared memory instead.) A
  // subscriber's buffer must be in the host's memory.
  kTcp,
  // Versions lie in shared memory and are served, as of kTcp, and are broadcast by NCCL as well
  // (broadcast.h); it needs `broadcasting`. A subscriber's buffer may be in the memory of
  // Broadcasting::device; whoever is on the publisher's host fetches from the shared memory.
  kNccl,
};

// What the bytes of an arena are; publisher and subscribers must agree on it.
struct WeightsLayout {
  std::uint64_t arena_bytes = 0;
  std::uint64_t hash = 0;     // of the manifest
  std::string manifest_json;  // names, dtypes, shapes, offsets; written beside each version on disk
};
WeightsLayout layout_of(const Manifest& manifest);
// Of two manifest_json: "tensor 1 is norm.weight (f32, [16], at byte 2048) here and … there".
std::string layout_difference(const std::string& ours, const std::string& theirs);

// The same for all processes that share one /dev/shm, and for no others: the boot's id and the
// device number of /dev/shm.
std::string host_identity();

// How a publisher serves its shared memory over TCP, on any free port.
struct Serving {
  std::string bind = kLoopback;  // an address of this host, or 0.0.0.0 for all of them
  std::string advertise = {};    // the host that subscribers dial; empty: what `bind` says
  Duration silence_max = std::chrono::seconds(20);  // then a subscriber holds nothing any more
};

struct WeightsConfig {
  WeightsType type = WeightsType::kAuto;
  std::string name;                 // of the family; weights_name() makes one
  std::filesystem::path directory;  // for disk; is made if missing
  int slots = 2;                    // versions kept: max_staleness + 2; at least 2
  WeightsLayout layout;
  // kCudaIpc: so long a publisher may lose its GPU memory before its lock, when it dies; what
  // cannot be opened for longer is no publisher's death.
  Duration dying_max = std::chrono::seconds(5);
  // The publisher of kShm, kAuto, kTcp or kNccl serves by TCP as well; the latter two serve on
  // loopback without it. kAuto that became kDisk does not serve.
  std::optional<Serving> serving = {};
  // Over TCP: so long a copy may make no progress; then it fails with kTimedOut. Of kNccl: so long
  // the start of an epoch and each part of a broadcast may take.
  Duration stall_max = std::chrono::seconds(30);
  // Over TCP: so much of a copy is on its way at a time, in chunks of a quarter of it or a MiB,
  // whichever is less; at most 64 of them. Of kNccl also a part of a broadcast.
  std::uint64_t bucket_bytes = std::uint64_t{16} << 20;
  std::optional<Broadcasting> broadcasting = {};  // of kNccl, which needs it
};

// A name that two runs on one host do not share, fit for a file: job "arith-1" in its run
// directory gives "arith-1-1f3c5a7b".
std::string weights_name(std::string_view job, const std::filesystem::path& run_directory);

struct PublishStats {
  std::uint64_t bytes = 0;     // copied; 0 if this version was already there with the same content
  double seconds = 0;          // all of publish(), waiting included
  std::uint64_t checksum = 0;  // checksum64 of the arena
  std::optional<BroadcastPlace> broadcast = {};  // the version is being broadcast as well
};

// One thread at a time.
class WeightPublisher {
 public:
  virtual ~WeightPublisher() = default;

  // Copies the arena (exactly arena_bytes), after which the caller may change it. Replaces the
  // lowest version that is neither retained nor being copied; where there is none, waits up to
  // `timeout`, then kTimedOut, naming who holds them. A version that is already there with other
  // content starts a new lineage: it and all later ones are forgotten first.
  virtual Result<PublishStats> publish(PolicyVersion version, std::span<const std::byte> arena,
                                       Duration timeout) = 0;

  // From now on `oldest` and later versions are kept until the next retain(). Without it only the
  // newest one is certain to be kept. At most slots - 1 versions can be retained.
  virtual void retain(PolicyVersion oldest) = 0;

  // Versions later than `last` are no longer offered: a lineage ends. Copies of them that are under
  // way fail.
  virtual void forget_after(PolicyVersion last) = 0;

  // Where subscribers of other hosts fetch. Of kAuto in shared memory that is served to nobody it
  // names this host alone; none where subscribers need not be told anything. It does not change.
  virtual std::optional<WeightSource> source() const { return std::nullopt; }

  // Rank 0 of the broadcasts; null where versions are only fetched.
  virtual BroadcastRank* broadcasts() { return nullptr; }
};

struct UpdateProgress {
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
  bool complete = false;           // the buffer, or held(), is the whole version, verified
  bool arrives_by_itself = false;  // also between two calls of progress()
};

// One thread at a time; no call blocks beyond the copying it is asked to do.
class WeightSubscriber {
 public:
  virtual ~WeightSubscriber() = default;

  // Where the publisher is now; the same again does nothing. Of kTcp nothing is offered before the
  // first one. A copy that is under way goes on from the new place if the version is offered there
  // with the same content, else it fails with kNotFound.
  virtual void look_at(const WeightSource&) {}

  // `version`, of this checksum, is being broadcast there. begin() of it then waits for the
  // broadcast as long as this rank takes part in it, and fetches the version otherwise.
  virtual void expect(PolicyVersion, std::uint64_t /*checksum*/, const BroadcastPlace&) {}
  // This subscriber's part in the broadcasts; null where versions are only fetched.
  virtual BroadcastRank* broadcasts() { return nullptr; }

  // The newest version offered; none before the first publish or after the family's end. Fails
  // where the published layout is not ours (kInvalid) or there are too many subscribers.
  virtual Result<std::optional<PolicyVersion>> newest() = 0;
  virtual bool available(PolicyVersion version) = 0;

  // Starts copying `version` into `buffer` (arena_bytes, borrowed until complete, error or
  // cancel); a copy that was under way is cancelled. kNotFound if the version is not offered; else
  // as newest(). An empty `buffer`, where in_place(): nothing is copied. progress() then verifies
  // the version where the publisher left it, and held() is the version.
  virtual Result<void> begin(PolicyVersion version, std::span<std::byte> buffer) = 0;

  // Whether this process can read a version where the publisher left it. It may change when the
  // publisher moves (look_at).
  virtual bool in_place() const { return false; }
  // The version that was begun without a buffer and is complete; empty before, and as soon as the
  // version has been withdrawn. The bytes stay as they were verified until cancel() or the next
  // begin(), even if the version is withdrawn meanwhile. In shared memory the publisher finds the
  // place in use for as long, so hold a version briefly.
  virtual std::span<const std::byte> held() { return {}; }

  // Copies up to `bytes_max` more (at least one byte). Call between decode steps, only after
  // begin(). An error (the version was forgotten, or is damaged) ends the copy; the buffer
  // then holds no version. Over TCP the copy goes on by itself: this reports how far it
  // is, without regard to `bytes_max`, and fails with kTimedOut after WeightsConfig::stall_max.
  virtual Result<UpdateProgress> progress(std::uint64_t bytes_max) = 0;
  virtual void cancel() = 0;

  // The version whose copy completed last, and its checksum.
  struct Installed {
    PolicyVersion version;
    std::uint64_t checksum = 0;
  };
  virtual std::optional<Installed> installed() const = 0;

  // checksum64 of a version as it is offered now; none where it is not offered or not known.
  virtual std::optional<std::uint64_t> checksum_of(PolicyVersion) { return std::nullopt; }

  // Which life of the publisher left what newest() shows, counted from 1; 0 before the first.
  virtual std::uint64_t publisher_life() = 0;
};

// kAuto becomes the type that it stands for, the same in every process of a host.
WeightsType resolve(const WeightsConfig& config);

// Fails if a live publisher has the name (its pid is in the message) or there is no room. Of
// kCudaIpc it takes slots times the arena of the GPU's memory, and needs the CUDA module.
// A publisher that is destroyed leaves its family to the next one, as a publisher that dies does;
// remove_weights() ends it.
Result<std::unique_ptr<WeightPublisher>> make_publisher(const WeightsConfig& config);

// Works before the publisher exists: it then offers nothing yet.
std::unique_ptr<WeightSubscriber> make_subscriber(const WeightsConfig& config);

// The job is over: removes what the family left in shared memory and in `directory`. Subscribers
// that still copy finish or fail. Fails if a live publisher has the name.
Result<void> remove_weights(const WeightsConfig& config);

// Removes the shared memory of all families whose name starts with `name_prefix` and that no live
// publisher or subscriber uses (everybody was killed); returns how many.
int reclaim_stale_weights(std::string_view name_prefix);

}  // namespace tandem::runtime
