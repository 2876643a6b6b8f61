#include "runtime/node/adopted_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace tandem::node {

namespace {

constexpr std::uint64_t kStatMax = 4096;
constexpr int kReapedWithinMs = 50;  // by the process that takes orphans

std::string boot_id() {
  const auto text = read_file("/proc/sys/kernel/random/boot_id", kStatMax);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

// Field `number` of /proc/PID/stat, counted from 1. The second is the program's name in brackets,
// which may have blanks and brackets itself.
std::string_view stat_field(std::string_view stat, int number) {
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return {};
  std::string_view rest = stat.substr(name_end + 1);
  for (int field = 2;; ++field) {
    const std::size_t begin = rest.find_first_not_of(' ');
    if (begin == std::string_view::npos) return {};
    rest.remove_prefix(begin);
    const std::string_view word = rest.substr(0, rest.find_first_of(" \n"));
    if (field + 1 == number) return word;
    rest.remove_prefix(word.size());
  }
}

// include/uapi/linux/pidfd.h of Linux 6.15, whose names Debian 12's headers lack.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup_id;
  std::uint32_t pid, tgid, ppid;
  std::uint32_t ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
  std::int32_t exit_code;  // as waitpid() has it
};
constexpr std::uint64_t kPidfdInfoExit = 1u << 3;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);

bool has_ended(const OwnedFd& pidfd) {
  pollfd end{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  return ::poll(&end, 1, 0) > 0;
}

OwnedFd open_pid(pid_t pid) { return OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

}  // namespace

std::optional<ProcessBirth> birth_of(pid_t pid) {
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat", kStatMax);
  if (!stat) return std::nullopt;
  const std::string_view state = stat_field(*stat, 3), threads = stat_field(*stat, 20),
                         started = stat_field(*stat, 22);
  ProcessBirth born{.boot = boot_id()};
  const auto read = std::from_chars(started.data(), started.data() + started.size(), born.ticks);
  if (read.ec != std::errc() || state == "X") return std::nullopt;
  // A first thread that has ended is in state Z too; the others have the memory and the files yet.
  if (state == "Z" && (threads == "1" || threads == "0")) return std::nullopt;
  return born;
}

Result<OwnedFd> open_process(pid_t pid, const ProcessBirth& born) {
  const std::string name = "process " + std::to_string(pid);
  OwnedFd process = open_pid(pid);
  if (!process && errno != ESRCH) return file_error("open " + name, "");
  // The birth is read after the opening: if it is the wanted one, the open process is the wanted
  // one, since its pid cannot be given again while it lives.
  const auto now = process ? birth_of(pid) : std::nullopt;
  if (now == born) return process;
  if (process && !now && !has_ended(process))
    return Error{.message = "cannot read when " + name + " started"};
  return Error{ErrorCode::kNotFound, name + " has ended"};
}

void signal_adopted_group(pid_t group, int signal_number) {
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failure)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (read.ec != std::errc() || read.ptr != name.data() + name.size()) continue;
    if (::getpgid(pid) != group) continue;
    const OwnedFd process = open_pid(pid);
    if (process && ::getpgid(pid) == group)
      ::syscall(SYS_pidfd_send_signal, process.get(), signal_number, nullptr, 0);
  }
}

std::optional<int> status_of_adopted(const OwnedFd& pidfd) {
  // How it ended is told once it is reaped.
  pollfd reaped{.fd = pidfd.get(), .events = 0, .revents = 0};
  (void)::poll(&reaped, 1, kReapedWithinMs);
  PidfdInfo info{};
  info.mask = kPidfdInfoExit;
  const bool told = ::ioctl(pidfd.get(), kPidfdGetInfo, &info) == 0 && info.mask & kPidfdInfoExit;
  return told ? std::optional<int>(info.exit_code) : std::nullopt;
}

}  // namespace tandem::node
