#include "runtime/node/watched_child.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace tandem::node {

struct Pulse::Shared {
  std::atomic<std::uint64_t> beats = 0;
  std::atomic<bool> rests = true;
};

void Pulse::beat() {
  if (!shared_) return;
  shared_->rests = false;
  ++shared_->beats;
}

void Pulse::rest() {
  if (shared_) shared_->rests = true;
}

Result<WatchedChild> WatchedChild::start(const Work& work) {
  const auto failed = [](const char* what) {
    return Error{.message = std::string("cannot ") + what + ": " + std::strerror(errno)};
  };
  void* const memory = mmap(nullptr, sizeof(Pulse::Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return failed("share memory with a child");
  const Pulse pulse(std::shared_ptr<Pulse::Shared>(
      new (memory) Pulse::Shared(),
      [](Pulse::Shared* shared) { munmap(shared, sizeof(Pulse::Shared)); }));
  std::fflush(nullptr);  // what is not written yet is not to be written twice
  const pid_t watcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) return failed("start a child");
  if (pid > 0) return WatchedChild(pid, pulse);
  // WC-1: the watcher may have ended before this call.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != watcher) std::_Exit(1);
  std::exit(work(pulse));
}

void WatchedChild::signal(int number) const { (void)kill(pid_, number); }

std::optional<int> WatchedChild::ended() const {
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  return status;
}

int WatchedChild::missed() {
  const std::uint64_t before = std::exchange(beats_, pulse_.shared_->beats.load());
  missed_ = before == beats_ && !pulse_.shared_->rests ? missed_ + 1 : 0;
  return missed_;
}

}  // namespace tandem::node
