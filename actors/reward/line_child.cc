#include "actors/reward/line_child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <deque>

#include "runtime/base/file.h"

extern char** environ;

namespace tandem::actors {
namespace {

namespace asio = boost::asio;

struct Pipe {
  OwnedFd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error{ErrorCode::kFailed, "cannot make a pipe: " + errno_text(errno)};
  return Pipe{OwnedFd(ends[0]), OwnedFd(ends[1])};
}

// stdin and stdout are the pipes; stderr is ours; every other descriptor closes itself on exec.
Result<pid_t> spawn_process(const std::vector<std::string>& argv, int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return Error{ErrorCode::kFailed, "cannot start " + argv[0] + ": " + errno_text(error),
                 "reward.command"};
  return pid;
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
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return describe_status(status);
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
    const Result<pid_t> pid = spawn_process(argv, input->read.get(), output->write.get());
    if (!pid) return pid.error();
    auto pipes = std::make_shared<Pipes>(io.loop(), *pid, std::move(input->write),
                                         std::move(output->read), std::move(events));
    io.post([pipes] { pipes->start(); });
    return std::unique_ptr<LineChild>(std::make_unique<ProcessChild>(io, std::move(pipes)));
  };
}

}  // namespace tandem::actors
