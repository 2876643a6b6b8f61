// A step is planned by scheduler/batch from two lists of plain values; this file makes the lists,
// and applies the plan to the real sequences and pages. plan_step() has counted the pages, so an
// allocation that fails here is a bug and CHECKed. Evictions come first: their pages are the ones
// that the parts of the same plan are given. Pages are shared by a request's sequences and by the
// prefix cache, so a write to a page must be preceded by unshare_tail() (NE-4).
#include "actors/rollout/sequences.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "runtime/base/check.h"

namespace tandem::rollout {
Sequences::Sequences(const Config& config)
    : config_(config), pool_(config.pages), cache_(pool_, config.page_tokens) {}

void Sequences::open(Request request, PolicyVersion version, Completion completion) {
  auto open = std::make_shared<OpenRequest>();
  open->request = std::move(request);
  open->arrival = arrivals_++;
  open->trajectories.resize(static_cast<std::size_t>(open->request.n));
  open->unfinished = open->request.n;
  open_ += open->request.n;

  auto leader = std::make_shared<RunningSequence>(
      RunningSequence{.open = open,
                      .seed = open->request.trajectory_seed(0),
                      .completion = std::move(completion),
                      .tokens = open->request.prompt_tokens,
                      .kv_oldest = version,
                      .leads = true,
                      .times = {.submitted = open->request.submitted}});
  if (config_.prefix_caching) {
    leader->table = cache_.match(version, leader->tokens);
    leader->cached = static_cast<std::int32_t>(leader->table.size()) * config_.page_tokens;
  }
  live_.push_back(std::move(leader));
}

std::vector<std::shared_ptr<RunningSequence>> Sequences::fork(RunningSequence& leader,
                                                              const Completion& fresh) {
  CHECK(leader.leads && leader.pending() == 0);
  leader.leads = false;
  std::vector<std::shared_ptr<RunningSequence>> forked;
  for (std::size_t i = 1; i < leader.open->trajectories.size(); ++i) {
    forked.push_back(std::make_shared<RunningSequence>(
        RunningSequence{.open = leader.open,
                        .index = i,
                        .seed = leader.open->request.trajectory_seed(i),
                        .completion = fresh,
                        .tokens = leader.tokens,
                        .cached = leader.cached,
                        .table = scheduler::fork(pool_, leader.table),
                        .kv_oldest = leader.kv_oldest,
                        .times = leader.times}));
  }
  live_.insert(live_.end(), forked.begin(), forked.end());
  return forked;
}

const Sequences::Work& Sequences::plan() {
  running_.clear();
  waiting_.clear();
  for (const auto& live : live_)  // no later step reads the pages of a finished sequence
    if (live->completion.ends_by_length(live->ahead)) scheduler::release_table(pool_, live->table);
  for (std::size_t i = 0; i < live_.size(); ++i) {
    const RunningSequence& live = *live_[i];
    if (live.completion.ends_by_length(live.ahead)) continue;
    const scheduler::Fill fill{live.cached, config_.page_tokens};
    (live.started ? running_ : waiting_)
        .push_back({.id = scheduler::SequenceId{i},
                    .due = live.open->request.due,
                    .arrival = live.open->arrival,
                    .tokens_cached = live.cached,
                    .tokens_pending = live.pending(),
                    .pages_alone = scheduler::pages_alone(pool_, live.table),
                    .tail_shared = scheduler::tail_shared(pool_, live.table, fill)});
  }
  const scheduler::StepPlan plan = scheduler::plan_step(running_, waiting_,
                                                        {.tokens_max = config_.tokens_max,
                                                         .sequences_max = config_.sequences_max,
                                                         .pages_free = pool_.available(),
                                                         .page_tokens = config_.page_tokens});
  for (const scheduler::SequenceId id : plan.evict) {
    give_back(*live_[id.value]);
    ++preemptions_;
  }
  // All evictions are done, so that their pages are free for the parts below.
  work_.parts.clear();
  work_.copies.clear();
  for (const scheduler::Slice& slice : plan.run) {
    const auto& sequence = live_[slice.id.value];
    sequence->started = true;
    make_room(*sequence, slice.tokens);
    work_.parts.push_back({sequence, slice.tokens});
  }
  return work_;
}

void Sequences::make_room(RunningSequence& sequence, std::int32_t tokens) {
  const scheduler::Fill fill{sequence.cached, config_.page_tokens};
  if (const auto copy = scheduler::unshare_tail(pool_, cache_, sequence.table, fill))
    work_.copies.push_back({copy->from.value, copy->to.value});
  const std::int32_t pages = scheduler::pages_for(sequence.cached + tokens, config_.page_tokens);
  while (std::ssize(sequence.table) < pages) {
    const auto page = cache_.allocate();
    CHECK(page.has_value());  // the plan counted them
    sequence.table.push_back(*page);
  }
}

void Sequences::computed(const Part& part, PolicyVersion version) {
  RunningSequence& sequence = *part.sequence;
  // A sequence that begins anew forgets the version of the pages that it gave back.
  sequence.kv_oldest = sequence.cached == 0 ? version : std::min(sequence.kv_oldest, version);
  sequence.cached += part.tokens;
  const bool prompt_is_whole = sequence.leads && sequence.pending() == 0;
  // A prompt that two versions computed is not cached: a cached page is of one version (PC-1).
  if (config_.prefix_caching && prompt_is_whole && sequence.kv_oldest == version)
    cache_.insert(version, sequence.tokens, sequence.table);
}

void Sequences::end(RunningSequence& sequence) {
  CHECK(!sequence.ended);
  scheduler::release_table(pool_, sequence.table);
  sequence.ended = true;
  --sequence.open->unfinished;
  --open_;
}

void Sequences::drop_ended() {
  std::erase_if(live_, [](const auto& sequence) { return sequence->ended; });
}

std::vector<std::shared_ptr<OpenRequest>> Sequences::cancel(
    const std::function<bool(const Request&)>& which) {
  std::vector<std::shared_ptr<OpenRequest>> cancelled;
  for (const auto& sequence : live_) {
    const auto& open = sequence->open;
    if (!open->cancelled && which(open->request)) {
      open->cancelled = true;
      // Sequences that are not forked yet count as open too, so the request's own count is
      // subtracted.
      open_ -= open->unfinished;
      cancelled.push_back(open);
    }
    if (!open->cancelled) continue;
    scheduler::release_table(pool_, sequence->table);
    sequence->ended = true;
  }
  drop_ended();
  return cancelled;
}

void Sequences::give_back(RunningSequence& sequence) {
  scheduler::release_table(pool_, sequence.table);
  sequence.cached = 0;
  sequence.started = false;
}

void Sequences::version_changed(PolicyVersion from, PolicyVersion to, Pages pages) {
  if (pages == Pages::kRecompute)
    for (const auto& sequence : live_) give_back(*sequence);
  // An update to an older version may begin a new lineage, where the same number names other
  // weights.
  if (to > from)
    cache_.drop_before(to);
  else
    cache_.drop_all();
}

std::int64_t Sequences::started_count() const {
  return std::ranges::count_if(live_, [](const auto& sequence) { return sequence->started; });
}

std::optional<std::pair<GroupId, std::int32_t>> Sequences::first_group() const {
  std::optional<std::tuple<StepId, GroupId, std::int32_t>> first;
  for (const auto& sequence : live_) {
    const Request& request = sequence->open->request;
    if (request.of_evaluation()) continue;
    const std::tuple one{request.due, std::get<GroupKey>(request.key).group,
                         sequence->length() - sequence->prompt_length()};
    if (!first || one < *first) first = one;
  }
  if (!first) return std::nullopt;
  return std::pair{std::get<GroupId>(*first), std::get<std::int32_t>(*first)};
}

}  // namespace tandem::rollout
