#include "tests/actors/controller/simulated_run.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <set>
#include <utility>

#include "actors/exchange/journal_rows.h"
#include "actors/exchange/run_replay.h"
#include "runtime/base/digest.h"
#include "runtime/base/json.h"
#include "runtime/base/rng.h"
#include "runtime/wire/codec.h"

namespace tandem::controller {

namespace {

std::uint64_t as_count(double fraction, std::int32_t of) {
  return static_cast<std::uint64_t>(fraction * of);
}

exchange::ExchangeRecords prompts_of(const SimulatedJob& job, const char* kind, std::int32_t count,
                                     std::optional<std::uint32_t> deadly = {}) {
  exchange::ExchangeRecords records;
  const std::uint64_t unservable = as_count(job.prompts_unservable, count);
  for (std::int32_t i = 0; i < count; ++i) {
    std::string prompt = std::string(kind) + " " + std::to_string(i);
    if (static_cast<std::uint64_t>(i) < unservable) prompt = kUnservablePrompt;
    if (deadly == static_cast<std::uint32_t>(i)) prompt = kDeadlyPrompt;
    records.add(prompt, "{}");
  }
  return records;
}

class SimulatedPublisher final : public weights::WeightPublisher {
 public:
  SimulatedPublisher(std::shared_ptr<SimulatedRun> run, const std::string& node,
                     Incarnation incarnation)
      : run_(std::move(run)) {
    // A learner that has been given up may begin late, and has its weights for itself.
    if (incarnation < run_->weights.incarnation) return;
    run_->weights.incarnation = incarnation;
    // Shared memory is of one host, and GPU memory of one process.
    if (run_->weights.node != node || run_->job.weights_end_with_learner) run_->weights.lose();
    run_->weights.node = node;
    run_->weights.publisher = this;
  }
  ~SimulatedPublisher() override {
    if (run_->weights.publisher == this && run_->job.weights_end_with_learner) run_->weights.lose();
  }

  // Everything that is not retained goes at once, so that whoever counts on it is found out.
  Result<weights::PublishStats> publish(PolicyVersion version, std::span<const std::byte> arena,
                                        Duration timeout) override {
    if (run_->weights.timeouts > 0) {
      --run_->weights.timeouts;
      return Error{ErrorCode::kTimedOut, "no place for version " + std::to_string(version.value) +
                                             " within " + std::to_string(seconds(timeout)) + " s"};
    }
    // A learner that has been given up, and does not know it, has its weights for itself.
    if (run_->weights.publisher != this) {
      alone_.push_back(version);
      return weights::PublishStats{.bytes = arena.size(), .checksum = checksum64(arena)};
    }
    auto& board = run_->weights.board;
    auto& contents = run_->weights.contents;
    const std::uint64_t checksum = checksum64(arena);
    const auto known = contents.find(version);
    if (known != contents.end() && known->second != checksum) contents.erase(known, contents.end());
    contents[version] = checksum;
    contents.erase(contents.begin(), contents.lower_bound(std::min(oldest_, version)));
    const auto places = run_->job.exchange.budget.max_staleness + 2;
    // One that went back to a checkpoint takes the places of what was published after it.
    while (std::ssize(contents) > places && contents.rbegin()->first > version)
      contents.erase(std::prev(contents.end()));
    if (std::ssize(contents) > places)
      return Error{ErrorCode::kTimedOut, "no place for version " + std::to_string(version.value) +
                                             ": all " + std::to_string(places) + " are retained"};
    board->forget_after({std::min(version, contents.begin()->first).value - 1});
    for (const auto& [held, content] : contents)
      board->publish(held, contents.begin()->first, content);
    return weights::PublishStats{
        .bytes = arena.size(), .checksum = checksum, .broadcast = run_->epochs->next_place()};
  }
  void retain(PolicyVersion oldest) override { oldest_ = oldest; }
  void forget_after(PolicyVersion) override { CHECK(false); }  // no lineage ends in one run
  std::vector<PolicyVersion> offered() override {
    std::vector<PolicyVersion> all;
    if (run_->weights.publisher != this) return alone_;
    for (const auto& [version, checksum] : run_->weights.contents)
      if (run_->weights.board->holds(version)) all.push_back(version);
    return all;
  }

