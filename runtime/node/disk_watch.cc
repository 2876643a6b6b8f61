#include "runtime/node/disk_watch.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace tandem::node {

struct DiskWatch::State {
  Look look;
  std::chrono::milliseconds every;
  std::mutex mutex;
  std::condition_variable ends;
  bool over = false;
  std::optional<DiskSpace> newest;

  void take_look() {
    const auto space = look();
    const std::lock_guard lock(mutex);
    if (space) newest = *space;
  }
  void run() {
    std::unique_lock lock(mutex);
    while (!ends.wait_for(lock, every, [this] { return over; })) {
      lock.unlock();
      take_look();
      lock.lock();
    }
  }
};

DiskWatch::DiskWatch(Look look, std::chrono::milliseconds every)
    : state_(std::make_shared<State>()) {
  state_->look = std::move(look);
  state_->every = every;
  state_->take_look();
  std::thread([state = state_] { state->run(); }).detach();
}

DiskWatch::~DiskWatch() {
  const std::lock_guard lock(state_->mutex);
  state_->over = true;
  state_->ends.notify_all();
}

std::optional<DiskSpace> DiskWatch::newest() const {
  const std::lock_guard lock(state_->mutex);
  return state_->newest;
}

}  // namespace tandem::node
