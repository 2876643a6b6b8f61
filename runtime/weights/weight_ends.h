// Publishing and fetching versions of one arena: the publisher (the learner's rank 0) leaves a few
// whole versions where subscribers (rollout actors) fetch them when it suits them. Neither side
// waits for the other, except a publisher whose places are all being read or retained. Not
// responsible for the meaning of the bytes (Manifest), for the decision who installs which version
// (scheduler/), or for broadcasts to a group (broadcast.h). The two ends are made in
// weight_family.h.
//
// Invariants, for every implementation (tests/runtime/weights/conformance_test.cc)
//   WT-1  A version is installed whole and as published (checksum64), or not at all; it is never
//         torn, whichever side is killed at whatever moment.
//   WT-2  A version that the publisher retains, or that a subscriber is copying or holds in place,
//         is not replaced. Over TCP a subscriber counts as copying as long as it is heard
//         (Serving::silence_max).
//   WT-3  A subscriber that dies holds no version; a publisher that dies leaves the versions that
//         it had published, and its successor of the same name carries on from them. With kCudaIpc
//         none are left: the versions go with the publisher's GPU memory, and are no longer
//         offered. Over TCP the successor serves the versions that are left; until then no bytes
//         arrive.
//   WT-4  There is one publisher per name at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/weights/broadcast.h"
#include "runtime/wire/weight_source.h"

namespace tandem::weights {

struct PublishStats {
  std::uint64_t bytes = 0;     // copied; 0 if this version was already there with the same content
  double seconds = 0;          // all of publish(), waiting included
  std::uint64_t checksum = 0;  // checksum64 of the arena
  std::optional<wire::BroadcastPlace> broadcast =
      {};  // set where the version is being broadcast as well
};

// The end that publishes. One thread at a time may call.
class WeightPublisher {
 public:
  virtual ~WeightPublisher() = default;

  // Copies the arena (exactly arena_bytes), after which the caller may change it. The new version
  // replaces the lowest one that is neither retained nor being copied. Where there is none, the
  // call waits up to `timeout` and then fails with kTimedOut, naming the processes that hold
  // versions. A version that is already there is read once more: where its bytes are no longer
  // those that were published, it is withdrawn and written anew. A version number that is already
  // there with other content starts a new lineage: that version and all later ones are forgotten
  // first.
  virtual Result<PublishStats> publish(PolicyVersion version, std::span<const std::byte> arena,
                                       Duration timeout) = 0;

  // From now on `oldest` and later versions are kept until the next retain(). Without it only the
  // newest one is certain to be kept. At most slots - 1 versions can be retained.
  virtual void retain(PolicyVersion oldest) = 0;

  // Versions later than `last` are no longer offered: a lineage ends. Copies of them that are under
  // way fail.
  virtual void forget_after(PolicyVersion last) = 0;

  // The versions that subscribers can begin now, ascending; those that an earlier publisher of this
  // name left are among them (WT-3).
  virtual std::vector<PolicyVersion> offered() = 0;

  // The place where subscribers fetch, which they must be told (look_at). The source of a kAuto
  // publisher that serves only its own host names this host alone. nullopt where subscribers need
  // not be told. The source never changes.
  virtual std::optional<wire::WeightSource> source() const { return std::nullopt; }

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

  // Tells where the publisher is. The same source again has no effect. With kTcp no version is
  // offered before the first call. A copy that is under way goes on from the new place if the
  // version is offered there with the same content; else the copy fails with kNotFound.
  virtual void look_at(const wire::WeightSource&) {}

  // Tells that `version`, of this checksum, is being broadcast at `place`. A begin() of that
  // version then waits for the broadcast as long as this rank takes part in it, and fetches the
  // version otherwise.
  virtual void expect(PolicyVersion, std::uint64_t /*checksum*/, const wire::BroadcastPlace&) {}
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

  // Copies up to `bytes_max` more bytes (at least one). Call it between decode steps, only after
  // begin(). An error ends the copy, and the buffer then holds no version: the version was
  // forgotten, or its bytes are not those that were published (kInvalid). Over TCP the copy goes on
  // by itself: this call reports how far the copy is, whatever `bytes_max`, and fails with
  // kTimedOut after WeightsConfig::stall_max.
  virtual Result<UpdateProgress> progress(std::uint64_t bytes_max) = 0;
  virtual void cancel() = 0;

  // The version whose copy completed last, and its checksum.
  struct Installed {
    PolicyVersion version;
    std::uint64_t checksum = 0;
    std::uint64_t bytes = 0;  // that were fetched for it; 0: it is read in place
  };
  virtual std::optional<Installed> installed() const = 0;

  // checksum64 of a version as it is offered at present; none where the version is not offered or
  // its checksum is not known.
  virtual std::optional<std::uint64_t> checksum_of(PolicyVersion) { return std::nullopt; }

  // How many publishers of this name have started, the one of newest() included; 0 before the
  // first.
  virtual std::uint64_t publisher_life() = 0;
};

}  // namespace tandem::weights
