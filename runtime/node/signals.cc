#include "runtime/node/signals.h"

#include <unistd.h>

#include "runtime/base/check.h"

namespace tandem::node {

namespace {

// What raise() sends: no signal of others, who may send SIGTERM where it is not chosen.
int raised() { return SIGRTMIN + 1; }
int told(int number) { return number == raised() ? SIGTERM : number; }

}  // namespace

Signals::Signals(std::initializer_list<int> chosen) {
  sigemptyset(&set_);
  sigaddset(&set_, raised());
  for (const int number : chosen) sigaddset(&set_, number);
  CHECK(pthread_sigmask(SIG_BLOCK, &set_, nullptr) == 0);
}

int Signals::wait() {
  int number = 0;
  CHECK(sigwait(&set_, &number) == 0);
  return told(number);
}

int Signals::wait_for(Duration timeout) {
  const timespec limit{timeout.count() / 1'000'000'000, timeout.count() % 1'000'000'000};
  siginfo_t about{};
  const int number = sigtimedwait(&set_, &about, &limit);
  sender_ = about.si_pid;
  // -1 stands for the end of the time and for a wait that another signal interrupted.
  return number > 0 ? told(number) : 0;
}

// The signal goes to the process and not to this thread: whichever thread waits takes it, and the
// others block it.
void Signals::raise() { kill(getpid(), raised()); }

}  // namespace tandem::node
