#include "actors/reward/line_child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/node/argument_vector.h"

namespace tandem::actors {
namespace {

namespace asio = boost::asio;

struct Pipe {
  OwnedFd read, write;
};

int await(pid_t pid) {  // its status
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error{ErrorCode::kFailed, "cannot make a pipe: " + errno_text(errno)};
  return Pipe{OwnedFd(ends[0]), OwnedFd(ends[1])};
}

void make_standard(int fd, int number) {
  if (fd == number)
    fcntl(fd, F_SETFD, 0);
  else
    dup2(fd, number);
}

// The child after fork: all it calls is safe, with glibc, in a copy of a process with threads.
// stdin and stdout are the pipes; stderr is ours; every other descriptor closes itself on exec. It
// dies with `parent`, whatever it is doing then. Why it could not become the program goes into
// `failure`.
[[noreturn]] void become(char* const* argv, int input, int output, int failure, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  make_standard(input, STDIN_FILENO);
  make_standard(output, STDOUT_FILENO);
  execvp(argv[0], argv);
  const int error = errno;
  [[maybe_unused]] const auto told = write(failure, &error, sizeof error);
  _exit(127);
}

// To be called on a thread that outlives the child: the kernel takes its end for ours. fork and not
// posix_spawn, for only a child that runs our code first can ask to die with us; who scores is
// small.
Result<pid_t> spawn_process(std::vector<std::string> argv, int input, int output) {
  Result<Pipe> failure = make_pipe();
  if (!failure) return failure.error();
  const std::vector<char*> arguments = runtime::argument_vector(argv);
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) become(arguments.data(), input, output, failure->write.get(), parent);
  int error = pid < 0 ? errno : 0;
  failure->write = OwnedFd();
  while (pid > 0 && read(failure->read.get(), &error, sizeof error) < 0 && errno == EINTR) {
  }
  if (error == 0) return pid;
  if (pid > 0) await(pid);
  return Error{ErrorCode::kFailed, "cannot start " + argv[0] + ": " + errno_text(error),
               "reward.command"};
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status))
    return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  return "exited with code " + std::to_string(WEXITSTATUS(status));
}

// Lives on the loop's thread, kept alive by its pending operations.
class Pipes : public std::enable_shared_from_this<Pipes> {
 public:
  Pipes(asio::io_context& loop, pid_t pid, OwnedFd input, OwnedFd output, LineChildEvents events)
      : input_(loop, input.release()),
        output_(loop, output.release()),
        pid_(pid),
        events_(std::move(events)) {
    input_.non_blocking(true);
  }
  ~Pipes() { reap(); }

  void start() {
    // A write to a child that is gone must be an error here, not the end of our process.
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
    read();
  }

  void write(std::string line) {
    if (ended_) return;
    lines_.push_back(std::move(line));
    if (lines_.size() == 1) write_first();
  }

  void kill_and_close() {
    ended_ = true;
    events_ = {};
    boost::system::error_code ignored;  // closing a pipe whose other end is gone
    input_.close(ignored);
    output_.close(ignored);
    reap();
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

  // A child that closed its input ends by itself, or is found out by timeouts; its last lines may
  // still come.
  void write_first() {
    asio::async_write(input_, asio::buffer(lines_.front()),
                      [self = shared_from_this()](auto error, std::size_t) {
                        if (error) return;
                        self->lines_.pop_front();
                        if (!self->lines_.empty()) self->write_first();
                      });
  }

  void take(std::string_view bytes) {
    text_ += bytes;
    std::size_t begin = 0;
    for (std::size_t end; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1)
      events_.line(text_.substr(begin, end - begin));
    text_.erase(0, begin);
    if (text_.size() > kChildLineBytesMax)
      return end("wrote a line of more than " + std::to_string(kChildLineBytesMax) + " bytes");
    read();
  }

  void end(std::string why) {
    if (ended_) return;
    const std::string status = reap();
    const auto told = std::move(events_.ended);
    kill_and_close();
    told(why.empty() ? status : why);
  }

  // The end of its output is the end of a child's use: whatever is left of it is killed.
  std::string reap() {
    if (pid_ == 0) return {};
    // One that closed its output by exiting keeps its own status: the signal comes too late.
    kill(pid_, SIGKILL);
    return describe_status(await(std::exchange(pid_, 0)));
  }

  asio::posix::stream_descriptor input_;   // we write
  asio::posix::stream_descriptor output_;  // we read
  pid_t pid_;
  LineChildEvents events_;
  bool ended_ = false;
  std::array<char, 65536> chunk_;
  std::string text_;  // an unfinished line
  std::deque<std::string> lines_;
};

class ProcessChild final : public LineChild {
 public:
  ProcessChild(runtime::IoThread& io, std::shared_ptr<Pipes> pipes)
      : io_(io), pipes_(std::move(pipes)) {}
  ~ProcessChild() override {
    io_.run([this] { pipes_->kill_and_close(); });
  }
  void write_line(std::string line) override {
    line += '\n';
    io_.post([pipes = pipes_, line = std::move(line)]() mutable { pipes->write(std::move(line)); });
  }

 private:
  runtime::IoThread& io_;
  const std::shared_ptr<Pipes> pipes_;
};

}  // namespace

LineChildSpawner process_spawner(runtime::IoThread& io) {
  return [&io](const std::vector<std::string>& argv,
               LineChildEvents events) -> Result<std::unique_ptr<LineChild>> {
    Result<Pipe> input = make_pipe();
    if (!input) return input.error();
    Result<Pipe> output = make_pipe();
    if (!output) return output.error();
    Result<pid_t> pid = 0;
    io.run([&] { pid = spawn_process(argv, input->read.get(), output->write.get()); });
    if (!pid) return pid.error();
    auto pipes = std::make_shared<Pipes>(io.loop(), *pid, std::move(input->write),
                                         std::move(output->read), std::move(events));
    io.post([pipes] { pipes->start(); });
    return std::unique_ptr<LineChild>(std::make_unique<ProcessChild>(io, std::move(pipes)));
  };
}

}  // namespace tandem::actors
