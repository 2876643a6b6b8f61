// A ring of the latest requests of this process to NCCL, each with how far it came. The threads of
// a communicator write it; any thread may read it, above all while an operation hangs.
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

namespace tandem::collective {

inline constexpr std::size_t kNcclRecordsMax = 1024;

enum class NcclKind : std::uint8_t {
  kStart,
  kBroadcast,
  kAllReduce,
  kSend,
  kReceive,
  kGroup,
  kFinish,
  kAbort
};
// How far a request came; the order of the values is the order in which they follow each other, up
// to kDone. The last three end it.
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
  std::uint64_t epoch = 0;   // the membership's epoch
  int rank = 0;              // this process's rank in it
  // The number of the operation in its communicator, from 1; 0: start, finish, abort.
  std::uint64_t sequence = 0;
  NcclKind kind = NcclKind::kStart;
  std::string label;        // the caller's own words: "version 7, bucket 2"
  std::uint64_t bytes = 0;  // that this rank sends and receives
  std::vector<int> peers;   // the root of a broadcast; whom a send or receive is to or from
  NcclState state = NcclState::kQueued;
  Time enqueued_at;                // when submit() was called
  std::optional<Time> started_at;  // when the thread saw that it had started, so a little later
  std::optional<Time> ended_at;
};

// Any thread may call.
class NcclRecords {
 public:
  using Id = std::uint64_t;

  // The Id stays valid for change() also after the ring has dropped the record (NR-1).
  Id add(NcclRecord record);
  // Sets the state, and with it the time of the start or the end.
  void change(Id id, NcclState state, Time now);

  // A copy of all records, oldest first.
  std::vector<NcclRecord> snapshot() const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t added_ = 0;
  std::vector<NcclRecord> ring_;  // record `id` lies at id % kNcclRecordsMax
};

// A list of objects; times are in seconds before `now`.
nlohmann::json to_json(std::span<const NcclRecord> records, Time now);

}  // namespace tandem::collective
