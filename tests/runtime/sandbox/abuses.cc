// Functions that never return do so in each of their processes.
#include "tests/runtime/sandbox/abuses.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace tandem::sandbox {

bool touch(char* bytes, std::size_t size) {
  if (bytes == MAP_FAILED) return false;
  for (std::size_t i = 0; i < size; i += 4096) bytes[i] = 1;
  return true;
}
// Each process has less than it may have, and all together more.
bool memory_of_many() {
  for (int i = 0; i < 6; ++i)
    if (fork() == 0) {
      touch(static_cast<char*>(mmap(nullptr, kMuchMemory / 6, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
            kMuchMemory / 6);
      for (;;) pause();
    }
  for (;;) pause();
}
bool spin() {
  volatile unsigned long count = 0;
  for (;;) count = count + 1;
}
bool spin_and_ignore() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_IGN);
  return spin();
}
bool wait_for_ever() {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  for (;;) pause();
}
bool flood() {
  for (;;) puts("0123456789012345678901234567890123456789012345678901234567890123456789");
}
bool flood_errors() {
  for (;;) fputs("0123456789012345678901234567890123456789012345678901234567890123\n", stderr);
}
bool fork_for_ever() {
  for (;;) fork();
}
bool fork_and_leave() {
  for (;;)
    if (fork() > 0) _exit(0);
}
bool dump_core() { abort(); }
// A process that left its session, its parents and its signals behind, and keeps the output open.
bool grandchild() {
  if (fork() == 0) {
    setsid();
    if (fork() == 0) wait_for_ever();
    _exit(0);
  }
  wait(nullptr);
  return true;
}
// Leaves folders behind that are hard to remove: without rights, nested deeper than a path reaches,
// with links to files outside.
bool leave_much() {
  constexpr int kDepth = 200;
  const std::string name(40, 'x');
  (void)!symlink(at("state").c_str(), "link");
  for (int i = 0; i < kDepth; ++i)
    if (mkdir(name.c_str(), 0700) != 0 || symlink("/", (name + "/link").c_str()) != 0 ||
        chdir(name.c_str()) != 0)
      return false;
  for (int i = 0; i < kDepth; ++i)
    if (chdir("..") != 0 || chmod(name.c_str(), 0) != 0) return false;
  return true;
}
bool be_sibling() {
  const int fd = open("mine", O_CREAT | O_WRONLY, 0644);
  if (write(fd, "x", 1) != 1) return false;
  char folder[4096];
  std::printf("%s\n", getcwd(folder, sizeof folder));
  std::fflush(stdout);
  for (;;) pause();
}
bool be_victim() {
  static char byte = 1;
  std::printf("%llu\n", static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(&byte)));
  std::fflush(stdout);
  for (;;) pause();
}

}  // namespace tandem::sandbox
