// Publishing and fetching versions of one arena: the publisher (the learner's rank 0) leaves a few
// whole versions where subscribers (rollout actors) fetch them when it suits them. Neither side
// waits for the other, except a publisher whose places are all being read or retained. Not
// responsible for the meaning of the bytes (Manifest), for the decision who installs which version
// (scheduler/), or for broadcasts to a group (broadcast.h).
//
// Invariants, for every implementation (tests/runtime/weights/conformance_test.cc)
//   WT-1  A version is installed whole and as published (checksum64), or not at all; it is never
//         torn, whichever side is killed at whatever moment.
//   WT-2  A version that the publisher retains, or that a subscriber is copying or holds in place,
//         is not replaced. Over TCP a subscriber counts as copying as long as it is heard
//         (Serving::silence_max).
//   WT-3  A subscriber that dies holds no version; a publisher that dies leaves the versions that
//         it had published, and its successor of the same name carries on from them. Of kCudaIpc
//         none are left: the versions go with the publisher's GPU memory, and are no longer
//         offered. Over TCP the successor serves the versions that are left; until then no bytes
//         arrive.
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
  kAuto,  // shm where `slots` arenas fit into half of the file system of /dev/shm, else disk
  kShm,   // POSIX shared memory: publisher and subscribers on one host
  kDisk,  // a directory that all of them see
  // GPU memory of the publisher, by CUDA IPC. Publisher and subscribers are processes of their own
  // on one GPU. A subscriber's buffer may be in host or GPU memory.
  kCudaIpc,
  // Versions lie in shared memory, as of kShm, and every subscriber fetches them over TCP. (With
  // kAuto and `serving`, subscribers on the publisher's host read the shared memory instead.) A
  // subscriber's buffer must be in host memory.
  kTcp,
  // Versions lie in shared memory and are served, as of kTcp, and are broadcast by NCCL as well
  // (broadcast.h); `broadcasting` must be set. A subscriber's buffer may be in the memory of
  // Broadcasting::device. A subscriber on the publisher's host that fetches reads the shared
  // memory.
  kNccl,
};

// The layout of an arena's bytes; publisher and subscribers must agree on it.
struct WeightsLayout {
  std::uint64_t arena_bytes = 0;
  std::uint64_t hash = 0;     // of the manifest
  std::string manifest_json;  // names, dtypes, shapes, offsets; written beside each version on disk
};
WeightsLayout layout_of(const Manifest& manifest);
// The first difference of two manifest_json, in words: "tensor 1 is norm.weight (f32, [16], at byte
// 2048) here and … there".
std::string layout_difference(const std::string& ours, const std::string& theirs);

// Names the host: the boot's id and the device number of /dev/shm. Two processes get the same text
// if and only if they share one /dev/shm.
std::string host_identity();

// How a publisher serves its shared memory over TCP, on any free port.
struct Serving {
  std::string bind = kLoopback;  // an address of this host, or 0.0.0.0 for all of them
  std::string advertise = {};    // the host that subscribers dial; empty: what `bind` says
  // After so long without a message a subscriber's version may be replaced.
  Duration silence_max = std::chrono::seconds(20);
};

struct WeightsConfig {
  WeightsType type = WeightsType::kAuto;
  std::string name;                 // of the family; weights_name() makes one
  std::filesystem::path directory;  // for disk; is made if missing
  int slots = 2;                    // versions kept: max_staleness + 2; at least 2
  WeightsLayout layout;
  // kCudaIpc: when a publisher dies, its GPU memory may go so long before its lock. A block that
  // cannot be opened for longer has another cause than the publisher's death, and is an error.
  Duration dying_max = std::chrono::seconds(5);
  // How the publisher of kShm, kAuto, kTcp or kNccl serves over TCP. Without it kTcp and kNccl
  // serve on loopback, and the others do not serve. A kAuto that became kDisk never serves.
  std::optional<Serving> serving = {};
  // Over TCP: how long a copy may make no progress; then it fails with kTimedOut. Of kNccl: how
  // long the start of an epoch and each part of a broadcast may take.
  Duration stall_max = std::chrono::seconds(30);
  // Over TCP: how many bytes of a copy are asked for at a time, in chunks of a quarter of them or 1
  // MiB, whichever is less, and at most 64 chunks. Of kNccl: also the size of one part of a
  // broadcast.
  std::uint64_t bucket_bytes = std::uint64_t{16} << 20;
  std::optional<Broadcasting> broadcasting = {};  // of kNccl, which needs it
};

// A name of a weight family that two runs on one host do not share, fit for a file name: job
// "arith-1" in its run directory gives "arith-1-1f3c5a7b".
std::string weights_name(std::string_view job, const std::filesystem::path& run_directory);

struct PublishStats {
  std::uint64_t bytes = 0;     // copied; 0 if this version was already there with the same content
  double seconds = 0;          // all of publish(), waiting included
  std::uint64_t checksum = 0;  // checksum64 of the arena
  std::optional<BroadcastPlace> broadcast = {};  // set where the version is being broadcast as well
};

// The end that publishes. One thread at a time may call.
class WeightPublisher {
 public:
  virtual ~WeightPublisher() = default;

