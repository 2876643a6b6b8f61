// One thread does everything: it spawns (so that parent-death signals last as long as the host),
// waits on the pidfds of all children, and keeps the deadlines after which they are killed. Callers
// put commands into a queue, which is the only state that is shared between threads.
//
// Order makes the invariants hold. A child is removed from the table before it is reaped, and only
// this thread sends signals: so a signal goes to children that are not reaped, whose pids cannot be
// in use again (PH-4). Once a second the thread reads the kernel's counts of memory kills, and
// after them the state of each child, so that a later end can be explained (MK-2, memory_kills.h).
//
// posix_spawn and not fork: fork copies the page tables of a large parent, which takes 36 to 60 ms
// at 2 GiB resident against 0.1 ms.
#include "runtime/node/process_host.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <variant>

#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/node/adopted_process.h"
#include "runtime/node/argument_vector.h"
#include "runtime/node/log_files.h"
#include "runtime/node/log_rotation.h"
#include "runtime/node/open_files.h"

namespace tandem::node {
namespace {

constexpr std::size_t kProcessesMax = 4096;  // the most that one host runs
// The destructor waits so long for the ends of children that it has killed. A process in an
// uninterruptible call of the kernel may take longer; it is logged.
constexpr Duration kReapWait = std::chrono::seconds(5);

// Owns the list of what the child does with its descriptors before it runs the program.
struct SpawnActions {
  SpawnActions() { CHECK(::posix_spawn_file_actions_init(&value) == 0); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&value); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  posix_spawn_file_actions_t value;
};

// A group of the child's own (0: its pid becomes the group's number), no blocked signal, and every
// signal with its default action, whatever this process blocks or ignores.
struct SpawnAttributes {
  SpawnAttributes() {
    CHECK(::posix_spawnattr_init(&value) == 0);
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&value, &none);
    ::posix_spawnattr_setsigdefault(&value, &all);
    ::posix_spawnattr_setpgroup(&value, 0);
    ::posix_spawnattr_setflags(
        &value, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&value); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  posix_spawnattr_t value;
};

// Our environment with the additions in place of variables of the same name.
std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& additions) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  for (const auto& [key, value] : additions) variables[key] = value;
  std::vector<std::string> result;
  for (const auto& [key, value] : variables) result.push_back(key + "=" + value);
  return result;
}

Result<OwnedFd> open_log_for_append(const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (path != "/dev/null")  // which whoever wants no log may name
    if (const auto regular = refuse_irregular(path); !regular) return regular.error();
  OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd) return file_error("open log", path);
  if (const std::size_t gone = drop_old_incarnations(path, kIncarnationsKept); gone > 0)
    log::info("event=old_logs_removed count={} newest=\"{}\" kept={}", gone, path.string(),
              kIncarnationsKept);
  return fd;
}

// The reading end of a pipe that holds the secret. The writing end is closed, so that the reader
// finds the end of the secret. One write fills the pipe without a wait (kSecretBytesMax).
Result<OwnedFd> pipe_with(const std::string& secret) {
  CHECK(secret.size() <= kSecretBytesMax);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return file_error("make a pipe", "");
  OwnedFd reading(ends[0]);
  const OwnedFd writing(ends[1]);
  if (::write(ends[1], secret.data(), secret.size()) != static_cast<ssize_t>(secret.size()))
    return file_error("fill a pipe", "");
  return reading;
}

