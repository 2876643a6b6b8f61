// Order: namespaces (by clone itself), the death signal, cgroups, the map of users, the file
// system, then a second process for the program: limits, uid, capabilities, no_new_privs, Landlock,
// seccomp, execve. Landlock comes after the mounts, which it would forbid, and seccomp last, since
// it refuses most of the calls that come before.
//
// Raw system calls stand where the C library would do more than the call: its fork() takes locks
// that another thread may have held, and its setresuid() asks all threads to follow, which a copy
// of the process does not have.
#include "runtime/sandbox/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "runtime/sandbox/seccomp_filter.h"

namespace tandem::sandbox {
namespace {

constexpr int kNamespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS;
constexpr int kCapabilitiesMax = 64;
constexpr const char* kOldRoot = "/.old";  // where the machine's root is while the tree is made
constexpr const char* kEmptyFolder = "/.folder";
constexpr const char* kEmptyFile = "/.file";
constexpr std::size_t kPathBytesMax = 4096;

pid_t fork_raw(int namespaces) {
  return static_cast<pid_t>(syscall(SYS_clone, namespaces | SIGCHLD, nullptr, nullptr, nullptr, 0));
}

[[noreturn]] void fail(const Keeping& k, Step step) {
  const StartFailure failure{step, errno};
  [[maybe_unused]] const auto told = write(k.failure_write, &failure, sizeof failure);
  _exit(127);
}

bool write_text(const char* path, const std::string& text) {
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return false;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  return written;
}

// A path below the old root, in a buffer of its own.
struct OldPath {
  explicit OldPath(const std::string& path) {
    const std::size_t prefix = std::strlen(kOldRoot);
    if (prefix + path.size() >= sizeof text) return;  // the empty path is refused by each call
    std::memcpy(text, kOldRoot, prefix);
    std::memcpy(text + prefix, path.c_str(), path.size() + 1);
  }
  char text[kPathBytesMax] = {};
};

// Read-only, without set-uid programs, and without devices unless `devices`; also all below it. The
// call adds attributes and takes none away, as a user namespace demands.
bool close_view(const char* path, bool devices) {
  mount_attr attributes{};
  attributes.attr_set =
      MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | (devices ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV);
  return syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &attributes, sizeof attributes) ==
         0;
}

bool bind(const char* from, const char* to) {
  return mount(from, to, nullptr, MS_BIND | MS_REC, nullptr) == 0;
}

// Leaves us in a new, empty root file system, with the machine's at kOldRoot.
void make_root(const Keeping& k) {
  const bool made =
      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
      mount("sandbox", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755") == 0 &&
      mkdir("/tmp/.old", 0700) == 0 && chdir("/tmp") == 0 &&
      syscall(SYS_pivot_root, ".", kOldRoot + 1) == 0 && chdir("/") == 0;
  if (!made) fail(k, Step::kRoot);
}

bool make_folder(const char* path) { return mkdir(path, 0755) == 0 || errno == EEXIST; }

void make_tree(const Keeping& k) {
  const bool scratch =
      make_folder(kScratchFolder) && mount("scratch", kScratchFolder, "tmpfs", MS_NOSUID | MS_NODEV,
                                           k.scratch_options.c_str()) == 0;
  if (!scratch) fail(k, Step::kScratch);
  if (!make_folder(kEmptyFolder) || !write_text(kEmptyFile, "")) fail(k, Step::kTree);
  for (const std::string& folder : k.tree.folders)
    if (!make_folder(folder.c_str())) fail(k, Step::kTree);
  for (const Tree::Text& file : k.tree.files)
    if (!write_text(file.at.c_str(), file.content)) fail(k, Step::kTree);
  for (const Tree::Text& link : k.tree.links)
    if (symlink(link.content.c_str(), link.at.c_str()) != 0) fail(k, Step::kTree);
}

void make_views(const Keeping& k) {
  for (const std::string& view : k.tree.views)
    if (!bind(OldPath(view).text, view.c_str()) || !close_view(view.c_str(), false))
      fail(k, Step::kView);
  for (const std::string& device : k.tree.devices)
    if (!bind(OldPath(device).text, device.c_str()) || !close_view(device.c_str(), true))
      fail(k, Step::kView);
  for (const std::string& cover : k.tree.covers) {
    struct stat found {};
    if (stat(cover.c_str(), &found) != 0) fail(k, Step::kView);
    if (!bind(S_ISDIR(found.st_mode) ? kEmptyFolder : kEmptyFile, cover.c_str()) ||
        !close_view(cover.c_str(), false))
      fail(k, Step::kView);
  }
}

// A container whose own /proc is partly covered may not mount another. The program then sees an
// empty folder.
void mount_proc() {
  for (const char* options : {"subset=pid,hidepid=2", "hidepid=2"})
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) == 0) return;
}

