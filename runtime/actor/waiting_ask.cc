#include "runtime/actor/waiting_ask.h"

#include <algorithm>

namespace tandem::actor::detail {
namespace {

// Entries of answered asks are dropped from the front of a queue as they get there. Behind an ask
// that waits long they gather: once there are more than kEntriesPerOpen for each open ask, all
// queues are searched. At least three quarters of the entries then go, so that the search costs
// each of them a constant. Few entries are not worth a search.
constexpr std::size_t kEntriesPerOpen = 4;
constexpr std::size_t kEntriesFew = 64;

}  // namespace

bool AskDeadlines::Due::waits() const {
  const auto held = ask.lock();
  return held && !held->answered();
}

void AskDeadlines::add(const std::shared_ptr<WaitingAsk>& ask, Time now, Duration deadline) {
  std::deque<Due>& queue = queues_[deadline];
  while (!queue.empty() && !queue.front().waits()) {
    queue.pop_front();
    --entries_;
  }
  queue.push_back({now + deadline, ask});
  ++entries_;
  ++open_;
  if (entries_ > kEntriesFew && entries_ > kEntriesPerOpen * open_) drop_answered();
}

// An actor without open asks keeps no entry, although deadlines of answered ones lie ahead.
bool AskDeadlines::handed_over() {
  if (--open_ > 0) return false;
  clear();
  return true;
}

void AskDeadlines::drop_answered() {
  entries_ = 0;
  for (auto& [deadline, queue] : queues_) {
    std::erase_if(queue, [](const Due& due) { return !due.waits(); });
    entries_ += queue.size();
  }
  std::erase_if(queues_, [](const auto& entry) { return entry.second.empty(); });
}

void AskDeadlines::expire(Time now) {
  for (auto& [deadline, queue] : queues_) {
    // Answered asks at the front go too, so that next() is the end of one that waited just now.
    // time_out() does nothing to an ask that was answered.
    while (!queue.empty() && (queue.front().at <= now || !queue.front().waits())) {
      if (const auto ask = queue.front().ask.lock()) ask->time_out();
      queue.pop_front();
      --entries_;
    }
  }
  std::erase_if(queues_, [](const auto& entry) { return entry.second.empty(); });
}

std::optional<Time> AskDeadlines::next() const {
  std::optional<Time> earliest;
  for (const auto& [deadline, queue] : queues_)
    if (!earliest || queue.front().at < *earliest) earliest = queue.front().at;
  return earliest;
}

void AskDeadlines::clear() {
  queues_.clear();
  entries_ = open_ = 0;
}

}  // namespace tandem::actor::detail
