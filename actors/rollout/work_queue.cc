// The order is one sorted set; the rest are the rules for versions. Two requests may want different
// versions, and an engine holds one version at a time. The queue therefore looks at its head only:
// the first request whose version is installed or on offer decides what wants() asks for, and
// nothing starts past it (WQ-4). Otherwise a stream of work for one version would starve the other.
// A request pinned to a version that has not been announced is skipped until it is.
#include "actors/rollout/work_queue.h"

#include <algorithm>
#include <tuple>

#include "runtime/base/check.h"

namespace tandem::actors {

Request request_of(GroupWork work) {
  return {.key = GroupKey{work.group, work.attempt},
          .due = work.due,
          .pinned = work.version,
          .n = work.n,
          .seed = work.seed,
          .prompt = std::move(work.prompt)};
}

Request request_of(const Evaluate& of, std::uint64_t part, EvaluationPrompt prompt) {
  return {.key = EvaluationKey{part, prompt.index},
          .pinned = of.version,
          .n = completions_of(of.sampling),
          .seed = prompt.seed,
          .prompt = std::move(prompt.prompt),
          .sampling = of.sampling};
}

bool WorkQueue::Earlier::operator()(const std::pair<Request, std::uint64_t>& a,
                                    const std::pair<Request, std::uint64_t>& b) const {
  return std::tuple(!a.first.of_evaluation(), a.first.due, a.second) <
         std::tuple(!b.first.of_evaluation(), b.first.due, b.second);
}

void WorkQueue::push(Request request) {
  CHECK(request.n >= 1);
  if (!request.of_evaluation()) groups_are_pinned_ = request.pinned.has_value();
  sequences_ += request.n;
  waiting_.emplace(std::move(request), arrivals_++);
}

WorkQueue::Waiting::const_iterator WorkQueue::first() const {
  return std::find_if(waiting_.begin(), waiting_.end(), [this](const auto& item) {
    const auto& pinned = item.first.pinned;
    return !pinned || pinned == version_ || on_offer(*pinned);
  });
}

// Whether free requests must end before the weights change to `target`. They always must when
// `target` is older than the installed version, because their due steps count from the installed
// one.
bool WorkQueue::drains_free(PolicyVersion target) const {
  return !partial_rollout_ || target < *version_;
}

const Request* WorkQueue::next() const {
  if (!version_) return nullptr;
  const auto head = first();
  if (head == waiting_.end()) return nullptr;
  const Request& request = head->first;
  if (request.pinned) return request.pinned == version_ ? &request : nullptr;
  if (version_high_ && *version_ < *version_high_) return nullptr;  // WQ-2
  // A start here would put the update off again, and could do so for ever.
  if (pending_ && drains_free(*pending_)) return nullptr;
  return &request;
}

Request WorkQueue::take() {
  CHECK(next() != nullptr);
  Request request = std::move(waiting_.extract(first()).value().first);
  sequences_ -= request.n;
  ++(request.pinned ? running_pinned_ : running_free_);
  return request;
}

void WorkQueue::ended(const Request& request) {
  std::int64_t& running = request.pinned ? running_pinned_ : running_free_;
  CHECK(running > 0);
  --running;
}

std::vector<Request> WorkQueue::remove(const std::function<bool(const Request&)>& which) {
  std::vector<Request> removed;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (!which(at->first)) {
      ++at;
      continue;
    }
    sequences_ -= at->first.n;
    const auto gone = at++;
    removed.push_back(std::move(waiting_.extract(gone).value().first));
  }
  return removed;
}

std::optional<PolicyVersion> WorkQueue::wants(const VersionOffer& offer) {
  offered_ = offer.newest;
  // A publisher whose newest version went back begins a new lineage. The highest version of the old
  // lineage may not come for a long time, so it no longer holds free requests up.
  if (version_high_ && offer.newest < *version_high_) version_high_ = offer.newest;
  const auto head = first();
  if (head != waiting_.end() && head->first.pinned) {
    if (head->first.pinned == version_) return std::nullopt;
    return head->first.pinned;
  }
  // Under fixed_lag the next groups name their version; fetching the newest one would be in vain.
  if (head == waiting_.end() && groups_are_pinned_) return std::nullopt;
  if (version_ == offer.newest) return std::nullopt;
  // An update to a newer version that is under way is finished first: a publisher faster than the
  // copying would otherwise never let one through.
  if (pending_ && (!version_ || *pending_ > *version_) && *pending_ <= offer.newest &&
      *pending_ >= offer.oldest_retained)
    return pending_;
  return offer.newest;
}

bool WorkQueue::may_finish_update() const {
  if (!pending_ || running_pinned_ > 0) return false;
  const auto head = first();
  // A waiting request that is pinned to the installed version runs before the version leaves
  // (WQ-1).
  if (version_ && head != waiting_.end() && head->first.pinned == version_) return false;
  return running_free_ == 0 || !drains_free(*pending_);
}

PolicyVersion WorkQueue::finish_update() {
  CHECK(may_finish_update());
  version_ = *pending_;
  pending_.reset();
  version_high_ = std::max(version_high_.value_or(*version_), *version_);
  return *version_;
}

void OpenEvaluations::open(Evaluate evaluation, const std::function<void(Request)>& submit) {
  std::vector<EvaluationPrompt> prompts = std::exchange(evaluation.prompts, {});
  EvaluationDone done{.evaluation = evaluation.evaluation};
  if (prompts.empty()) return done_.push_back(std::move(done));
  const std::uint64_t part = ++part_last_;
  open_.emplace(part, Open{.prompts_left = prompts.size(), .done = std::move(done)});
  for (EvaluationPrompt& prompt : prompts) submit(request_of(evaluation, part, std::move(prompt)));
}

void OpenEvaluations::completed(const EvaluationKey& key, std::vector<Trajectory> trajectories) {
  const auto open = open_.find(key.part);
  CHECK(open != open_.end());
  std::int32_t sample = 0;
  for (Trajectory& trajectory : trajectories)
    open->second.done.completions.push_back({.index = key.index,
                                             .sample = sample++,
                                             .text = std::move(trajectory.text),
                                             .truncated = trajectory.truncated,
                                             .special_text = std::move(trajectory.special_text)});
  answered(open);
}

void OpenEvaluations::unservable(const EvaluationKey& key) {
  const auto open = open_.find(key.part);
  CHECK(open != open_.end());
  open->second.done.unservable.push_back(key.index);
  answered(open);
}

void OpenEvaluations::answered(std::map<std::uint64_t, Open>::iterator open) {
  if (--open->second.prompts_left > 0) return;
  done_.push_back(std::move(open->second.done));
  open_.erase(open);
}

}  // namespace tandem::actors