 private:
  const std::shared_ptr<SimulatedRun> run_;
  PolicyVersion oldest_ = kInitialWeights;
  std::vector<PolicyVersion> alone_;  // published since another learner took this one's place
};

}  // namespace

std::vector<JournalledRow> journalled_rows(const exchange::JournalEvent& event,
                                           std::int64_t time_ms) {
  std::vector<JournalledRow> rows;
  const auto add = [&](const exchange::JournalRow& row) {
    rows.push_back({.time_ms = time_ms,
                    .kind = row.kind,
                    .group = row.group.value_or(0),
                    .lease = row.lease.value_or(0),
                    .holder = row.holder,
                    .step = row.step.value_or(-1),
                    .version = row.version.value_or(-2),
                    .position = row.position.value_or(-1),
                    .detail = row.detail});
  };
  const exchange::JournalRows all = rows_of(event);
  const bool groups_first = all.of_event.kind != "resumed";
  if (!groups_first) add(all.of_event);
  for (const exchange::JournalRow& row : all.of_groups) add(row);
  if (groups_first && !all.of_event.kind.empty()) add(all.of_event);
  return rows;
}

Error MemoryRecord::full(const std::string& file) const {
  return {.message = "cannot write " + file + ": the disk is full",
          .os_error = lacks_room() ? ENOSPC : os_error};
}

Result<void> MemoryRecord::journal(std::span<const exchange::JournalEvent> batch,
                                   sqlite::Durability durability) {
  if (disk_full || lacks_room()) return full("the journal");
  const std::size_t before = events.size();
  for (const exchange::JournalEvent& event : batch) {
    entries.push_back({now_ms(), event});
    replayed.apply(event);
    witness.take(event);
    for (JournalledRow& row : journalled_rows(event, now_ms())) events.push_back(std::move(row));
  }
  if (durability == sqlite::Durability::kPowerCut) entries_on_disk = entries.size();
  if (on_events) on_events(std::span(events).subspan(before));
  return {};
}

void MemoryRecord::keep_image(const exchange::RunImage& kept) {
  image = wire::encode(kept);
  entries_in_image = entries.size();
}

exchange::Predecessor MemoryRecord::predecessor() const {
  exchange::RunReplay from_image, whole;
  if (!image.empty()) from_image = exchange::RunReplay(*wire::decode<exchange::RunImage>(image));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    whole.take(entries[i]);
    if (i >= entries_in_image) from_image.take(entries[i]);
  }
  exchange::Predecessor predecessor = from_image.predecessor();
  CHECK(from_image.replay().contradiction() && predecessor.state.hash() == replayed.hash() &&
        "DU-4");
  predecessor.has_earlier_attempt =
      std::ranges::count_if(entries, [](const auto& entry) {
        return std::holds_alternative<exchange::RunBegan>(entry.event);
      }) > 1;
  // The image may be an earlier attempt's, which has forgotten more: its figures are those of all
  // events again once the learner has restored the run.
  const bool is_to_be_restored = predecessor.has_earlier_attempt && !replayed.facts().resumed;
  const auto figures_of = [this](exchange::FigureHistory figures) {
    figures.forget_below(replayed.facts().learner.batches_from(), {});
    return wire::encode(figures.image());
  };
  CHECK((is_to_be_restored ||
         figures_of(predecessor.figures) == figures_of(whole.predecessor().figures)) &&
        "DU-4");
  return predecessor;
}

void MemoryRecord::cut(std::size_t count) {
  if (entries_in_image > count) {
    image.clear();
    entries_in_image = 0;
  }
  entries.resize(count);
  events.clear();
  for (const exchange::JournalEntry& entry : entries)
    for (JournalledRow& row : journalled_rows(entry.event, entry.time_ms))
      events.push_back(std::move(row));
}

Result<bool> MemoryRecord::metrics(const std::string& json_line) {
  if (files_full || lacks_room()) return full("metrics.jsonl");
  metrics_lines.push_back(json_line);
  return metrics_lines.size() > metrics_max;
}

