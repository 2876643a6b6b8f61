// Makes everything that the keeper needs, starts it, and reads from a pipe whether the start
// failed.
#include "runtime/sandbox/cell.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <new>
#include <string_view>
#include <utility>

#include "runtime/sandbox/seccomp_filter.h"

namespace tandem::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;  // as which a program of a user namespace sees itself
constexpr std::uint64_t kBytesOfAnInode = 16384;  // of scratch, so that empty files are bounded too
constexpr std::uint64_t kInodesMin = 1024;
constexpr std::uint64_t kLockedBytes = 64u << 10;
constexpr std::uint64_t kSignalsQueued = 1024;
constexpr std::size_t kProcessesLookedAt = 1024;

// Uids that no distribution gives to anybody. A container may know few uids: then those that
// systemd keeps for programs without a user, which need no entry either.
constexpr UidRange kWideUids{.first = 0x60000000, .count = 1u << 22};
constexpr UidRange kFewUids{.first = 61184, .count = 4336};

UidRange uids_here() {
  std::ifstream map("/proc/self/uid_map");
  for (std::uint64_t inside = 0, outside = 0, count = 0; map >> inside >> outside >> count;)
    if (inside <= kWideUids.first && inside + count >= kWideUids.first + kWideUids.count)
      return kWideUids;
  return kFewUids;
}

// Not above our own hard limit, which only root may raise.
Limit limit_of(decltype(RLIMIT_CPU) resource, std::uint64_t soft, std::uint64_t hard) {
  rlimit now{};
  getrlimit(resource, &now);
  return {resource, {std::min<rlim_t>(soft, now.rlim_max), std::min<rlim_t>(hard, now.rlim_max)}};
}

// Processes and threads of our user, which a limit on his processes counts as well.
std::uint64_t tasks_of_user() {
  std::uint64_t tasks = 0;
  std::error_code failed;
  for (const fs::directory_entry& process : fs::directory_iterator("/proc", failed)) {
    struct stat found {};
    const std::string name = process.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (stat(process.path().c_str(), &found) != 0 || found.st_uid != geteuid()) continue;
    for (fs::directory_iterator at(process.path() / "task", failed), end; at != end;
         at.increment(failed))
      ++tasks;
  }
  return tasks;
}

std::uint64_t tasks_allowed(const Plan& plan, const Profile& profile) {
  if (plan.layers.namespaces == Namespaces::kOfUser) return profile.processes + 1;  // the keeper
  if (plan.layers.own_uid) return profile.processes;
  return profile.processes + tasks_of_user();
}

std::vector<Limit> limits_of(const Plan& plan, const Profile& profile, bool memory_counted) {
  const auto both = [](decltype(RLIMIT_CPU) resource, std::uint64_t value) {
    return limit_of(resource, value, value);
  };
  std::vector<Limit> limits{both(RLIMIT_CORE, 0),
                            both(RLIMIT_FSIZE, profile.file_bytes),
                            both(RLIMIT_NOFILE, profile.open_files),
                            both(RLIMIT_NPROC, tasks_allowed(plan, profile)),
                            both(RLIMIT_MEMLOCK, kLockedBytes),
                            both(RLIMIT_MSGQUEUE, 0),
                            both(RLIMIT_SIGPENDING, kSignalsQueued),
                            both(RLIMIT_RTPRIO, 0),
                            both(RLIMIT_NICE, 0)};
  // SIGXCPU at the limit names the reason; a program that ignores it is killed a second later.
  if (profile.cpu_seconds)
    limits.push_back(limit_of(RLIMIT_CPU, *profile.cpu_seconds, *profile.cpu_seconds + 1));
  if (profile.memory_bytes && !memory_counted)
    limits.push_back(both(RLIMIT_AS, *profile.memory_bytes));
  return limits;
}

std::string scratch_options(const Profile& profile) {
  const std::uint64_t inodes = std::max(kInodesMin, profile.scratch_bytes / kBytesOfAnInode);
  return "mode=1777,size=" + std::to_string(profile.scratch_bytes) +
         ",nr_inodes=" + std::to_string(inodes);
}

FilterWishes filter_wishes(const Plan& plan, const Profile& profile) {
  const bool among_others = plan.end == EndOfAll::kLandlockDomain || plan.end == EndOfAll::kNoForks;
  return {.forks = plan.end != EndOfAll::kNoForks,
          .settings = !among_others,
          .signals = plan.end != EndOfAll::kNoForks,
          .sockets = !profile.sockets.empty()};
}

