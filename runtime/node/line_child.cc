// A child is a fork that becomes the program, with three pipes that one I/O thread serves. stderr
// is a pipe as well, copied to ours as it comes, so that its last lines can be told. A timer
// samples CPU time and memory where they have limits; the kernel keeps the limits on files.
//
// Three points are easy to get wrong. Between fork and exec only calls that are safe in a copy of a
// process with threads are allowed, so everything is allocated before the fork. A fourth pipe
// reports why exec failed: it closes by itself on success. The parent-death signal is bound to the
// thread that forks, so the fork happens on the I/O thread, which outlives every child.
//
// A program in a sandbox is started by that (runtime/sandbox/cell.h). Our child is then its keeper,
// and the program a child of the keeper.
#include "runtime/node/line_child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/node/argument_vector.h"
#include "runtime/node/find_program.h"
#include "runtime/node/last_lines.h"
#include "runtime/node/open_files.h"
#include "runtime/node/pipe.h"
#include "runtime/node/process_usage.h"
#include "runtime/sandbox/cell.h"

namespace tandem::node {
namespace {

namespace asio = boost::asio;

// The pause between samples of usage, where there are limits.
constexpr Duration kSampleEvery = std::chrono::milliseconds(250);
constexpr int kReadsAtTheEnd = 64;  // reads of stderr, 4 KiB each: four times the content of a pipe

struct Pipes3 {  // the pipes of one child
  Pipe input, output, errors;
};

int await(pid_t pid) {  // reaps the process; returns its wait status
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Result<Pipes3> make_pipes() {
  Pipes3 pipes;
  for (Pipe* pipe : {&pipes.input, &pipes.output, &pipes.errors}) {
    Result<Pipe> made = make_pipe();
    if (!made) return made.error();
    *pipe = std::move(*made);
  }
  return pipes;
}

void make_standard(int fd, int number) {
  if (fd == number)
    fcntl(fd, F_SETFD, 0);
  else
    dup2(fd, number);
}

// Everything that a child needs to become the program. It is made before the fork, because the
// child must not allocate.
struct Becoming {
  char* const* argv;
  char** environment;
  int input, output, errors;  // the child's ends of the pipes
  int failure;                // the pipe for the errno of a start that failed
  std::optional<rlimit> open_files, file_bytes;
  pid_t parent;
};

[[noreturn]] void give_up(const Becoming& what) {
  const int error = errno;
  [[maybe_unused]] const auto told = write(what.failure, &error, sizeof error);
  _exit(127);
}

// Runs in the child after fork. With glibc, all calls here are safe in a copy of a process with
// threads. Every descriptor but the three standard ones closes itself on exec. The child is killed
// when `parent` ends; a parent that ended before prctl() is found by getppid().
[[noreturn]] void become(const Becoming& what) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != what.parent) _exit(127);
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  make_standard(what.input, STDIN_FILENO);
  make_standard(what.output, STDOUT_FILENO);
  make_standard(what.errors, STDERR_FILENO);
  // Some libraries open descriptors without the flag. An old kernel leaves those as they are.
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  if (what.open_files && setrlimit(RLIMIT_NOFILE, &*what.open_files) != 0) give_up(what);
  if (what.file_bytes && setrlimit(RLIMIT_FSIZE, &*what.file_bytes) != 0) give_up(what);
  environ = what.environment;  // execvp searches the PATH of this environment
  execvp(what.argv[0], what.argv);
  give_up(what);
}

// The wanted limit, but not above our own hard limit, which only root may raise.
std::optional<rlimit> limit_of(decltype(RLIMIT_NOFILE) resource,
                               const std::optional<std::uint64_t>& wanted) {
  rlimit now{};
  if (!wanted || getrlimit(resource, &now) != 0) return std::nullopt;
  const rlim_t value = std::min<rlim_t>(*wanted, now.rlim_max);
  return rlimit{.rlim_cur = value, .rlim_max = value};
}

bool is_want_of_room(int error) {
  return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

// Must be called on a thread that outlives the child, because the kernel takes the end of that
// thread for the parent's end. Uses fork rather than posix_spawn, since only a child that runs our
// code first can ask to be killed with us; the copy is cheap because the scoring process is small.
Result<pid_t> spawn_process(const ChildProgram& program, const Pipes3& pipes) {
  Result<Pipe> failure = make_pipe();
  if (!failure) return failure.error();
  std::vector<std::string> argv = program.argv;
  std::vector<std::string> environment = child_environment(environ, program.env);
  const std::vector<char*> arguments = node::argument_vector(argv);
  std::vector<char*> variables = node::argument_vector(environment);
  const Becoming what{.argv = arguments.data(),
                      .environment = variables.data(),
                      .input = pipes.input.read.get(),
                      .output = pipes.output.write.get(),
                      .errors = pipes.errors.write.get(),
                      .failure = failure->write.get(),
                      .open_files = program.limits.open_files
                                        ? limit_of(RLIMIT_NOFILE, program.limits.open_files)
                                        : open_files_of_programs(),
                      .file_bytes = limit_of(RLIMIT_FSIZE, program.limits.file_bytes),
                      .parent = getpid()};
  const pid_t pid = fork();
  if (pid == 0) become(what);
  int error = pid < 0 ? errno : 0;
  // The read below ends when the child's copy closes: without a byte by exec, or with an errno.
  failure->write = OwnedFd();
  while (pid > 0 && read(failure->read.get(), &error, sizeof error) < 0 && errno == EINTR) {
  }
  if (error == 0) return pid;
  if (pid > 0) await(pid);
  return Error{is_want_of_room(error) ? ErrorCode::kOutOfMemory : ErrorCode::kFailed,
               "cannot start " + argv[0] + ": " + errno_text(error), "reward.command"};
}

// Kills a child of ours, and what it has started. Each is stopped first, so that none starts
// others while they are looked for.
void end_family(pid_t child) {
  constexpr int kLooksMax = 8;
  std::vector<pid_t> family;
  for (int look = 0; look < kLooksMax; ++look) {
    const std::size_t known = family.size();
    family = family_of(child);
    for (const pid_t pid : family) kill(pid, SIGSTOP);
    if (family.size() == known) break;
  }
  for (const pid_t pid : family) kill(pid, SIGKILL);
}

// A started program, as it is, or in a cell.
class Process {
 public:
  explicit Process(pid_t pid) : pid_(pid) {}
  explicit Process(std::unique_ptr<sandbox::Cell> cell)
      : pid_(cell->keeper()), cell_(std::move(cell)) {}

  pid_t pid() const { return pid_; }
  std::optional<ChildUsage> usage() const {
    const std::optional<pid_t> program = cell_ ? cell_->program() : pid_;
    auto usage = program ? usage_of(*program) : std::nullopt;
    // Processes that a sandboxed program has started are all known.
    if (usage && cell_ && !cell_->counts_memory())
      usage->resident_bytes = std::max(usage->resident_bytes, cell_->resident_bytes());
    return usage;
  }
  // Kills and reaps it; returns its wait status, 0 if it was reaped before. One that was exiting by
  // itself keeps its own status, because the signal comes too late.
  int end() {
    if (ended_) return 0;
    ended_ = true;
    if (cell_) {
      const sandbox::Record record = cell_->end();
      cell_.reset();
      return record.ended ? record.status : SIGKILL;
    }
    end_family(pid_);
    return await(pid_);
  }

 private:
  pid_t pid_;
  std::unique_ptr<sandbox::Cell> cell_;  // null: there is no sandbox, or it has ended
  bool ended_ = false;
};

Result<Process> spawn_sandboxed(const ChildProgram& program, const Pipes3& pipes) {
  sandbox::Command command{.argv = program.argv,
                           .environment = child_environment(environ, program.env),
                           .input = pipes.input.read.get(),
                           .output = pipes.output.write.get(),
                           .errors = pipes.errors.write.get()};
  const auto path = program.env.find("PATH");
  const auto found = find_program(
      command.argv[0], path == program.env.end() ? getenv("PATH") : path->second.c_str());
  if (!found)
    return Error{ErrorCode::kFailed, "cannot start " + command.argv[0] + ": " + errno_text(ENOENT),
                 "reward.command"};
  command.argv[0] = *found;
  auto cell = sandbox::Cell::start(program.sandbox->plan, program.sandbox->profile, command);
  if (!cell) return cell.error();
  return Process(*std::move(cell));
}

Result<Process> spawn(const ChildProgram& program, const Pipes3& pipes) {
  if (program.sandbox) return spawn_sandboxed(program, pipes);
  const Result<pid_t> pid = spawn_process(program, pipes);
  if (!pid) return pid.error();
  return Process(*pid);
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status))
    return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")" +
           (WTERMSIG(status) == SIGXFSZ ? ", by reward.limits.file_size_megabytes" : "");
  return "exited with code " + std::to_string(WEXITSTATUS(status));
}

