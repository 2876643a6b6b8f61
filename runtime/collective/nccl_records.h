// A ring of the latest requests of this process to NCCL, each with how far it came. The threads of
// a communicator write it, and any thread may read it while an operation hangs.
//
// Invariants
//   NR-1  The ring holds the newest kNcclRecordsMax records in the order of their enqueuing; a
//         change of an older record, which the ring has dropped, has no effect.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"

namespace tandem::runtime {

inline constexpr std::size_t kNcclRecordsMax = 1024;

enum class NcclKind : std::uint8_t { kStart, kBroadcast, kSend, kReceive, kGroup, kFinish, kAbort };
enum class NcclState : std::uint8_t {
  kQueued,   // handed to the thread of NCCL
  kEntered,  // this rank has called NCCL
  kStarted,  // the stream has come to it
  kDone,
  kFailed,   // it is the one that ended its communicator
  kAborted,  // its communicator ended before it did
};
const char* name(NcclKind kind);
const char* name(NcclState state);

struct NcclRecord {
  std::string communicator;  // "job/weights"
  std::uint64_t epoch = 0;   // of the membership
  int rank = 0;              // of this process in it
  // Of the operation in its communicator, from 1; 0: start, finish, abort.
  std::uint64_t sequence = 0;
  NcclKind kind = NcclKind::kStart;
  std::string label;        // the caller's own words: "version 7, bucket 2"
  std::uint64_t bytes = 0;  // that this rank sends and receives
  std::vector<int> peers;   // the root of a broadcast; whom a send or receive is to or from
  NcclState state = NcclState::kQueued;
  Time enqueued_at;
  std::optional<Time> started_at;  // when the start was seen, not when it was
  std::optional<Time> ended_at;
};

class NcclRecords {
 public:
  using Id = std::uint64_t;

  Id add(NcclRecord record);
  void change(Id id, NcclState state, Time now);

  // Oldest first.
  std::vector<NcclRecord> snapshot() const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t added_ = 0;
  std::vector<NcclRecord> ring_;  // record `id` lies at id % kNcclRecordsMax
};

// A list of objects; times are in seconds before `now`.
nlohmann::json to_json(std::span<const NcclRecord> records, Time now);

// Compares the snapshots of an epoch's ranks (`by_rank[r]` is rank r's, empty where nothing could
// be had from it) and names those that are behind: "rank 2 did not enter operation 5 (broadcast of
// 4096 bytes), which rank 0, rank 1 entered". Empty where all are in the same operation. For
// communicators whose ranks take part in the same operations.
std::string explain_stall(std::span<const std::vector<NcclRecord>> by_rank, std::uint64_t epoch);

}  // namespace tandem::runtime