// posix_spawn with the actions in this order: 0 is /dev/null, 1 and 2 are the log, 3 is the
// secret's pipe if there is one, and everything above is closed. An error of the program or of an
// action is an error of the call.
Result<pid_t> start(SpawnSpec& spec) {
  Result<OwnedFd> log = open_log_for_append(spec.log_path);
  if (!log) return log.error();
  SpawnActions actions;
  const int log_fd = log->get();
  int failure = ::posix_spawn_file_actions_addopen(&actions.value, 0, "/dev/null", O_RDONLY, 0);
  if (failure == 0) failure = ::posix_spawn_file_actions_adddup2(&actions.value, log_fd, 1);
  if (failure == 0) failure = ::posix_spawn_file_actions_adddup2(&actions.value, 1, 2);
  OwnedFd secret;
  if (!spec.secret.empty()) {
    auto pipe = pipe_with(spec.secret);
    if (!pipe) return pipe.error();
    secret = std::move(*pipe);
    if (failure == 0)
      failure = ::posix_spawn_file_actions_adddup2(&actions.value, secret.get(), kSecretFd);
  }
  const int first_closed = secret ? kSecretFd + 1 : kSecretFd;
  if (failure == 0)
    failure = ::posix_spawn_file_actions_addclosefrom_np(&actions.value, first_closed);
  if (failure == 0 && !spec.working_directory.empty()) {
    failure =
        ::posix_spawn_file_actions_addchdir_np(&actions.value, spec.working_directory.c_str());
  }
  const SpawnAttributes attributes;
  spec.environment.push_back(log_setting(spec.log_path));
  std::vector<std::string> environment = environment_with(spec.environment);
  std::vector<char*> arguments = argument_vector(spec.argv);
  std::vector<char*> variables = argument_vector(environment);
  pid_t pid = 0;
  if (failure == 0) {
    failure = ::posix_spawnp(&pid, arguments[0], &actions.value, &attributes.value,
                             arguments.data(), variables.data());
  }
  if (failure != 0) {
    return Error{.message = "cannot start " + spec.name + ": " + errno_text(failure),
                 .where = spec.argv[0],
                 .help = {}};
  }
  if (spec.users_program) restore_open_files(pid);
  return pid;
}

Duration duration_of(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

ExitStatus exit_status(int status, const rusage& usage) {
  ExitStatus result;
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
    result.core_dumped = WCOREDUMP(status);
  }
  result.user_time = duration_of(usage.ru_utime);
  result.system_time = duration_of(usage.ru_stime);
  result.memory_peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;  // from KiB
  return result;
}

ExitStatus end_of_adopted(const OwnedFd& pidfd) {
  const std::optional<int> status = status_of_adopted(pidfd);
  return status ? exit_status(*status, {}) : ExitStatus{};
}

}  // namespace

// The thread with its children. The public members are called by other threads, all others by the
// thread alone.
class PosixProcessHost::Loop {
 public:
  explicit Loop(const MemoryKillSources& memory_kills);
  ~Loop();

  Result<SpawnedProcess> spawn(SpawnSpec spec, ExitHandler on_exit);
  Result<SpawnedProcess> adopt(pid_t pid, const ProcessBirth& born, ExitHandler on_exit);

  struct Adopt {
    pid_t pid;
    ProcessBirth born;
    ExitHandler on_exit;
    std::promise<Result<SpawnedProcess>> result;
  };
  struct Spawn {
    SpawnSpec spec;
    ExitHandler on_exit;
    std::promise<Result<SpawnedProcess>> result;
  };
  struct Signal {
    ProcessId process;
    int number;
  };
  struct Stop {
    ProcessId process;
    Time kill_at;
  };
  struct Close {};
  using Command = std::variant<Spawn, Adopt, Signal, Stop, Close>;
  void post(Command command);

 private:
  struct Child {
    pid_t pid;
    OwnedFd pidfd;
    ExitHandler on_exit;
    bool adopted = false;                            // not a child of this process
    std::optional<Time> kill_at;                     // when a stop() turns into a SIGKILL
    bool killed = false;                             // by a SIGKILL of this host
    std::optional<std::uint64_t> memory_bytes = {};  // resident, at the last look
    Time lived_on = steady_now();  // the last look at which it had memory and no pending SIGKILL
  };

  static void send(Child& child, int signal_number);  // to the whole group
  void run();                                         // the thread's function
  void handle(Spawn& command);
  void handle(Adopt& command);
  void handle(Signal& command);
  void handle(Stop& command);
  void handle(Close& command);
  Result<SpawnedProcess> spawn_child(Spawn& command);
  bool watch(const OwnedFd& pidfd, ProcessId process);
  void run_commands();
  void kill_the_overdue();
  void look_at_memory();
  int wait_ms() const;  // until the next deadline, for epoll_wait; -1: there is none
  static ExitStatus reap_child(pid_t pid);
  void reap(ProcessId process);