// The pipes of one child. All members run on the loop's thread; pending operations keep the object
// alive.
class Pipes : public std::enable_shared_from_this<Pipes> {
 public:
  Pipes(asio::io_context& loop, Process process, Pipes3 pipes, const ChildLimits& limits,
        LineChildEvents events)
      : input_(loop, pipes.input.write.release()),
        output_(loop, pipes.output.read.release()),
        errors_(loop, pipes.errors.read.release()),
        sample_(loop),
        process_(std::move(process)),
        watch_(limits),
        events_(std::move(events)) {
    input_.non_blocking(true);
    errors_.non_blocking(true);
  }
  ~Pipes() { process_.end(); }

  void start() {
    // A write to a child that is gone must be an error here, not the end of our process.
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
    read();
    read_errors();
    if (watch_.wanted()) sample_later();
  }

  void write(std::string line) {
    if (ended_) return;
    watch_.line_passed();
    lines_.push_back(std::move(line));
    if (lines_.size() == 1) write_first();
  }

  std::vector<std::string> stderr_tail() {
    drain_errors();
    return last_lines_.lines();
  }

  void kill_and_close() {
    ended_ = true;
    events_ = {};
    boost::system::error_code ignored;  // closing a pipe whose other end is gone
    input_.close(ignored);
    output_.close(ignored);
    process_.end();
    drain_errors();
    errors_.close(ignored);
    sample_.cancel();
  }

