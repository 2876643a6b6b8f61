// What an exchange leaves in its run directory. One implementation writes files and SQLite
// (run_files.h), the other keeps everything in memory (simulations and tests).
//
// Order: an exchange journals what it decided before any message that follows from it leaves.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/wire/payload_ref.h"

namespace tandem::actors {

// One transition of one group, or one step of the job. Of a group, `kind` is the name of its state
// in the ledger ("admitted", "rolling", …, "trained", "discarded"), or "released", "expired",
// "handed_back", "refused"; the last row among admitted, trained and discarded is what became of
// it, also over several lives of a run.
// Of the job: "phase", "published", "committed", "retrained", "checkpoint", "learner_restarted",
// "resumed", "evaluated", "evaluation_incomplete", "totals", "ended".
struct JournalEvent {
  std::int64_t time_ms = 0;
  std::string kind;
  std::int64_t group = 0;  // 0: not about a group
  std::int64_t lease = 0;
  std::string holder;          // "arith-1/rollout/0#3"
  std::int64_t step = -1;      // batch, slot or checkpoint
  std::int64_t version = -2;   // below kInitialWeights: none
  std::int64_t position = -1;  // admitted: of the prompt in the shuffled sequence
  std::string detail;          // discard reason, checksum, slot ("index/attempt"), …
};

enum class Durability { kKill, kPowerCut };  // what a record outlives at once

class RunRecord {
 public:
  virtual ~RunRecord() = default;
  // One transaction. An error (a full disk) ends the job: nothing goes on unrecorded. kPowerCut
  // waits for the disk, for all that was journalled before as well.
  virtual Result<void> journal(std::span<const JournalEvent> events, Durability durability) = 0;
  virtual Result<void> metrics(const std::string& json_line) = 0;
  // An interrupted or finished run goes on, as this job file says: the file replaces the one that
  // the run has kept so far, and what the run came to before is no longer its result.
  virtual Result<void> take_up(const std::string& yaml) = 0;
  // The lines of steps beyond the checkpoint go: they are trained, and told, anew.
  virtual Result<void> rewind_metrics(StepId checkpoint) = 0;
  virtual Result<void> sample(const std::string& json_line) = 0;  // bounded: drops the rest
  virtual Result<void> result(const std::string& json) = 0;
  // What earlier lives of the run journalled of the kinds that GroupHistory takes, in order.
  virtual Result<void> replay(const std::function<void(const JournalEvent&)>& take) = 0;
};

// The payloads that groups refer to: released when no retraining can need them any more.
class PayloadShelf {
 public:
  virtual ~PayloadShelf() = default;
  // It was stored, exactly as the reference says, and was not released.
  virtual bool holds(const runtime::PayloadRef& payload) const = 0;
  virtual void release(const runtime::PayloadRef& payload) = 0;
  // For the samples: the bytes, if they are on this node.
  virtual Result<std::string> read(const runtime::PayloadRef& payload) = 0;
};

}  // namespace tandem::actors
