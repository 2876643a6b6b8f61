#include "runtime/node/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <sstream>
#include <utility>

#include "runtime/node/argument_vector.h"
#include "runtime/node/log_rotation.h"

extern char** environ;

namespace tandem::node {
namespace {

// The daemon finds its end of the socket at this descriptor. The variable says that it is there: a
// process that is started by hand may have another file at descriptor 3.
constexpr int kWordsFd = 3;
constexpr const char* kWordsVariable = "TANDEM_DAEMON_WORDS";
constexpr const char* kWordsSetting = "TANDEM_DAEMON_WORDS=3";

// Polls until a descriptor is ready (true) or the deadline passes. A poll that a signal interrupts
// is repeated with the time that is left, rounded up so that it does not spin in the last
// millisecond.
bool poll_until(std::span<pollfd> descriptors, Time deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_now());
    const int ready = poll(descriptors.data(), descriptors.size(),
                           static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (ready > 0) return true;
    if (ready == 0 && steady_now() >= deadline) return false;
  }
}

// The socket of a daemon that is started.
struct Words {
  OwnedFd ours, theirs;

  static Result<Words> make(const std::string& daemon) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return file_error("make a socket pair for " + daemon, {});
    return Words{OwnedFd(ends[0]), OwnedFd(ends[1])};
  }
};

}  // namespace

Result<Daemon> spawn_daemon(DaemonSpec spec) {
  auto made = Words::make(spec.name);
  if (!made) return made.error();
  // This end is closed at the end of this function: the daemon then has the only copy, and its end
  // is heard.
  const OwnedFd theirs = std::move(made->theirs);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, theirs.get(), kWordsFd);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (spec.log.empty()) {
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, spec.log.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  }
  // Else sockets of libraries are inherited, and a port is in use for as long as the daemon lives.
  posix_spawn_file_actions_addclosefrom_np(&files, kWordsFd + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  // Our settings are the first in the list: a program takes the first of two variables of one name.
  std::vector<std::string> environment{kWordsSetting};
  if (!spec.log.empty()) {
    const auto [log, path] = log_setting(spec.log);
    environment.push_back(log + "=" + path);
  }
  for (char** variable = environ; *variable; ++variable) environment.emplace_back(*variable);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, spec.program.c_str(), &files, &attributes,
                  argument_vector(spec.argv).data(), argument_vector(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  errno = error;
  if (error != 0) return file_error("start " + spec.name, spec.log);
  return Daemon{pid, std::move(made->ours)};
}

Result<Daemon> fork_daemon(const std::string& name, const std::function<int()>& work) {
  auto made = Words::make(name);
  if (!made) return made.error();
  std::fflush(nullptr);  // what is not written yet is not to be written twice
  const pid_t pid = fork();
  if (pid < 0) return file_error("start " + name, {});
  if (pid > 0) {
    made->theirs = OwnedFd();
    return Daemon{pid, std::move(made->ours)};
  }
  setsid();
  const OwnedFd none(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const bool ready = dup2(none.get(), STDIN_FILENO) >= 0 &&
                     dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 &&
                     dup2(made->theirs.get(), kWordsFd) >= 0;
  // A lock belongs to an open file: one that stays open here would outlast its owner.
  close_range(kWordsFd + 1, ~0U, 0);
  if (!ready || setenv(kWordsVariable, "3", 1) != 0) std::_Exit(1);
  std::exit(work());
}

Heard wait_for_word(const Daemon& speaker, const Daemon& other, Duration timeout) {
  // No events are asked of `other`: poll reports the end of a socket (POLLHUP) all the same.
  std::array<pollfd, 2> both{{{.fd = speaker.words.get(), .events = POLLIN, .revents = 0},
                              {.fd = other.words.get(), .events = 0, .revents = 0}}};
  if (!poll_until(both, steady_now() + timeout)) return Heard::kNothing;
  // A word that `speaker` said before it ended is read first.
  char word = 0;
  const bool spoke = recv(speaker.words.get(), &word, 1, MSG_DONTWAIT) == 1;
  return spoke ? Heard::kWord : Heard::kEnd;
}

void show_command_line(std::span<const std::string> words) {
  const auto stat = read_file("/proc/self/stat");
  if (!stat) return;
  // Behind the name in brackets, which may have blanks, begins field 3; proc(5).
  constexpr int kFirst = 3, kArgStart = 48, kArgEnd = 49;
  std::istringstream fields(stat->substr(std::min(stat->rfind(')') + 1, stat->size())));
  std::string field;
  std::uintptr_t begin = 0, end = 0;
  for (int number = kFirst; number <= kArgEnd && fields >> field; ++number) {
    if (number == kArgStart) begin = std::strtoull(field.c_str(), nullptr, 10);
    if (number == kArgEnd) end = std::strtoull(field.c_str(), nullptr, 10);
  }
  if (begin == 0 || end <= begin) return;
  std::string text;
  for (const std::string& word : words) text += word + '\0';
  text.resize(end - begin);
  text.back() = '\0';
  std::memcpy(reinterpret_cast<char*>(begin), text.data(), text.size());
}

void end_daemon(const Daemon& daemon, Duration patience) {
  // A child of this process that nobody has waited for: its pid is no other process's.
  const ProcessEnd end(daemon.pid);
  kill(daemon.pid, SIGTERM);
  if (end.wait_until(steady_now() + patience)) return;
  kill(daemon.pid, SIGKILL);
  end.wait_until(steady_now() + patience);
}

std::optional<int> reap(const Daemon& daemon) {
  int status = 0;
  if (waitpid(daemon.pid, &status, WNOHANG) != daemon.pid) return {};
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

DaemonWords DaemonWords::inherited() {
  DaemonWords words;
  const char* const variable = std::getenv(kWordsVariable);
  if (!variable) return words;
  unsetenv(kWordsVariable);
  if (fcntl(kWordsFd, F_SETFD, FD_CLOEXEC) == 0) words.socket_ = OwnedFd(kWordsFd);
  return words;
}

void DaemonWords::say() const {
  // An error means that no process listens any more: the starter has its answer or has given up.
  if (socket_) (void)send(socket_.get(), "w", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool runs_here(pid_t pid, std::string_view argument) {
  // Each argument ends with a zero byte; the file of a process that has ended is empty or gone.
  const auto arguments = read_file("/proc/" + std::to_string(pid) + "/cmdline");
  if (!arguments) return false;
  std::string_view rest = *arguments;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    if (rest.substr(0, end) == argument) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

ProcessEnd::ProcessEnd(pid_t pid) : pidfd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}

bool ProcessEnd::wait_until(Time deadline) const {
  if (!pidfd_) return true;
  pollfd end{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  return poll_until({&end, 1}, deadline);
}

void ProcessEnd::signal(int number) const {
  if (pidfd_) (void)syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0);
}

std::optional<ProcessEnd> process_of_lock(const std::filesystem::path& lock) {
  const auto pid = FileLock::owner(lock);
  if (!pid) return std::nullopt;
  ProcessEnd process(*pid);
  if (process.descriptor() < 0 || FileLock::owner(lock) != pid) return std::nullopt;
  return process;
}

}  // namespace tandem::node
