// The record that an exchange leaves in its run directory. One implementation writes files and
// SQLite (run_files.h), another keeps everything in memory, for simulations and tests.
//
// Order: an exchange journals a decision before any message that follows from it leaves (EX-1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "actors/exchange/group_history.h"
#include "actors/exchange/run_image.h"
#include "actors/exchange/state/journal_event.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/sqlite/durability.h"
#include "runtime/wire/payload_ref.h"

namespace tandem::exchange {

using sqlite::Durability;

// Owned by one exchange and called in its turns.
class RunRecord {
 public:
  virtual ~RunRecord() = default;
  // Appends the events in one transaction, with the time. kPowerCut waits for the disk, also for
  // all that was journalled before. After an Error nothing is appended. A full disk or one that
  // cannot be written (waits_for_disk()) makes the run stand still; any other Error, of this
  // function or of the others that write, ends the job, so that nothing goes on unrecorded.
  virtual Result<void> journal(std::span<const JournalEvent> events, Durability durability) = 0;
  // Keeps an image of the run after all that was journalled, in place of the one before. It only
  // saves time: one that cannot be written is told of in the log.
  virtual void keep_image(const RunImage& image) = 0;
  // True: metrics.jsonl has just reached its limit, so that this and all further lines take the
  // place of older ones. Each record says so once.
  virtual Result<bool> metrics(const std::string& json_line) = 0;
  // Resumes a run that was interrupted or finished, with this job file. The file replaces the one
  // that the run has kept, and the result of an earlier incarnation is no longer the run's result.
  virtual Result<void> take_up(const std::string& yaml) = 0;
  // Removes the lines of steps beyond the checkpoint: these steps are trained, and told, anew.
  virtual Result<void> rewind_metrics(StepId checkpoint) = 0;
  // Adds a line to samples.jsonl. True: it has just reached its limit, so that this and all further
  // lines take the place of older ones. Each record says so once.
  virtual Result<bool> sample(const std::string& json_line) = 0;
  // What has gone wrong beside the run's own files since the last call, in words for people: a
  // tracker that is written no more. The run goes on.
  virtual std::vector<std::string> take_warnings() = 0;
  // The checkpoint of this step is the best one now.
  virtual Result<void> name_best(StepId step) = 0;
  virtual Result<void> result(const std::string& json) = 0;
  // result() has been called since the run began or was taken up, also by an exchange before.
  virtual bool has_result() const = 0;
  // What the events come to that earlier incarnations of the run journalled. Errors: a journal that
  // is damaged, or of another schema.
  virtual Result<GroupHistory> history() = 0;
};

// The payload store as an exchange sees it. A payload is released when no retraining can need it.
class PayloadStore {
 public:
  virtual ~PayloadStore() = default;
  // True if the payload was stored exactly as the reference says and was not released.
  virtual bool holds(const wire::PayloadRef& payload) const = 0;
  virtual void release(const wire::PayloadRef& payload) = 0;
  // Takes up a payload that an earlier process stored and nobody has told of: true if its bytes are
  // there. Not after settle().
  virtual bool recover(const wire::PayloadRef& payload) = 0;
  virtual void settle() = 0;  // no such payload is told of any more
  // The bytes, for samples, if they are on this node.
  virtual Result<std::string> read(const wire::PayloadRef& payload) = 0;
};

}  // namespace tandem::exchange