  // Copies the arena (exactly arena_bytes), after which the caller may change it. The new version
  // replaces the lowest one that is neither retained nor being copied. Where there is none, the
  // call waits up to `timeout` and then fails with kTimedOut, naming the processes that hold
  // versions. A version number that is already there with other content starts a new lineage: that
  // version and all later ones are forgotten first.
  virtual Result<PublishStats> publish(PolicyVersion version, std::span<const std::byte> arena,
                                       Duration timeout) = 0;

  // From now on `oldest` and later versions are kept until the next retain(). Without it only the
  // newest one is certain to be kept. At most slots - 1 versions can be retained.
  virtual void retain(PolicyVersion oldest) = 0;

  // Versions later than `last` are no longer offered: a lineage ends. Copies of them that are under
  // way fail.
  virtual void forget_after(PolicyVersion last) = 0;

  // The place where subscribers fetch, to be told to them (look_at). For a kAuto publisher that
  // serves only its own host the source names this host alone. None where subscribers need not be
  // told. Never changes.
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

// The end that fetches. One thread at a time may call; no call blocks longer than the copying that
// it is asked to do.
class WeightSubscriber {
 public:
  virtual ~WeightSubscriber() = default;

  // Tells where the publisher is. The same source again has no effect. Of kTcp no version is
  // offered before the first call. A copy that is under way goes on from the new place if the
  // version is offered there with the same content; else the copy fails with kNotFound.
  virtual void look_at(const WeightSource&) {}

  // Tells that `version`, of this checksum, is being broadcast at `place`. A begin() of that
  // version then waits for the broadcast as long as this rank takes part in it, and fetches the
  // version otherwise.
  virtual void expect(PolicyVersion, std::uint64_t /*checksum*/, const BroadcastPlace&) {}
  // This subscriber's part in the broadcasts; null where versions are only fetched.
  virtual BroadcastRank* broadcasts() { return nullptr; }

  // The newest version that is offered; none before the first publish and after the family's end.
  // Fails where the published layout differs from ours (kInvalid) or there are too many
  // subscribers.
  virtual Result<std::optional<PolicyVersion>> newest() = 0;
  virtual bool available(PolicyVersion version) = 0;

  // Starts copying `version` into `buffer` (arena_bytes, borrowed until complete, error or cancel);
  // a copy that was under way is cancelled. kNotFound if the version is not offered; other errors
  // as of newest(). An empty `buffer` is allowed where in_place(): no bytes are copied, progress()
  // verifies the version where the publisher left it, and held() gives its bytes.
  virtual Result<void> begin(PolicyVersion version, std::span<std::byte> buffer) = 0;

  // Whether this process can read a version where the publisher left it. It may change when the
  // publisher moves (look_at).
  virtual bool in_place() const { return false; }
  // The bytes of the version that was begun without a buffer and is complete; empty before, and as
  // soon as the version has been withdrawn. The bytes stay as they were verified until cancel() or
  // the next begin(), even if the version is withdrawn meanwhile. In shared memory the publisher
  // cannot reuse the place for as long, so hold a version briefly.
  virtual std::span<const std::byte> held() { return {}; }

  // Copies up to `bytes_max` more bytes (at least one). To be called between decode steps, only
  // after begin(). An error (the version was forgotten, or is damaged) ends the copy; the buffer
  // then holds no version. Over TCP the copy goes on by itself: this call reports how far the copy
  // is, whatever `bytes_max`, and fails with kTimedOut after WeightsConfig::stall_max.
  virtual Result<UpdateProgress> progress(std::uint64_t bytes_max) = 0;
  virtual void cancel() = 0;

  // The version whose copy completed last, and its checksum.
  struct Installed {
    PolicyVersion version;
    std::uint64_t checksum = 0;
  };
  virtual std::optional<Installed> installed() const = 0;

  // checksum64 of a version as it is offered at present; none where the version is not offered or
  // its checksum is not known.
  virtual std::optional<std::uint64_t> checksum_of(PolicyVersion) { return std::nullopt; }

  // How many publishers of this name have started, the one of newest() included; 0 before the
  // first.
  virtual std::uint64_t publisher_life() = 0;
};

// The type that kAuto stands for, the same in every process of a host; other types are unchanged.
WeightsType resolve(const WeightsConfig& config);

// Fails if a live publisher has the name (its pid is in the message) or there is no room. kCudaIpc
// takes `slots` times the arena of the GPU's memory, and needs the CUDA module. A publisher that is
// destroyed leaves its family to the next one, as a publisher that dies does; remove_weights() ends
// the family.
Result<std::unique_ptr<WeightPublisher>> make_publisher(const WeightsConfig& config);

// May be called before the publisher exists: no version is offered then.
std::unique_ptr<WeightSubscriber> make_subscriber(const WeightsConfig& config);

// Ends a family: removes its shared memory and its files in `directory`. Subscribers that still
// copy finish or fail. Fails if a live publisher has the name.
Result<void> remove_weights(const WeightsConfig& config);

// Removes the shared memory of all families whose name starts with `name_prefix` and that no live
// publisher or subscriber uses (all of them were killed); returns how many were removed.
int reclaim_stale_weights(std::string_view name_prefix);

}  // namespace tandem::runtime
