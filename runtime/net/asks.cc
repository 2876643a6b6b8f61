#include "runtime/net/asks.h"

#include <utility>
#include <vector>

namespace tandem::runtime::remote_detail {

std::uint64_t Asks::await(const std::string& to, OnAnswer on_answer) {
  std::optional<Waiting> oldest;
  std::uint64_t ask = 0;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kAsksMax) {
      oldest = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
    }
    ask = ++last_;
    waiting_.emplace(ask, Waiting{to, std::move(on_answer)});
  }
  if (oldest) {
    oldest->on_answer(Error{ErrorCode::kTimedOut,
                            "asked " + oldest->to + " and had no answer when " +
                                std::to_string(kAsksMax) + " later asks waited for theirs"});
  }
  return ask;
}

void Asks::forget(std::uint64_t ask) {
  std::optional<Waiting> forgotten;  // its ReplyTo may speak as it dies: not under the lock
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(ask);
  if (found == waiting_.end()) return;
  forgotten = std::move(found->second);
  waiting_.erase(found);
}

bool Asks::answer(std::uint64_t ask, WireReader& body) {
  std::optional<Waiting> asked;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(ask);
    if (found == waiting_.end()) return false;
    asked = std::move(found->second);
    waiting_.erase(found);
  }
  asked->on_answer(&body);
  return true;
}

void Asks::fail(const std::optional<std::string>& to, const Error& error) {
  std::vector<Waiting> failed;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      if (to && it->second.to != *to) {
        ++it;
        continue;
      }
      failed.push_back(std::move(it->second));
      it = waiting_.erase(it);
    }
  }
  for (const Waiting& asked : failed) asked.on_answer(error);
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
  if (early && back_(std::move(*early)) != Sent::kAccepted) ++*lost_;
}

}  // namespace tandem::runtime::remote_detail