Result<void> MemoryRecord::take_up(const std::string& yaml) {
  job_yaml = yaml;
  result_json.reset();  // it is set aside
  return {};
}

Result<void> MemoryRecord::rewind_metrics(StepId checkpoint) {
  std::erase_if(metrics_lines, [&](const std::string& line) {
    return parse_json(line)["step"] > checkpoint.value;
  });
  return {};
}

Result<void> MemoryRecord::name_best(StepId step) {
  best.push_back(step);
  return {};
}

Result<bool> MemoryRecord::sample(const std::string& json_line) {
  if (files_full || lacks_room()) return full("samples.jsonl");
  if (sample_lines.size() >= samples_max) return true;
  sample_lines.push_back(json_line);
  return false;
}

Result<void> MemoryRecord::result(const std::string& text) {
  result_json = text;
  return {};
}

// Every event, and again with the events before each 64th one summed up.
Result<exchange::GroupHistory> MemoryRecord::history() {
  constexpr std::size_t kSummedAt = 64, kCheckpoints = 2;
  exchange::GroupHistory whole, summed;
  const auto later_resume = [this](std::size_t after) {
    StepId least{std::numeric_limits<std::int64_t>::max()};
    for (std::size_t i = after + 1; i < entries.size(); ++i)
      if (const auto* resumed = std::get_if<exchange::RunResumed>(&entries[i].event))
        least = std::min(least, resumed->checkpoint);
    return least;
  };
  exchange::RunBegan began;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (const auto* one = std::get_if<exchange::RunBegan>(&entries[i].event)) began = *one;
    whole.take(entries[i].event);
    summed.take(entries[i].event);
    if (i % kSummedAt == 0) {
      summed.sum_up(kCheckpoints, later_resume(i));
      summed = exchange::GroupHistory(
          *wire::decode<exchange::HistoryImage>(wire::encode(summed.image())));
    }
  }
  for (const StepId checkpoint : summed.image().checkpoints) {
    if (checkpoint < summed.from()) continue;
    const auto resumed = [&](const exchange::GroupHistory& history) {
      return wire::encode(history.resumed(checkpoint, began.budget, began.fixed_lag));
    };
    CHECK(resumed(summed) == resumed(whole) && "GH-1");
  }
  return summed;
}

wire::PayloadRef MemoryPayloads::put(std::string bytes) {
  wire::PayloadRef ref{.node = "simulated", .offset = ++last_, .bytes = bytes.size()};
  payloads_.emplace(last_, std::move(bytes));
  return ref;
}

bool MemoryPayloads::holds(const wire::PayloadRef& payload) const {
  const auto found = payloads_.find(payload.offset);
  return found != payloads_.end() && payload.segment == 0 &&
         payload.bytes == found->second.size() && !unknown_.contains(payload.offset);
}

bool MemoryPayloads::recover(const wire::PayloadRef& payload) {
  const auto found = payloads_.find(payload.offset);
  return found != payloads_.end() && payload.segment == 0 &&
         payload.bytes == found->second.size() && unknown_.erase(payload.offset) > 0;
}

void MemoryPayloads::settle() {
  for (const std::uint64_t offset : unknown_) payloads_.erase(offset);
  unknown_.clear();
}

void MemoryPayloads::reopen(const exchange::GroupFlow& flow) {
  unknown_.clear();
  for (const auto& [offset, bytes] : payloads_) unknown_.insert(offset);
  for (const auto& [group, entry] : flow.entries)
    if (entry.header) unknown_.erase(entry.header->payload.offset);
}

void MemoryPayloads::release(const wire::PayloadRef& payload) {
  CHECK(payloads_.erase(payload.offset) == 1);  // once each
}

Result<std::string> MemoryPayloads::read(const wire::PayloadRef& payload) {
  const auto it = payloads_.find(payload.offset);
  if (it != payloads_.end()) return it->second;
  return Error{ErrorCode::kNotFound, "no payload at " + std::to_string(payload.offset)};
}

