// The configuration of a weight family, which its publisher and its subscribers share: where
// versions lie, how they are served, and the layout of their bytes. The ends themselves are in
// weight_ends.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/device/manifest.h"
#include "runtime/link/endpoint.h"
#include "runtime/link/port_range.h"
#include "runtime/weights/broadcast.h"
#include "runtime/weights/weights_type.h"

namespace tandem::weights {

// A tensor of an arena, with the gap behind it.
struct TensorRange {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;          // a multiple of element_bytes
  std::uint64_t element_bytes = 2;  // 1, 2 or 4
};

// The layout of an arena's bytes; publisher and subscribers must agree on it.
struct WeightsLayout {
  std::uint64_t arena_bytes = 0;
  std::uint64_t hash = 0;     // the hash of the manifest
  std::string manifest_json;  // names, dtypes, shapes, offsets; written beside each version on disk
  // In the order of their offsets; together they are the whole arena. Empty: without deltas.
  std::vector<TensorRange> tensors = {};
};
WeightsLayout layout_of(const device::Manifest& manifest);
// The first difference of two manifest_json, in words: "tensor 1 is norm.weight (f32, [16], at byte
// 2048) here and … there".
std::string layout_difference(const std::string& ours, const std::string& theirs);

// Names the host: the boot's id and the device number of /dev/shm. Two processes get the same text
// if and only if they share one /dev/shm.
std::string host_identity();

// How a publisher serves its shared memory over TCP, on any free port of a range.
struct Serving {
  std::string bind = link::kLoopback;  // an address of this host, or 0.0.0.0 or :: for all of them
  std::string advertise = {};          // the host that subscribers dial; empty: what `bind` says
  link::PortRange ports = {};
  // After so long without a message a subscriber's version may be replaced.
  Duration silence_max = std::chrono::seconds(20);
};

struct WeightsConfig {
  WeightsType type = WeightsType::kAuto;
  std::string name;                 // the family's name; weights_name() makes one
  std::filesystem::path directory;  // for disk; is made if missing
  int slots = 2;                    // versions kept: max_staleness + 2; at least 2
  WeightsLayout layout;
  // kCudaIpc: when a publisher dies, its GPU memory may go so long before its lock. A block that
  // cannot be opened for longer has another cause than the publisher's death, and is an error.
  Duration dying_max = std::chrono::seconds(5);
  // How the publisher of kShm, kAuto, kTcp or kNccl serves over TCP. Without it kTcp and kNccl
  // serve on loopback, and the others do not serve. A kAuto that became kDisk never serves.
  std::optional<Serving> serving = {};
  // Over TCP: how long a copy may make no progress; then it fails with kTimedOut. With kNccl: how
  // long the start of an epoch and each part of a broadcast may take.
  Duration stall_max = std::chrono::seconds(30);
  // Over TCP: how many bytes of a copy are asked for at a time, in chunks of a quarter of them or 1
  // MiB, whichever is less, and at most 64 chunks. With kNccl: also the size of one part of a
  // broadcast.
  std::uint64_t bucket_bytes = std::uint64_t{16} << 20;
  std::optional<Broadcasting> broadcasting = {};  // must be set for kNccl
  // Over TCP, in a layout with tensors. A subscriber may apply a delta to the buffer of its last
  // complete copy where begin() gets the same buffer again: its owner leaves the bytes as they are.
  DeltaUse delta = DeltaUse::kNever;
};

// Deltas that together have so many bytes are neither kept nor fetched: the version is fetched
// whole. So this also bounds what a subscriber keeps of a delta that it is offered.
std::uint64_t delta_bytes_end(const WeightsConfig& config);

// A name of a weight family that two runs on one host do not share, fit for a file name: job
// "arith-1" in its run directory gives "arith-1-1f3c5a7b".
std::string weights_name(std::string_view job, const std::filesystem::path& run_directory);

// The type that kAuto stands for, the same in every process of a host; other types are unchanged.
WeightsType resolve(const WeightsConfig& config);

}  // namespace tandem::weights