  OwnedFd epoll_;
  OwnedFd wake_;  // an eventfd; its epoll key is 0, which is no ProcessId

  std::mutex mutex_;
  std::vector<Command> commands_;  // guarded by mutex_

  // Used by the thread alone.
  std::map<ProcessId, Child> children_;
  std::uint64_t last_id_ = 0;
  std::optional<Time> closing_until_;  // set by Close: children are reaped without on_exit
  const MemoryKillSources memory_kill_sources_;
  MemoryKillWatch memory_kills_;
  Time look_at_ = steady_now();  // when the children's memory is looked at next, if there are any

  std::thread thread_;  // last: it uses all of the above
};

PosixProcessHost::Loop::Loop(const MemoryKillSources& memory_kills)
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      memory_kill_sources_(memory_kills),
      memory_kills_(read_memory_kills(memory_kills)) {
  CHECK(epoll_ && wake_);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
  CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) == 0);
  thread_ = std::thread([this] { run(); });
}

PosixProcessHost::Loop::~Loop() {
  post(Close{});
  thread_.join();
}

void PosixProcessHost::Loop::post(Command command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  // The eventfd counts: a write before the thread waits wakes it as well.
  const std::uint64_t one = 1;
  CHECK(::write(wake_.get(), &one, sizeof one) == sizeof one);
}

Result<SpawnedProcess> PosixProcessHost::Loop::spawn(SpawnSpec spec, ExitHandler on_exit) {
  CHECK(std::this_thread::get_id() != thread_.get_id());  // an exit handler would wait for itself
  CHECK(!spec.argv.empty());
  std::promise<Result<SpawnedProcess>> result;
  std::future<Result<SpawnedProcess>> answer = result.get_future();
  post(Spawn{.spec = std::move(spec), .on_exit = std::move(on_exit), .result = std::move(result)});
  return answer.get();
}

Result<SpawnedProcess> PosixProcessHost::Loop::adopt(pid_t pid, const ProcessBirth& born,
                                                     ExitHandler on_exit) {
  std::promise<Result<SpawnedProcess>> result;
  std::future<Result<SpawnedProcess>> answer = result.get_future();
  post(Adopt{.pid = pid, .born = born, .on_exit = std::move(on_exit), .result = std::move(result)});
  return answer.get();
}

void PosixProcessHost::Loop::run() {
  std::array<epoll_event, 64> events;
  while (!closing_until_ || (!children_.empty() && steady_now() < *closing_until_)) {
    const int ready =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms());
    CHECK(ready >= 0 || errno == EINTR);
    // Ends are handled before commands: a command for a child that has ended finds no child.
    for (int i = 0; i < ready; ++i) {
      const ProcessId process{events[static_cast<std::size_t>(i)].data.u64};
      if (process != ProcessId{}) reap(process);
    }
    run_commands();
    kill_the_overdue();
    look_at_memory();
  }
  for (const auto& [id, child] : children_) {
    log::error("event=process_not_reaped pid={} reason=\"still there after SIGKILL\"", child.pid);
  }
}

void PosixProcessHost::Loop::run_commands() {
  std::uint64_t wakes = 0;
  if (::read(wake_.get(), &wakes, sizeof wakes) < 0) CHECK(errno == EAGAIN || errno == EINTR);
  // The wake is read first: a command that is posted after the swap wakes the thread again.
  std::vector<Command> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (Command& command : commands) {
    std::visit([this](auto& it) { handle(it); }, command);
  }
}

void PosixProcessHost::Loop::handle(Spawn& command) {
  command.result.set_value(spawn_child(command));
}

