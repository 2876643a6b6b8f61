// What an exchange leaves in its run directory. One implementation writes files and SQLite
// (run_files.h), the other keeps everything in memory (simulations and tests).
//
// Order: an exchange journals what it decided before any message that follows from it leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/wire/payload_ref.h"

namespace tandem::actors {

// One transition of one group, or one step of the job. `kind` is a ledger state's name
// ("admitted", "rolling", …, "discarded") or "handed_back", "published", "checkpoint", "phase".
struct JournalEvent {
  std::int64_t time_ms = 0;
  std::string kind;
  std::int64_t group = 0;  // 0: not about a group
  std::int64_t lease = 0;
  std::string holder;          // "arith-1/rollout/0#3"
  std::int64_t step = -1;      // batch, slot or checkpoint
  std::int64_t version = -2;   // below kInitialWeights: none
  std::int64_t position = -1;  // admitted: of the prompt in the shuffled sequence
  std::string detail;          // discard reason, checksum, …
};

// What --resume finds of an earlier run's journal, up to its checkpoint.
struct RestoredGroup {
  GroupId group;
  std::int64_t position = 0;
  std::optional<StepId> trained_at;
  bool discarded = false;
  std::string discard_reason;
  std::int64_t slot_step = -1, slot_index = 0, slot_attempt = 0;  // fixed_lag only
};

class RunRecord {
 public:
  virtual ~RunRecord() = default;
  // One transaction. An error (a full disk) ends the job: nothing goes on unrecorded.
  virtual Result<void> journal(std::span<const JournalEvent> events) = 0;
  virtual Result<void> metrics(const std::string& json_line) = 0;
  virtual Result<void> sample(const std::string& json_line) = 0;  // bounded: drops the rest
  virtual Result<void> result(const std::string& json) = 0;
  virtual Result<std::vector<RestoredGroup>> restore() = 0;
};

// The payloads that groups refer to: released when no retraining can need them any more.
class PayloadShelf {
 public:
  virtual ~PayloadShelf() = default;
  virtual void release(const runtime::PayloadRef& payload) = 0;
  // For the samples: the bytes, if they are on this node.
  virtual Result<std::string> read(const runtime::PayloadRef& payload) = 0;
};

}  // namespace tandem::actors
