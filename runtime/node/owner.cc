#include "runtime/node/owner.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <thread>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/file.h"

namespace tandem::node {
namespace {

// How often the lock is looked at where the owner's process cannot be opened.
constexpr int kLookAtLockMs = 200;

// Whether nobody holds the lock. A lock that cannot be looked at, as where this process has too
// many files open, counts as held: whoever takes its owner for ended ends too.
bool is_free(const std::filesystem::path& lock) {
  errno = 0;
  if (FileLock::held(lock)) return false;
  return errno == 0 || errno == ENOENT || errno == ENOTDIR;
}

}  // namespace

Owner::Owner(const std::filesystem::path& lock) : lock_(lock), end_(process_of_lock(lock)) {}

std::optional<Owner> Owner::of_environment() {
  const char* const lock = std::getenv(kOwnerVariable);
  return lock && *lock ? std::optional<Owner>(Owner(lock)) : std::nullopt;
}

bool Owner::has_ended() const { return end_ ? end_->wait_until(steady_now()) : is_free(lock_); }

struct OwnerWatch::Thread {
  Owner owner;
  std::function<void()> ended;
  OwnedFd stop{::eventfd(0, EFD_CLOEXEC)};
  std::thread thread = {};

  void run() const {
    // poll() passes over a descriptor that is negative.
    const int end = owner.end_ ? owner.end_->descriptor() : -1;
    std::array<pollfd, 2> either{{{.fd = end, .events = POLLIN, .revents = 0},
                                  {.fd = stop.get(), .events = POLLIN, .revents = 0}}};
    while (!owner.has_ended()) {
      (void)::poll(either.data(), either.size(), owner.end_ ? -1 : kLookAtLockMs);
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