JobShape shape_of(const SimulatedJob& job) {
  JobShape shape{.name = job.name,
                 .replicas = job.replicas,
                 .learner_ranks = job.learner_ranks,
                 .total_steps = job.exchange.budget.steps_total,
                 .staleness_bound = job.exchange.budget.max_staleness};
  shape.autoscale = job.autoscale;
  for (const messages::Role& role : messages::kTrainingRoles)
    shape.per_rank[role] = scheduler::resources({.cpus = job.cpus_per_rank});
  if (job.counters > 0) {
    const messages::Role counter{kUsersProgram};
    shape.roles.push_back(counter);
    shape.programs[counter] = {.command = {kUsersProgram}};
    shape.replicas[counter] = job.counters;
    shape.per_rank[counter] = scheduler::resources({.cpus = 0.25});
  }
  return shape;
}

exchange::ExchangeConfig exchange_config(const SimulatedJob& job, const std::string& id,
                                         bool resume) {
  exchange::ExchangeConfig config = job.exchange;
  config.job = id;
  config.seed = job.seed;
  config.resume = resume;
  config.events_per_image = 100 + static_cast<std::int64_t>(job.seed % 300);
  config.validation =
      prompts_of(job, "held-out prompt", job.validation_prompts, job.deadly_validation);
  config.evaluation.prompts = job.validation_prompts;
  config.evaluation.seed = job.seed;
  std::vector<std::optional<std::string>> data_source(config.validation.size());
  for (std::size_t i = 0; i < data_source.size(); ++i)
    if (!job.data_sources.empty()) data_source[i] = job.data_sources[i % job.data_sources.size()];
  config.evaluation.sources = exchange::sources_of(data_source);
  config.prompt_at = [seed = job.seed, count = job.prompts](std::int64_t position) {
    const auto p = static_cast<std::uint64_t>(position);
    return static_cast<std::uint32_t>(derive_seed(seed, {p}) % static_cast<std::uint64_t>(count));
  };
  const auto deadly =
      job.deadly_position ? std::optional(config.prompt_at(*job.deadly_position)) : std::nullopt;
  config.train = prompts_of(job, "prompt", job.prompts, deadly);
  return config;
}

std::unique_ptr<weights::WeightPublisher> make_publisher(std::shared_ptr<SimulatedRun> run,
                                                         const std::string& node,
                                                         Incarnation incarnation) {
  return std::make_unique<SimulatedPublisher>(std::move(run), node, incarnation);
}

void PublishedWeights::lose() {
  contents.clear();
  board->forget_after({kInitialWeights.value - 1});
}

JournalCount count_groups(const std::vector<JournalledRow>& events) {
  struct Group {
    std::string fate;  // the kind of the group's last row among admitted, trained, discarded
    std::string reason;
    std::int64_t oldest = 0;
  };
  std::map<std::int64_t, Group> groups;
  JournalCount count;
  for (const JournalledRow& event : events) {
    count.steps_repeated += event.kind == "retrained";
    if (event.group == 0) continue;
    Group& group = groups[event.group];
    if (event.kind == "generated") group.oldest = event.version;
    if (event.kind == "trained") {
      ++count.trainings;
      count.trained_twice += group.fate == "trained";
      count.staleness_max = std::max(count.staleness_max, event.step - group.oldest);
    }
    if (event.kind == "admitted" || event.kind == "trained" || event.kind == "discarded") {
      group.fate = event.kind;
      group.reason = event.detail;
    }
  }
  count.issued = std::ssize(groups);
  for (const auto& [id, group] : groups) {
    count.trained += group.fate == "trained";
    count.live += group.fate == "admitted";
    if (group.fate == "discarded") ++count.discarded[group.reason];
  }
  return count;
}

std::string text_of(const JournalledRow& event) {
  return std::to_string(event.time_ms) + " " + event.kind +
         " group=" + std::to_string(event.group) + " lease=" + std::to_string(event.lease) +
         " holder=" + event.holder + " step=" + std::to_string(event.step) +
         " version=" + std::to_string(event.version) +
         " position=" + std::to_string(event.position) + " " + event.detail;
}

}  // namespace tandem::controller
