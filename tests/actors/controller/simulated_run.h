// One job of a simulated cluster: the job itself (SimulatedJob), and the state that outlives the
// job's processes (SimulatedRun): journal, payloads, checkpoints, published versions, all in
// memory. A run can be taken up again by another cluster, as --resume does with a run directory.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/controller/controller_core.h"
#include "actors/exchange/exchange.h"
#include "actors/exchange/run_record.h"
#include "actors/exchange/state/durable_state.h"
#include "actors/learner/fake_trainer.h"
#include "actors/rollout/fake_engine.h"
#include "actors/rollout/fake_weights.h"
#include "tests/actors/controller/journal_witness.h"
#include "tests/actors/controller/simulated_broadcast.h"

namespace tandem::controller {

struct SimulatedScorer {
  Duration score_max = std::chrono::milliseconds(20);
  double fails = 0;           // fraction of completions; the same ones whoever scores them
  std::uint64_t values = 4;   // a score is one of 0 … values - 1
  std::int32_t capacity = 8;  // groups
  bool says_more = false;     // than a score: votes, and an object `extra`
};

struct SimulatedJob {
  std::string name = "job";
  std::uint64_t seed = 1;
  std::map<messages::Role, std::int32_t> replicas = {{messages::Role::kRollout, 3},
                                                     {messages::Role::kReward, 2}};
  std::optional<scheduler::AutoscaleConfig> autoscale;  // of rollouts
  std::int32_t learner_ranks = 1;
  double cpus_per_rank = 1;
  std::int32_t counters = 0;  // actors of a user's own beside them (kUsersProgram)
  // The configuration without job, seed, epoch, prompts and resume; only the sampling of
  // `evaluation` is set.
  exchange::ExchangeConfig exchange;
  std::int32_t prompts = 64;
  std::int32_t validation_prompts = 0;
  std::vector<std::string> data_sources;  // the validation prompts' sources, in turn
  double prompts_unservable = 0;          // fraction
  // The place in the run's sequence of a prompt by which every engine fails.
  std::optional<std::int64_t> deadly_position;
  std::optional<std::uint32_t> deadly_validation;  // the same for a validation prompt, by its index
  bool deadly_hangs = false;  // engines hang by these prompts, in place of failing
  rollout::FakeEngineConfig engine;
  std::int32_t rollout_capacity = 0;  // 0: the actor's own default
  learner::FakeTrainerConfig trainer;
  SimulatedScorer scorer;
  bool weights_end_with_learner = false;          // as GPU memory does; else they end with its node
  std::optional<SimulatedBroadcasts> broadcasts;  // set where exchange.broadcasts is
  Duration load_max = std::chrono::milliseconds(200);    // the longest time until a rank is ready
  Duration payload_max = std::chrono::milliseconds(10);  // the longest read or write
  double payload_fails = 0;                              // fraction of reads and writes
};

// A row of the view `journal`, with numbers of their own for columns that are NULL.
struct JournalledRow {
  std::int64_t time_ms = 0;
  std::string kind;
  std::int64_t group = 0;
  std::int64_t lease = 0;
  std::string holder;
  std::int64_t step = -1;
  std::int64_t version = -2;
  std::int64_t position = -1;
  std::string detail;
};
// The rows of one event. The rows of its groups come before the event's own row, in the order in
// which things happened.
std::vector<JournalledRow> journalled_rows(const exchange::JournalEvent& event,
                                           std::int64_t time_ms);

// The journal in memory. `on_events` hears of every batch of events in the exchange's turn.
class MemoryRecord final : public exchange::RunRecord {
 public:
  Result<void> journal(std::span<const exchange::JournalEvent> batch,
                       sqlite::Durability durability) override;
  void keep_image(const exchange::RunImage& image) override;
  Result<bool> metrics(const std::string& json_line) override;
  Result<void> take_up(const std::string& yaml) override;
  Result<void> rewind_metrics(StepId checkpoint) override;
  Result<bool> sample(const std::string& json_line) override;
  std::vector<std::string> take_warnings() override { return std::exchange(warnings, {}); }
  Result<void> name_best(StepId step) override;
  Result<void> result(const std::string& json) override;
  bool has_result() const override { return result_json.has_value(); }
  Result<exchange::GroupHistory> history() override;

  bool lacks_room() const { return now_ms && now_ms() < full_until_ms; }
  Error full(const std::string& file) const;
  // Leaves only the first `count` entries, as a power cut may.
  void cut(std::size_t count);
  // What the last image and the events after it come to; DU-4 is CHECKed.
  exchange::Predecessor predecessor() const;