 private:
  void read() {
    output_.async_read_some(asio::buffer(chunk_),
                            [self = shared_from_this()](auto error, std::size_t bytes) {
                              if (error == asio::error::operation_aborted) return;
                              if (error) return self->end({});
                              self->take(std::string_view(self->chunk_.data(), bytes));
                            });
  }

  void read_errors() {
    errors_.async_read_some(asio::buffer(errors_chunk_),
                            [self = shared_from_this()](auto error, std::size_t bytes) {
                              if (error) return;
                              self->take_errors({self->errors_chunk_.data(), bytes});
                              self->read_errors();
                            });
  }

  // Reads the output that the loop has not read yet. The number of reads is bounded, because the
  // child's own children may keep the pipe open and write without end.
  void drain_errors() {
    for (int n = 0; n < kReadsAtTheEnd && errors_.is_open(); ++n) {
      std::array<char, 4096> bytes;
      const ssize_t got = ::read(errors_.native_handle(), bytes.data(), bytes.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return;
      take_errors({bytes.data(), static_cast<std::size_t>(got)});
    }
  }

  void take_errors(std::string_view bytes) {
    last_lines_.add(bytes);
    while (!bytes.empty()) {  // into the log; where that is full, the lines are lost
      const ssize_t wrote = ::write(STDERR_FILENO, bytes.data(), bytes.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
  }

  void sample_later() {
    sample_.expires_after(kSampleEvery);
    sample_.async_wait([self = shared_from_this()](auto error) {
      if (error || self->ended_) return;
      const auto usage = self->process_.usage();
      if (const auto why = usage ? self->watch_.judge(*usage) : std::nullopt)
        return self->end("was ended: it " + *why);
      self->sample_later();
    });
  }

  // Writes one line at a time, each after the one before. An error means that the child has closed
  // its input: the child then ends by itself or is found by the items' timeouts, and its last lines
  // may still come.
  void write_first() {
    asio::async_write(input_, asio::buffer(lines_.front()),
                      [self = shared_from_this()](auto error, std::size_t) {
                        if (error) return;
                        self->lines_.pop_front();
                        if (!self->lines_.empty()) self->write_first();
                      });
  }

  void take(std::string_view bytes) {
    if (ended_) return;  // the child was given up while this read was under way
    text_ += bytes;
    std::size_t begin = 0;
    for (std::size_t end; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      watch_.line_passed();
      events_.line(text_.substr(begin, end - begin));
    }
    text_.erase(0, begin);
    if (text_.size() > kChildLineBytesMax)
      return end("wrote a line of more than " + std::to_string(kChildLineBytesMax) + " bytes");
    read();
  }

  void end(std::string why) {
    if (ended_) return;
    // The end of the program's output ends its use, so one that still runs then is killed. Here,
    // since kill_and_close() would lose the status.
    const int status = process_.end();
    const auto told = std::move(events_.ended);
    kill_and_close();
    const bool by_itself = why.empty();
    told({.why = by_itself ? describe_status(status) : std::move(why),
          .clean = by_itself && WIFEXITED(status) && WEXITSTATUS(status) == 0});
  }

  asio::posix::stream_descriptor input_;            // we write
  asio::posix::stream_descriptor output_, errors_;  // we read
  asio::steady_timer sample_;
  Process process_;
  UsageWatch watch_;
  LineChildEvents events_;
  bool ended_ = false;
  std::array<char, 65536> chunk_;
  std::array<char, 4096> errors_chunk_;
  std::string text_;  // an unfinished line
  LastLines last_lines_;
  std::deque<std::string> lines_;
};

class ProcessChild final : public LineChild {
 public:
  ProcessChild(link::IoThread& io, pid_t pid, std::shared_ptr<Pipes> pipes)
      : io_(io), pid_(pid), pipes_(std::move(pipes)) {}
  ~ProcessChild() override {
    io_.run([this] { pipes_->kill_and_close(); });
  }
  void write_line(std::string line) override {
    line += '\n';
    io_.post([pipes = pipes_, line = std::move(line)]() mutable { pipes->write(std::move(line)); });
  }
  std::int64_t pid() const override { return pid_; }
  std::vector<std::string> stderr_tail() override {
    std::vector<std::string> lines;
    io_.run([&] { lines = pipes_->stderr_tail(); });
    return lines;
  }

 private:
  link::IoThread& io_;
  const pid_t pid_;
  const std::shared_ptr<Pipes> pipes_;
};

}  // namespace

LineChildSpawner process_spawner(link::IoThread& io) {
  return [&io](const ChildProgram& program,
               LineChildEvents events) -> Result<std::unique_ptr<LineChild>> {
    Result<Pipes3> pipes = make_pipes();
    if (!pipes) return pipes.error();
    Result<Process> process = Error{};
    io.run([&] { process = spawn(program, *pipes); });
    if (!process) return process.error();
    const pid_t pid = process->pid();
    for (OwnedFd* its_end : {&pipes->input.read, &pipes->output.write, &pipes->errors.write})
      *its_end = OwnedFd();
    auto served = std::make_shared<Pipes>(io.loop(), *std::move(process), std::move(*pipes),
                                          program.limits, std::move(events));
    io.post([served] { served->start(); });
    return std::unique_ptr<LineChild>(std::make_unique<ProcessChild>(io, pid, std::move(served)));
  };
}

}  // namespace tandem::node