std::vector<std::string> environment_with(const std::vector<std::string>& given,
                                          const std::string& scratch) {
  std::vector<std::string> environment{"HOME=" + scratch, "TMPDIR=" + scratch};
  for (const std::string& variable : given)
    if (!variable.starts_with("HOME=") && !variable.starts_with("TMPDIR="))
      environment.push_back(variable);
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (std::string& string : strings) all.push_back(string.data());
  all.push_back(nullptr);
  return all;
}

Result<fs::path> make_scratch() {
  std::error_code failed;
  std::string name = (fs::temp_directory_path(failed) / "tandem-sandbox-XXXXXX").string();
  if (failed || !mkdtemp(name.data())) return file_error("make the scratch folder", name);
  return fs::path(name);
}

// The names of what lies in a folder, and the folder itself, held open.
struct Listed {
  OwnedFd folder;
  std::vector<std::string> names;
};
Listed listed(int above, const char* name) {
  Listed all{OwnedFd(openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)), {}};
  const int again = all.folder ? openat(all.folder.get(), ".", O_RDONLY | O_CLOEXEC) : -1;
  DIR* const entries = again >= 0 ? fdopendir(again) : nullptr;
  while (const dirent* entry = entries ? readdir(entries) : nullptr)
    if (const std::string_view found = entry->d_name; found != "." && found != "..")
      all.names.emplace_back(found);
  if (entries) closedir(entries);
  return all;
}

// Removes a folder whose programs have all ended. They may have nested folders deeper than a path
// or our descriptors reach, and taken away all rights on them: so each folder is opened up and
// moved to the top, where it is emptied. A folder that cannot be removed whole stays, and says by
// its name what it is.
void remove_scratch(const fs::path& scratch) {
  chmod(scratch.c_str(), 0700);
  std::uint64_t moved = 0;
  for (bool progress = true; std::exchange(progress, false);) {
    const Listed top = listed(AT_FDCWD, scratch.c_str());
    for (const std::string& name : top.names) {
      const char* const path = name.c_str();
      if (unlinkat(top.folder.get(), path, 0) == 0) continue;
      fchmodat(top.folder.get(), path, 0700, 0);
      const Listed inner = listed(top.folder.get(), path);
      for (const std::string& one : inner.names) {
        if (unlinkat(inner.folder.get(), one.c_str(), 0) == 0) continue;
        fchmodat(inner.folder.get(), one.c_str(), 0700, 0);
        // A name that no program gives by chance; if one did, the next number is tried.
        const std::string at = ".tandem-removed-" + std::to_string(moved++);
        progress |= renameat2(inner.folder.get(), one.c_str(), top.folder.get(), at.c_str(),
                              RENAME_NOREPLACE) == 0 ||
                    errno == EEXIST;
      }
      unlinkat(top.folder.get(), path, AT_REMOVEDIR);
    }
  }
  rmdir(scratch.c_str());
}

// Of all threads of the process; empty where it has ended, or this kernel does not tell.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> all;
  std::error_code failed;
  const fs::path tasks = fs::path("/proc") / std::to_string(pid) / "task";
  for (fs::directory_iterator task(tasks, failed), end; !failed && task != end;
       task.increment(failed)) {
    std::ifstream children(task->path() / "children");
    for (pid_t child = 0; children >> child;) all.push_back(child);
  }
  return all;
}

std::uint64_t resident_of(pid_t pid) {
  std::ifstream pages("/proc/" + std::to_string(pid) + "/statm");
  std::uint64_t size = 0, resident = 0;
  pages >> size >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

bool is_want_of_room(int error) {
  return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE ||
         error == ENOSPC;
}

Error start_error(const std::string& program, const StartFailure& failure) {
  return {is_want_of_room(failure.error) ? ErrorCode::kOutOfMemory : ErrorCode::kFailed,
          "cannot start " + program + " in a sandbox: " + std::string(spelling(failure.step)) +
              ": " + errno_text(failure.error),
          "", "", failure.error};
}

}  // namespace

void Cell::Unmap::operator()(Record* record) const { munmap(record, sizeof *record); }

Cell::Cell(LimitGroup group, fs::path scratch, SharedRecord record)
    : group_(std::move(group)), scratch_(std::move(scratch)), record_(std::move(record)) {}

