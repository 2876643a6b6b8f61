// One life of the controller's process in a simulation: its executor, and everything by which it
// acts on the world. Each such act is an *effect*: a frame that leaves, a line of a journal, an
// exchange that opens. Effects are counted, so that the process can die before any of them, also
// between a journal and the message that tells of it. Once it is dead nothing of it reaches
// anybody, although its actors finish the turn that they are in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "actors/controller/controller_actions.h"
#include "actors/exchange/run_record.h"
#include "tests/actors/controller/process_executor.h"

namespace tandem::controller {

// Faults of the disk that has the controller's journal and those of its runs.
struct DiskFaults {
  Time slow_until{};  // until then each write stops the process for `slow_by`
  Duration slow_by{};
  Time remember_fails_until{};  // the controller's own journal cannot be written
};

class ServerLife : public std::enable_shared_from_this<ServerLife> {
 public:
  // `before_effect` is called before each effect, and may call die().
  ServerLife(actor::SimulatedExecutor& simulation, std::function<void()> before_effect)
      : executor(simulation), before_effect_(std::move(before_effect)) {}
  // Counts an effect. False: the process has died, and the effect must not be.
  bool acts();
  void die() { dead_ = true; }
  bool dead() const { return dead_; }
  // The actors of the process wait for so long, while its links live.
  void stall(actor::SimulatedExecutor& simulation, Duration time);

  ProcessExecutor executor;

 private:
  const std::function<void()> before_effect_;
  bool dead_ = false;
};
using SharedLife = std::shared_ptr<ServerLife>;

// The same actions, each an effect of the life.
ControllerActions mortal(ControllerActions actions, const SharedLife& life);

// A record and a payload store, as one life of the exchange's process reaches them. `before_write`
// is called before each write of the journal.
class MortalRecord final : public exchange::RunRecord {
 public:
  MortalRecord(exchange::RunRecord& record, SharedLife life, std::function<void()> before_write)
      : record_(record), life_(std::move(life)), before_write_(std::move(before_write)) {}
  Result<void> journal(std::span<const exchange::JournalEvent> events,
                       sqlite::Durability durability) override;
  void keep_image(const exchange::RunImage& image) override;
  Result<bool> metrics(const std::string& json_line) override;
  Result<void> take_up(const std::string& yaml) override;
  Result<void> rewind_metrics(StepId checkpoint) override;
  Result<bool> sample(const std::string& json_line) override;
  std::vector<std::string> take_warnings() override;
  Result<void> name_best(StepId step) override;
  Result<void> result(const std::string& text) override;
  bool has_result() const override { return record_.has_result(); }
  Result<exchange::GroupHistory> history() override;

 private:
  exchange::RunRecord& record_;
  const SharedLife life_;
  const std::function<void()> before_write_;
};

class MortalPayloads final : public exchange::PayloadStore {
 public:
  MortalPayloads(exchange::PayloadStore& store, SharedLife life)
      : store_(store), life_(std::move(life)) {}
  bool holds(const wire::PayloadRef& payload) const override { return store_.holds(payload); }
  void release(const wire::PayloadRef& payload) override;
  bool recover(const wire::PayloadRef& payload) override { return store_.recover(payload); }
  void settle() override;
  Result<std::string> read(const wire::PayloadRef& payload) override {
    return store_.read(payload);
  }

 private:
  exchange::PayloadStore& store_;
  const SharedLife life_;
};

}  // namespace tandem::controller