void leave_old_root(const Keeping& k) {
  mount_attr read_only{};
  read_only.attr_set = MOUNT_ATTR_RDONLY;
  const bool left = umount2(kOldRoot, MNT_DETACH) == 0 && rmdir(kOldRoot) == 0 &&
                    chmod(kEmptyFolder, 0) == 0 && chmod(kEmptyFile, 0) == 0 &&
                    syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &read_only, sizeof read_only) == 0;
  if (!left) fail(k, Step::kLeave);
}

void map_user(const Keeping& k) {
  // A group map needs the promise that no group is given up, which could take a right away.
  if (!write_text("/proc/self/setgroups", "deny") ||
      !write_text("/proc/self/uid_map", k.user_map) ||
      !write_text("/proc/self/gid_map", k.group_map))
    fail(k, Step::kUserMap);
}

void make_file_system(const Keeping& k) {
  umask(022);
  make_root(k);
  make_tree(k);
  make_views(k);
  mount_proc();
  leave_old_root(k);
  sethostname("sandbox", 7);
}

bool change_uid(uid_t uid) {
  return syscall(SYS_setgroups, 0, nullptr) == 0 && syscall(SYS_setresgid, uid, uid, uid) == 0 &&
         syscall(SYS_setresuid, uid, uid, uid) == 0;
}

// A process with a user id of its own has lost its capabilities by that; one of a user namespace
// has all of the namespace's.
bool drop_capabilities() {
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  return syscall(SYS_capset, &header, none) == 0;
}

// Where memory runs out, in the sandbox's cgroup or on the machine, the kernel then ends the
// program and not its keeper. Only a process that may be dumped owns this file of its own.
void die_first_for_memory() {
  prctl(PR_SET_DUMPABLE, 1);
  write_text("/proc/self/oom_score_adj", "1000");
}

// A descriptor may already have the number that it is to get.
bool make_standard(int fd, int number) {
  return fd == number ? fcntl(fd, F_SETFD, 0) == 0 : dup2(fd, number) == number;
}

[[noreturn]] void become_program(Keeping& k) {
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (!make_standard(k.input, STDIN_FILENO) || !make_standard(k.output, STDOUT_FILENO) ||
      !make_standard(k.errors, STDERR_FILENO))
    fail(k, Step::kExecute);
  die_first_for_memory();
  syscall(SYS_close_range, 3u, ~0u, 4u);  // CLOSE_RANGE_CLOEXEC; older kernels: each is by itself
  for (const Limit& limit : k.limits)
    if (setrlimit(limit.resource, &limit.value) != 0) fail(k, Step::kLimit);
  // Bounding capabilities can be dropped while there are any, hence before the uid changes.
  for (int one = 0; one < kCapabilitiesMax; ++one) prctl(PR_CAPBSET_DROP, one, 0, 0, 0);
  if (k.uids && !change_uid(k.uid)) fail(k, Step::kUid);
  if (!drop_capabilities()) fail(k, Step::kPrivileges);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // after the change of the uid, which would take it back
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail(k, Step::kPrivileges);
  if (chdir(k.folder) != 0) fail(k, Step::kFolder);
  if (k.landlock.abi > 0 && !restrict_self(k.landlock)) fail(k, Step::kLandlock);
  if (!k.filter.empty()) {
    filter_own_pid(k.filter.data(), k.filter.size(), static_cast<std::uint32_t>(getpid()));
    if (!install(k.filter.data(), k.filter.size())) fail(k, Step::kSeccomp);
  }
  if (k.executable >= 0)
    syscall(SYS_execveat, k.executable, "", k.argv, k.environment, AT_EMPTY_PATH);
  else
    execve(k.path, k.argv, k.environment);
  fail(k, Step::kExecute);
}

void note_end(Record& record, int status, const rusage& used) {
  constexpr double kMicro = 1e-6;
  record.status = status;
  record.cpu_seconds = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                       kMicro * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  record.memory_bytes_peak = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
  record.ended = true;
}

