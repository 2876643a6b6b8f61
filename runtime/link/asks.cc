#include "runtime/link/asks.h"

#include <iterator>
#include <utility>
#include <vector>

namespace tandem::link::remote_detail {
namespace {

constexpr std::size_t kSpareNodesMax = 8'192;  // after a burst the rest is freed

}  // namespace

std::uint64_t Asks::await(const std::shared_ptr<const ActorId>& to, Asker asker) {
  std::optional<Waiting> oldest;
  std::uint64_t ask = 0;
  {
    const std::lock_guard lock(mutex_);
    // Numbers grow, so the first entry is the oldest ask and a new one belongs at the end.
    if (waiting_.size() >= kAsksMax) oldest = take(waiting_.begin());
    ask = ++last_;
    if (spare_.empty()) {
      waiting_.emplace_hint(waiting_.end(), ask, Waiting{to, std::move(asker)});
    } else {
      spare_.back().key() = ask;
      spare_.back().mapped() = {to, std::move(asker)};
      waiting_.insert(waiting_.end(), std::move(spare_.back()));
      spare_.pop_back();
    }
  }
  // The lock is not held: the asker may ask again from within its callback.
  if (oldest) {
    oldest->hear(Error{ErrorCode::kTimedOut,
                       "asked " + oldest->to->name + " and had no answer when " +
                           std::to_string(kAsksMax) + " later asks waited for theirs"});
  }
  return ask;
}

// Called with mutex_ held.
Asks::Waiting Asks::take(Map::iterator found) {
  Waiting taken = std::move(found->second);
  auto node = waiting_.extract(found);
  if (spare_.size() < kSpareNodesMax) spare_.push_back(std::move(node));
  return taken;
}

void Asks::forget(std::uint64_t ask) {
  // Declared before the lock, so that it ends after the lock's release: a ReplyTo that ends
  // unanswered calls its asker.
  std::optional<Waiting> forgotten;
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(ask);
  if (found != waiting_.end()) forgotten = take(found);
}

bool Asks::answer(std::uint64_t ask, wire::WireReader& body) {
  std::optional<Waiting> asked;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(ask);
    if (found == waiting_.end()) return false;
    asked = take(found);
  }
  asked->hear(&body);
  return true;
}

void Asks::fail(const std::optional<std::string>& to, const Error& error) {
  std::vector<Waiting> failed;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      const auto next = std::next(it);
      if (!to || it->second.to->name == *to) failed.push_back(take(it));
      it = next;
    }
  }
  for (const Waiting& asked : failed) asked.hear(error);
}

void AnswerGate::put(std::string frame) {
  {
    const std::lock_guard lock(mutex_);
    if (!open_) {
      frame_ = std::move(frame);
      return;
    }
  }
  if (back_(std::move(frame)) != Sent::kAccepted) ++*lost_;
}

void AnswerGate::open() {
  std::optional<std::string> early;
  {
    const std::lock_guard lock(mutex_);
    open_ = true;
    early = std::exchange(frame_, std::nullopt);
  }
  // The answer is sent without the lock: the sender takes the link's own mutex.
  if (early && back_(std::move(*early)) != Sent::kAccepted) ++*lost_;
}

}  // namespace tandem::link::remote_detail
