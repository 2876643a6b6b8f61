// posix_spawn, for the reason that process_host.cc gives. The program gets a process group of its
// own, so that a wrapper script and the program within it end together. If our own process is
// killed, the program finds that nobody reads its output and ends at its next write.
//
// stderr is a pipe that is read whenever something is there: a program that writes much of it does
// not block, and its last lines become the error's text.
#include "runtime/node/program_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/node/argument_vector.h"
#include "runtime/node/child_program.h"
#include "runtime/node/open_files.h"
#include "runtime/node/pipe.h"

namespace tandem::node {
namespace {

constexpr int kErrorReadsMax = 64;  // of 4 KiB, each time that stderr is looked at

// The descriptors, the signals and the group with which the program begins.
class SpawnPlan {
 public:
  SpawnPlan(int input, int output, int errors) {
    CHECK(::posix_spawn_file_actions_init(&actions_) == 0);
    CHECK(::posix_spawnattr_init(&attributes_) == 0);
    failure_ = ::posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    for (const auto& [from, to] : {std::pair(output, STDOUT_FILENO), {errors, STDERR_FILENO}})
      if (failure_ == 0) failure_ = ::posix_spawn_file_actions_adddup2(&actions_, from, to);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  // The errno of a start that failed; 0: `pid` runs.
  int spawn(pid_t& pid, char* const* argv, char* const* environment) const {
    return failure_ != 0
               ? failure_
               : ::posix_spawnp(&pid, argv[0], &actions_, &attributes_, argv, environment);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  int failure_ = 0;
};

int poll_milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

}  // namespace

Result<std::unique_ptr<ProgramOutput>> ProgramOutput::start(const OutputProgram& program,
                                                            const OwnedFd& input) {
  auto output = make_pipe();
  if (!output) return output.error();
  auto errors = make_pipe();
  if (!errors) return errors.error();
  std::vector<std::string> argv = program.argv;
  std::vector<std::string> environment = child_environment(environ, program.environment);
  const std::vector<char*> arguments = argument_vector(argv);
  const std::vector<char*> variables = argument_vector(environment);
  const SpawnPlan plan(input.get(), output->write.get(), errors->write.get());
  pid_t pid = 0;
  const int failure = plan.spawn(pid, arguments.data(), variables.data());
  if (failure != 0) {
    const bool room = failure == EAGAIN || failure == ENOMEM;
    return Error{room ? ErrorCode::kOutOfMemory : ErrorCode::kFailed,
                 "cannot start " + argv[0] + ": " + errno_text(failure)};
  }
  restore_open_files(pid);
  ::fcntl(errors->read.get(), F_SETFL, O_NONBLOCK);
  return std::unique_ptr<ProgramOutput>(
      new ProgramOutput(pid, std::filesystem::path(argv[0]).filename(), std::move(output->read),
                        std::move(errors->read), program.silence_max));
}

ProgramOutput::ProgramOutput(pid_t pid, std::string name, OwnedFd output, OwnedFd errors,
                             Duration silence_max)
    : pid_(pid),
      name_(std::move(name)),
      output_(std::move(output)),
      errors_(std::move(errors)),
      silence_max_(silence_max) {}

ProgramOutput::~ProgramOutput() { reap(); }

Result<std::size_t> ProgramOutput::read(std::span<char> out) {
  if (pid_ == 0) return std::size_t{0};  // the end was reached before
  const Time until = steady_now() + silence_max_;
  bool errors_open = true;
  for (;;) {
    // A negative descriptor is skipped: stderr at its end would be ready for ever.
    std::array<pollfd, 2> waited{
        {{.fd = output_.get(), .events = POLLIN, .revents = 0},
         {.fd = errors_open ? errors_.get() : -1, .events = POLLIN, .revents = 0}}};
    const Duration left = until - steady_now();
    if (left <= Duration::zero()) return timed_out();
    const int ready = ::poll(waited.data(), waited.size(), poll_milliseconds(left));
    if (ready < 0 && errno != EINTR)
      return Error{ErrorCode::kFailed, "cannot wait for " + name_ + ": " + errno_text(errno)};
    if (ready <= 0) continue;
    if (waited[1].revents != 0) {
      take_errors();
      errors_open = (waited[1].revents & POLLIN) != 0;
    }
    if (waited[0].revents == 0) continue;
    const ssize_t got = ::read(output_.get(), out.data(), out.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read what " + name_ + " writes", "");
    if (got == 0) return end();
    bytes_read_ += static_cast<std::uint64_t>(got);
    return static_cast<std::size_t>(got);
  }
}

// The output has ended: waits for the program's own end, since only its code says whether the
// output is whole.
Result<std::size_t> ProgramOutput::end() {
  const OwnedFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  const Time until = steady_now() + silence_max_;
  for (;;) {
    pollfd waited{.fd = process.get(), .events = POLLIN, .revents = 0};
    const Duration left = until - steady_now();
    if (left <= Duration::zero()) return timed_out();
    const int ready = ::poll(&waited, 1, poll_milliseconds(left));
    if (ready > 0) break;
    if (ready < 0 && errno != EINTR)
      return Error{ErrorCode::kFailed, "cannot wait for " + name_ + ": " + errno_text(errno)};
  }
  const int status = reap();
  take_errors();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::size_t{0};
  if (WIFSIGNALED(status))
    return Error{ErrorCode::kFailed, name_ + " was killed by signal " +
                                         std::to_string(WTERMSIG(status)) + " (" +
                                         strsignal(WTERMSIG(status)) + ")" + last_words()};
  exit_code_ = WEXITSTATUS(status);
  return Error{ErrorCode::kFailed,
               name_ + " ended with code " + std::to_string(exit_code_) + last_words()};
}

Error ProgramOutput::timed_out() {
  reap();
  take_errors();
  return {ErrorCode::kTimedOut, name_ + " wrote nothing for " +
                                    std::to_string(silence_max_ / std::chrono::seconds(1)) +
                                    " s and was ended" + last_words()};
}

void ProgramOutput::take_errors() {
  for (int n = 0; n < kErrorReadsMax; ++n) {
    std::array<char, 4096> bytes;
    const ssize_t got = ::read(errors_.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    last_lines_.add({bytes.data(), static_cast<std::size_t>(got)});
  }
}

// ": its last lines on stderr"
std::string ProgramOutput::last_words() const {
  std::string words;
  for (const std::string& line : last_lines_.lines())
    words += (words.empty() ? ": " : " / ") + line;
  return words;
}

// Kills what still runs of the group, and returns the program's wait status. A program that has
// ended already keeps its own status.
int ProgramOutput::reap() {
  if (pid_ == 0) return 0;
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  return status;
}

}  // namespace tandem::node
