#include "actors/exchange/waiting_writes.h"

#include <utility>

#include "runtime/base/file.h"

namespace tandem::exchange {

Result<void> WaitingWrites::tried(actor::Context& cx, const Write& write) {
  const Time begun = cx.now();
  auto done = write();
  seconds_.add(cx.now(), seconds(cx.now() - begun));
  return done;
}

void WaitingWrites::add(actor::Context& cx, const Write& write, const Then& then) {
  if (any()) {
    waiting_.push_back({write, then});
    return;
  }
  const auto done = tried(cx, write);
  if (done || gave_up_ || !waits_for_disk(done.error())) return then(cx, done);
  error_ = done.error();
  since_ = cx.now();
  waiting_.push_back({write, then});
}

// A write stays in its place while it is tried, so that those which `then` adds come last.
void WaitingWrites::retry(actor::Context& cx) {
  while (any()) {
    const auto done = tried(cx, waiting_.front().write);
    if (!done && waits_for_disk(done.error())) return;
    const Then then = std::move(waiting_.front().then);
    waiting_.pop_front();
    then(cx, done);
  }
}

void WaitingWrites::give_up(actor::Context& cx) {
  gave_up_ = true;
  for (const Waiting& ended : std::exchange(waiting_, {})) ended.then(cx, error_);
}

}  // namespace tandem::exchange
