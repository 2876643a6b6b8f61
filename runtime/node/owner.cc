#include "runtime/node/owner.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <thread>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/file.h"

namespace tandem::node {
namespace {

// The owner's number may be another process's by now: the lock is looked at again once the process
// has been opened.
ProcessEnd owner_of(const std::filesystem::path& lock) {
  const auto pid = FileLock::owner(lock);
  ProcessEnd end(pid.value_or(0));
  return pid && FileLock::owner(lock) == pid ? std::move(end) : ProcessEnd(0);
}

}  // namespace

Owner::Owner(const std::filesystem::path& lock) : end_(owner_of(lock)) {}

std::optional<Owner> Owner::of_environment() {
  const char* const lock = std::getenv(kOwnerVariable);
  return lock && *lock ? std::optional<Owner>(Owner(lock)) : std::nullopt;
}

bool Owner::has_ended() const { return end_.wait_until(steady_now()); }

struct OwnerWatch::Thread {
  Owner owner;
  std::function<void()> ended;
  OwnedFd stop{::eventfd(0, EFD_CLOEXEC)};
  std::thread thread = {};

  void run() const {
    std::array<pollfd, 2> either{{{.fd = owner.end_.descriptor(), .events = POLLIN, .revents = 0},
                                  {.fd = stop.get(), .events = POLLIN, .revents = 0}}};
    // poll() passes over a descriptor that is negative: an owner that had ended before.
    while (!owner.has_ended()) {
      (void)::poll(either.data(), either.size(), -1);
      if (either[1].revents != 0) return;
    }
    ended();
  }
};

OwnerWatch::OwnerWatch(Owner owner, std::function<void()> ended)
    : thread_(new Thread{.owner = std::move(owner), .ended = std::move(ended)}) {
  CHECK(thread_->stop);
  thread_->thread = std::thread([thread = thread_.get()] { thread->run(); });
}

OwnerWatch::~OwnerWatch() {
  const std::uint64_t one = 1;
  CHECK(::write(thread_->stop.get(), &one, sizeof one) == sizeof one);
  thread_->thread.join();
}

}  // namespace tandem::node