Result<SpawnedProcess> PosixProcessHost::Loop::spawn_child(Spawn& command) {
  const std::string name = command.spec.name;
  if (children_.size() >= kProcessesMax) {
    return Error{.code = ErrorCode::kInfeasible,
                 .message = "cannot start " + name + ": " + std::to_string(kProcessesMax) +
                            " processes are running already",
                 .where = {},
                 .help = {}};
  }
  const Result<pid_t> pid = start(command.spec);
  if (!pid) return pid.error();
  // Nothing but reap(), on this thread, waits for children: even a process that has ended by this
  // moment is a zombie, and its pid cannot belong to another.
  OwnedFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  const ProcessId id{++last_id_};
  if (!watch(pidfd, id)) {
    // A process that cannot be watched must not run.
    Error error = file_error("watch process " + std::to_string(*pid), name);
    ::kill(-*pid, SIGKILL);
    ::waitpid(*pid, nullptr, 0);
    return error;
  }
  children_.emplace(id, Child{.pid = *pid,
                              .pidfd = std::move(pidfd),
                              .on_exit = std::move(command.on_exit),
                              .kill_at = std::nullopt});
  return SpawnedProcess{.id = id, .pid = *pid};
}

bool PosixProcessHost::Loop::watch(const OwnedFd& pidfd, ProcessId process) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = process.value}};
  return pidfd && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd.get(), &event) == 0;
}

void PosixProcessHost::Loop::handle(Adopt& command) {
  auto pidfd = open_process(command.pid, command.born);
  if (!pidfd) return command.result.set_value(pidfd.error());
  const ProcessId id{++last_id_};
  if (!watch(*pidfd, id))
    return command.result.set_value(file_error("watch process " + std::to_string(command.pid), ""));
  children_.emplace(id, Child{.pid = command.pid,
                              .pidfd = *std::move(pidfd),
                              .on_exit = std::move(command.on_exit),
                              .adopted = true,
                              .kill_at = std::nullopt});
  command.result.set_value(SpawnedProcess{.id = id, .pid = command.pid});
}

void PosixProcessHost::Loop::handle(Signal& command) {
  const auto child = children_.find(command.process);
  if (child != children_.end()) send(child->second, command.number);
}

void PosixProcessHost::Loop::handle(Stop& command) {
  const auto found = children_.find(command.process);
  if (found == children_.end()) return;
  Child& child = found->second;
  send(child, SIGTERM);
  child.kill_at = child.kill_at ? std::min(*child.kill_at, command.kill_at) : command.kill_at;
}

void PosixProcessHost::Loop::handle(Close&) {
  closing_until_ = steady_now() + kReapWait;
  for (auto& [id, child] : children_) send(child, SIGKILL);
}

void PosixProcessHost::Loop::kill_the_overdue() {
  const Time now = steady_now();
  for (auto& [id, child] : children_) {
    if (!child.kill_at || *child.kill_at > now) continue;
    send(child, SIGKILL);
    child.kill_at.reset();
  }
}

void PosixProcessHost::Loop::send(Child& child, int signal_number) {
  // Remembered, so that reap() does not take a SIGKILL of ours for one of the kernel's.
  child.killed = child.killed || signal_number == SIGKILL;
  if (child.adopted)
    signal_adopted_group(child.pid, signal_number);
  else
    ::kill(-child.pid, signal_number);
}

void PosixProcessHost::Loop::look_at_memory() {
  const Time now = steady_now();
  if (children_.empty() || now < look_at_) return;
  look_at_ = now + memory_kill_sources_.look_every;
  // MK-2: the counts are read first and the children after them. A child without a pending SIGKILL
  // is then none of those whose kills have been counted so far.
  memory_kills_.note(read_memory_kills(memory_kill_sources_), now);
  for (auto& [id, child] : children_) {
    const bool may_be_killed = kill_may_be_pending(child.pid);
    const auto bytes = resident_bytes(child.pid);
    if (bytes) child.memory_bytes = bytes;
    if (bytes && !may_be_killed) child.lived_on = now;
  }
}