// Waits for the program's end, and reaps what is left to us. A SIGTERM ends the program; one that
// was ending by itself at that moment keeps its own status.
void await_program(const Keeping& k, pid_t program, const sigset_t& signals) {
  int status = 0;
  rusage used{};
  for (;;) {
    const pid_t ended = wait4(-1, &status, WNOHANG | __WALL, &used);
    if (ended == program) return note_end(*k.record, status, used);
    if (ended > 0) continue;
    siginfo_t what;
    if (sigwaitinfo(&signals, &what) != SIGTERM) continue;
    kill(program, SIGKILL);
    while (wait4(program, &status, __WALL, &used) < 0 && errno == EINTR) {
    }
    return note_end(*k.record, status, used);
  }
}

// By a process of that uid, whose kill(-1) reaches no other uid's.
void kill_uid(uid_t uid) {
  const pid_t killer = fork_raw(0);
  if (killer == 0) {
    if (change_uid(uid)) kill(-1, SIGKILL);
    _exit(0);
  }
  waitpid(killer, nullptr, 0);
}

// XB-2. Orphans come to the keeper, their subreaper, so that it has children until none is left.
void end_all(const Keeping& k, pid_t program) {
  if (k.plan.end == EndOfAll::kGroup) {
    kill(-program, SIGKILL);
    while (waitpid(-program, nullptr, __WALL) > 0) {
    }
  }
  const bool more = k.plan.end == EndOfAll::kUid || k.plan.end == EndOfAll::kLandlockDomain;
  if (!more) return;
  do {
    if (k.plan.end == EndOfAll::kUid)
      kill_uid(k.uid);
    else
      kill(-1, SIGKILL);
    while (waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
    }
  } while (waitpid(-1, nullptr, __WALL) > 0);
}

// The domain around the program's, from which the keeper may signal the program and nothing else.
void enter_domain(const Keeping& k) {
  if (k.plan.end != EndOfAll::kLandlockDomain) return;
  const LandlockRules around{.abi = k.landlock.abi, .files_and_ports = false};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !restrict_self(around))
    fail(k, Step::kLandlock);
}

// The pid by which the machine's /proc knows us, hence before /proc is left.
void choose_uid(Keeping& k) {
  char text[16] = {};
  if (readlink("/proc/self", text, sizeof text - 1) <= 0) fail(k, Step::kUid);
  std::uint32_t pid = 0;
  for (const char* digit = text; *digit >= '0' && *digit <= '9'; ++digit)
    pid = 10 * pid + static_cast<std::uint32_t>(*digit - '0');
  k.uid = k.uids->first + pid % k.uids->count;
}

bool parent_is_gone(const Keeping& k) {
  pollfd pipe{.fd = k.failure_write, .events = 0, .revents = 0};
  return poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR) != 0;
}

[[noreturn]] void keep(Keeping& k) {
  const bool namespaces = k.plan.layers.namespaces != Namespaces::kNone;
  setpgid(0, 0);          // signals to our parent's group are for our parent
  close(k.failure_read);  // the parent's end alone is left, so that its death shows
  prctl(PR_SET_PDEATHSIG, namespaces ? SIGKILL : SIGTERM);
  if (parent_is_gone(k)) _exit(127);
  sigset_t signals;
  sigfillset(&signals);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  for (const int group : k.groups)
    if (write(group, "0", 1) != 1) fail(k, Step::kGroup);
  if (k.plan.layers.namespaces == Namespaces::kOfUser) map_user(k);
  if (k.uids) choose_uid(k);
  if (namespaces) make_file_system(k);
  if (!namespaces) prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (!namespaces && k.uids && chown(k.folder, k.uid, k.uid) != 0) fail(k, Step::kScratch);
  enter_domain(k);
  prctl(PR_SET_DUMPABLE, 0);  // XB-3; the program's own execve makes it dumpable again
  const pid_t program = fork_raw(0);
  if (program < 0) fail(k, Step::kFork);
  if (program == 0) become_program(k);
  syscall(SYS_close_range, 0u, ~0u, 0u);
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  sigaddset(&awaited, SIGTERM);
  await_program(k, program, awaited);
  end_all(k, program);
  _exit(0);
}

}  // namespace

pid_t start_keeper(Keeping& keeping) {
  int flags = keeping.plan.layers.namespaces == Namespaces::kNone ? 0 : kNamespaces;
  if (keeping.plan.layers.namespaces == Namespaces::kOfUser) flags |= CLONE_NEWUSER;
  const pid_t pid = fork_raw(flags);
  if (pid == 0) keep(keeping);
  return pid;
}

}  // namespace tandem::sandbox