Cell::~Cell() {
  end();
  if (!scratch_.empty()) remove_scratch(scratch_);
}

Result<std::unique_ptr<Cell>> Cell::start(const Plan& plan, const Profile& profile,
                                          const Command& command) {
  CHECK(!command.argv.empty());
  CHECK(profile.sockets.empty() || may_have_sockets(plan));
  const bool own_files = plan.layers.namespaces != Namespaces::kNone;
  fs::path folder;
  if (!own_files) {
    Result<fs::path> made = make_scratch();
    if (!made) return made.error();
    folder = *std::move(made);
  }
  void* const shared =
      mmap(nullptr, sizeof(Record), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    return Error{ErrorCode::kOutOfMemory, "cannot share memory: " + errno_text(errno)};
  LimitGroup group =
      plan.layers.pids_group || plan.layers.memory_group ? LimitGroup::make(profile) : LimitGroup();
  std::unique_ptr<Cell> cell(
      new Cell(std::move(group), std::move(folder), SharedRecord(new (shared) Record)));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error{ErrorCode::kOutOfMemory, "cannot make a pipe: " + errno_text(errno)};
  const OwnedFd failure_read(ends[0]);
  OwnedFd failure_write(ends[1]);

  const std::string scratch = own_files ? kScratchFolder : cell->scratch_.string();
  std::vector<std::string> argv = command.argv;
  std::vector<std::string> environment = environment_with(command.environment, scratch);
  const std::vector<char*> arguments = pointers(argv);
  const std::vector<char*> variables = pointers(environment);
  Keeping keeping{
      .plan = plan,
      .path = argv[0].c_str(),
      .executable = command.executable,
      .argv = arguments.data(),
      .environment = variables.data(),
      .input = command.input,
      .output = command.output,
      .errors = command.errors,
      .folder = scratch.c_str(),
      .uids = plan.layers.own_uid ? std::optional(uids_here()) : std::nullopt,
      .limits = limits_of(plan, profile, cell->group_.counts_memory()),
      .filter = plan.layers.seccomp ? seccomp_filter(filter_wishes(plan, profile))
                                    : std::vector<sock_filter>{},
      .landlock = {.abi = plan.layers.landlock_abi,
                   .paths = own_files ? rules_within_tree() : rules_of(profile, scratch)},
      .failure_write = failure_write.get(),
      .failure_read = failure_read.get(),
      .groups = cell->group_.entrances(),
      .user_map = std::to_string(kNobody) + " " + std::to_string(geteuid()) + " 1",
      .group_map = std::to_string(kNobody) + " " + std::to_string(getegid()) + " 1",
      .tree = own_files ? tree_of(profile) : Tree{},
      .scratch_options = scratch_options(profile),
      .record = cell->record_.get()};
  cell->keeper_ = start_keeper(keeping);
  if (cell->keeper_ < 0) {
    const int error = errno;
    cell->keeper_ = 0;
    return start_error(argv[0], {Step::kFork, error});
  }
  failure_write = OwnedFd();
  StartFailure failure;
  ssize_t got = 0;
  while ((got = read(failure_read.get(), &failure, sizeof failure)) < 0 && errno == EINTR) {
  }
  if (got == sizeof failure) return start_error(argv[0], failure);
  return cell;
}

std::optional<pid_t> Cell::program() const {
  const std::vector<pid_t> children = reaped_ ? std::vector<pid_t>() : children_of(keeper_);
  return children.empty() ? std::nullopt : std::optional(children.front());
}

// Every process of the cell descends from the keeper, which orphans come to. One more than are
// allowed is never looked at, in case the tree changes under us.
std::uint64_t Cell::resident_bytes() const {
  std::uint64_t bytes = 0;
  std::vector<pid_t> found = reaped_ ? std::vector<pid_t>() : children_of(keeper_);
  for (std::size_t i = 0; i < found.size() && i < kProcessesLookedAt; ++i) {
    bytes += resident_of(found[i]);
    for (const pid_t child : children_of(found[i])) found.push_back(child);
  }
  return bytes;
}

const Record& Cell::end() {
  if (keeper_ == 0 || std::exchange(reaped_, true)) return *record_;
  kill(keeper_, SIGTERM);
  while (waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
  }
  return *record_;
}

}  // namespace tandem::sandbox