int PosixProcessHost::Loop::wait_ms() const {
  std::optional<Time> next = closing_until_;
  if (!children_.empty() && (!next || look_at_ < *next)) next = look_at_;
  for (const auto& [id, child] : children_) {
    if (child.kill_at && (!next || *child.kill_at < *next)) next = child.kill_at;
  }
  if (!next) return -1;
  // Rounded up: rounded down, the thread would wake before the deadline and spin until it.
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(*next - steady_now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(rest, 0, INT_MAX));
}

// PH-3, PH-4: until wait4 the leader is a zombie, which keeps the number of its group from being
// used again. send() is not used, since it would make the end look like one of ours.
ExitStatus PosixProcessHost::Loop::reap_child(pid_t pid) {
  ::kill(-pid, SIGKILL);
  int status = 0;
  rusage usage{};
  pid_t reaped = 0;
  do {
    reaped = ::wait4(pid, &status, 0, &usage);
  } while (reaped < 0 && errno == EINTR);
  CHECK(reaped == pid);
  return exit_status(status, usage);
}

void PosixProcessHost::Loop::reap(ProcessId process) {
  const auto found = children_.find(process);
  CHECK(found != children_.end());
  Child child = std::move(found->second);
  children_.erase(found);
  if (child.adopted) signal_adopted_group(child.pid, SIGKILL);
  ExitStatus ended = child.adopted ? end_of_adopted(child.pidfd) : reap_child(child.pid);
  if (closing_until_) return;  // PH-1: the owner of on_exit may be gone
  ended.memory_last_bytes = child.memory_bytes;
  if (ended.signal == SIGKILL && !child.killed) {
    // The last look may be a second old: the kill that ended this child is in the counts by now.
    const Time now = steady_now();
    memory_kills_.note(read_memory_kills(memory_kill_sources_), now);
    ended.memory_kill = memory_kills_.claim(now, child.lived_on);
  }
  child.on_exit(process, ended);
}

PosixProcessHost::PosixProcessHost(const MemoryKillSources& memory_kills)
    : loop_(std::make_unique<Loop>(memory_kills)) {}
PosixProcessHost::~PosixProcessHost() = default;

Result<SpawnedProcess> PosixProcessHost::spawn(SpawnSpec spec, ExitHandler on_exit) {
  return loop_->spawn(std::move(spec), std::move(on_exit));
}

Result<SpawnedProcess> PosixProcessHost::adopt(pid_t pid, const ProcessBirth& born,
                                               ExitHandler on_exit) {
  return loop_->adopt(pid, born, std::move(on_exit));
}

void PosixProcessHost::signal(ProcessId process, int signal_number) {
  loop_->post(Loop::Signal{.process = process, .number = signal_number});
}

void PosixProcessHost::stop(ProcessId process, Duration grace) {
  loop_->post(Loop::Stop{.process = process, .kill_at = steady_now() + grace});
}

Result<void> arm_parent_death_signal(pid_t expected_parent) {
  CHECK(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
  // getppid() is called after prctl: a parent that ended before it sends no signal, and is noticed
  // here.
  if (::getppid() == expected_parent) return {};
  return Error{.message = "the process that started this one, " + std::to_string(expected_parent) +
                          ", has gone",
               .where = {},
               .help = {}};
}

std::string inherited_secret() {
  const OwnedFd fd(kSecretFd);
  std::string secret(kSecretBytesMax, '\0');
  std::size_t filled = 0;
  for (ssize_t got = 1; got > 0 && filled < secret.size();) {
    got = ::read(fd.get(), secret.data() + filled, secret.size() - filled);
    if (got > 0) filled += static_cast<std::size_t>(got);
  }
  secret.resize(filled);
  return secret;
}

std::string describe(const ExitStatus& status) {
  if (status.code) return "exited with code " + std::to_string(*status.code);
  if (!status.signal) return "ended, and how is not known";
  return "killed by signal " + std::to_string(*status.signal) + " (" + ::strsignal(*status.signal) +
         ")" + (status.core_dumped ? " (core dumped)" : "") +
         (status.memory_kill == MemoryKill::kProven ? " for want of memory" : "");
}

}  // namespace tandem::node