  std::vector<exchange::JournalEntry> entries;  // time_ms is virtual
  std::size_t entries_on_disk = 0;              // entries that a power cut would leave
  std::vector<JournalledRow> events;            // the rows of the entries
  std::string image;                            // the last one, encoded; empty where there is none
  std::size_t entries_in_image = 0;
  exchange::DurableState replayed;  // the state that a reader of the journal has
  JournalWitness witness;           // another reader, with rules of its own
  std::vector<std::string> metrics_lines, sample_lines;
  std::vector<StepId> best;           // as name_best() was told
  std::vector<std::string> warnings;  // that a test has the record give out
  std::optional<std::string> result_json;
  std::string job_yaml;
  std::function<std::int64_t()> now_ms;
  std::function<void(std::span<const JournalledRow>)> on_events;
  bool disk_full = false;          // for the journal
  bool files_full = false;         // for metrics and samples
  int os_error = 0;                // of both; ENOSPC: the run stands still until there is room
  std::int64_t full_until_ms = 0;  // both, with ENOSPC
  std::size_t samples_max = std::size_t{1} << 40;
  std::size_t metrics_max = std::size_t{1} << 40;
};

class MemoryPayloads final : public exchange::PayloadStore {
 public:
  wire::PayloadRef put(std::string bytes);
  bool holds(const wire::PayloadRef& payload) const override;
  void release(const wire::PayloadRef& payload) override;
  Result<std::string> read(const wire::PayloadRef& payload) override;
  bool recover(const wire::PayloadRef& payload) override;
  void settle() override;
  // Another process takes the store up. It holds what the groups of this flow name; all else that
  // was put it knows only once it is told of it.
  void reopen(const exchange::GroupFlow& flow);
  std::size_t size() const { return payloads_.size(); }
  void clear() { payloads_.clear(); }

 private:
  std::map<std::uint64_t, std::string> payloads_;  // by offset, which is a count
  std::set<std::uint64_t> unknown_;                // of them
  std::uint64_t last_ = 0;
};

// K + 2 places for versions, whose contents are checksums.
struct PublishedWeights {
  void lose();  // all versions, as with a host that goes down

  std::string node;  // the node of the learner that published them
  std::shared_ptr<rollout::FakeWeightBoard> board = std::make_shared<rollout::FakeWeightBoard>();
  // Checksums of the versions that the board offers.
  std::map<PolicyVersion, std::uint64_t> contents;
  const void* publisher = nullptr;  // that of the learner's newest incarnation
  Incarnation incarnation;
  int timeouts = 0;  // so many of the next publications time out
};

struct SimulatedRun {
  explicit SimulatedRun(SimulatedJob what) : job(std::move(what)) {}
  const SimulatedJob job;
  MemoryRecord record;
  MemoryPayloads payload_store;
  std::shared_ptr<learner::FakeStore> checkpoints = std::make_shared<learner::FakeStore>();
  PublishedWeights weights;
  std::shared_ptr<SimulatedEpochs> epochs = std::make_shared<SimulatedEpochs>();
  exchange::Exchange* exchange = nullptr;  // while it lives
  // Payloads of the attempt to which this entry of the journal belongs are damaged, and of those
  // before it: no controller follows it. 0: none are.
  std::int64_t damaged_rows = 0;
};

// The program of a simulated user: an actor that adds {"add": N} and answers the sum, and that ends
// at {"end": CODE}. Its role has the same name.
inline constexpr const char* kUsersProgram = "counter";

// The prompt by which the engines of a job with deadly_position or deadly_validation fail.
inline constexpr const char* kDeadlyPrompt = "a prompt that no engine survives";
// The prompt that the engines of a job with prompts_unservable refuse.
inline constexpr const char* kUnservablePrompt = "a prompt beyond every limit";

JobShape shape_of(const SimulatedJob& job);
exchange::ExchangeConfig exchange_config(const SimulatedJob& job, const std::string& id,
                                         bool resume);
std::unique_ptr<weights::WeightPublisher> make_publisher(std::shared_ptr<SimulatedRun> run,
                                                         const std::string& node,
                                                         Incarnation incarnation);

// The ends of the groups of a journal, counted over distinct groups (LG-1), and the staleness of
// the trained groups, as their headers tell. A user would get the same numbers by queries to
// journal.sqlite.
struct JournalCount {
  std::int64_t issued = 0, trained = 0, live = 0;
  std::map<std::string, std::int64_t> discarded;  // by reason
  std::int64_t staleness_max = 0;
  std::int64_t trained_twice = 0;  // LG-2, within one lineage
  // How often groups were trained, trainings that a resume undid included.
  std::int64_t trainings = 0;
  std::int64_t steps_repeated = 0;
};
JournalCount count_groups(const std::vector<JournalledRow>& events);

std::string text_of(const JournalledRow& event);  // one line of a trace

}  // namespace tandem::controller
