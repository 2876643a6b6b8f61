// One loop over the three pipes and the keeper's end. What a program's processes leave in the pipes
// is read after the end of all of them, when no more can come.
#include "runtime/sandbox/run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>

#include "runtime/base/file.h"
#include "runtime/sandbox/cell.h"

namespace tandem::sandbox {
namespace {

constexpr Duration kLookEvery = std::chrono::milliseconds(100);

struct PipeEnds {
  OwnedFd read, write;
};

Result<PipeEnds> make_ends() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error{ErrorCode::kOutOfMemory, "cannot make a pipe: " + errno_text(errno)};
  return PipeEnds{OwnedFd(ends[0]), OwnedFd(ends[1])};
}

// A write to a program that is gone must be an error here, not the end of our process.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutSigpipe() {
    const timespec no_time{};
    if (!sigismember(&before_, SIGPIPE))
      while (sigtimedwait(&pipe_, nullptr, &no_time) == SIGPIPE) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t pipe_, before_;
};

void no_waiting(const OwnedFd& fd) { fcntl(fd.get(), F_SETFL, O_NONBLOCK); }

// Our side of a run: what is still to be written, and what has come.
class Exchange {
 public:
  Exchange(const Run& run, OwnedFd input, OwnedFd output, OwnedFd errors)
      : run_(run),
        input_(std::move(input)),
        output_{std::move(output), {}},
        errors_{std::move(errors), {}} {
    for (const OwnedFd* fd : {&input_, &output_.fd, &errors_.fd}) no_waiting(*fd);
    if (run.input.empty()) input_ = OwnedFd();
  }

  // Until the program has ended, nullopt, or must be ended. `too_large` is asked ten times a
  // second; empty: never.
  std::optional<RunEnd> watch(int keeper, const std::function<bool()>& too_large) {
    const Time deadline = steady_now() + run_.deadline;
    Time look = steady_now() + kLookEvery;
    for (;;) {
      if (too_large && steady_now() >= look) {
        if (too_large()) return RunEnd::kMemory;
        look = steady_now() + kLookEvery;
      }
      const std::int64_t left_ms = ((deadline - steady_now()).count() + 999'999) / 1'000'000;
      if (left_ms <= 0) return RunEnd::kDeadline;
      std::array<pollfd, 5> all{pollfd{keeper, POLLIN, 0}, pollfd{run_.stop, POLLIN, 0},
                                pollfd{output_.fd.get(), POLLIN, 0},
                                pollfd{errors_.fd.get(), POLLIN, 0},
                                pollfd{input_.get(), POLLOUT, 0}};
      const std::int64_t look_ms = too_large ? kLookEvery / std::chrono::milliseconds(1) : 60'000;
      const int wait_ms = static_cast<int>(std::min(left_ms, look_ms));
      if (poll(all.data(), all.size(), wait_ms) <= 0) continue;
      if (all[1].revents != 0) return RunEnd::kStopped;
      if (all[2].revents != 0 && !take(output_)) return RunEnd::kOutput;
      if (all[3].revents != 0 && !take(errors_)) return RunEnd::kOutput;
      if (all[4].revents != 0) give();
      if (all[0].revents != 0) return std::nullopt;
    }
  }

  // What is left in the pipes; false: it is too much.
  bool take_rest() {
    bool fits = true;
    for (Stream* stream : {&output_, &errors_})
      while (fits && stream->fd && !is_open_elsewhere(stream->fd)) fits = take(*stream);
    return fits;
  }
  // A pipe that is empty and keeps a writer: a process has outlived the sandbox. A process that
  // another thread of ours is starting has copies of all our pipes until it becomes its program.
  bool has_survivor() const {
    constexpr int kStartsWithinMs = 2000;
    return is_open_elsewhere(output_.fd, kStartsWithinMs) ||
           is_open_elsewhere(errors_.fd, kStartsWithinMs);
  }

  std::string output() { return std::move(output_.text); }
  std::string errors() { return std::move(errors_.text); }

 private:
  struct Stream {
    OwnedFd fd;  // none: it has ended
    std::string text;
  };

  static bool is_open_elsewhere(const OwnedFd& fd, int within_ms = 0) {
    pollfd pipe{.fd = fd.get(), .events = POLLIN, .revents = 0};
    return fd && poll(&pipe, 1, within_ms) == 0;
  }

  bool take(Stream& stream) {
    std::array<char, 65536> bytes;
    const ssize_t got = read(stream.fd.get(), bytes.data(), bytes.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (got <= 0) {
      stream.fd = OwnedFd();
      return true;
    }
    const std::size_t room = run_.output_bytes_max - stream.text.size();
    stream.text.append(bytes.data(), std::min(room, static_cast<std::size_t>(got)));
    return static_cast<std::size_t>(got) <= room;
  }

  void give() {
    const ssize_t wrote =
        write(input_.get(), run_.input.data() + given_, run_.input.size() - given_);
    if (wrote < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (wrote > 0) given_ += static_cast<std::size_t>(wrote);
    if (wrote <= 0 || given_ == run_.input.size()) input_ = OwnedFd();
  }

  const Run& run_;
  OwnedFd input_;
  std::size_t given_ = 0;
  Stream output_, errors_;
};

}  // namespace

Result<OwnedFd> executable_of(std::string_view bytes) {
  constexpr unsigned kExecutable = 0x10;  // MFD_EXEC; before Linux 6.3 every such file was one
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int made = memfd_create("program", flags | kExecutable);
  if (made < 0 && errno == EINVAL) made = memfd_create("program", flags);
  OwnedFd file(made);
  for (std::size_t done = 0; file && done < bytes.size();) {
    const ssize_t wrote = write(file.get(), bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return file_error("write the program", "memory");
    done += static_cast<std::size_t>(wrote);
  }
  constexpr int kAll = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  const bool sealed =
      file && fchmod(file.get(), 0555) == 0 && fcntl(file.get(), F_ADD_SEALS, kAll) == 0;
  if (!sealed) return file_error("make the program", "memory");
  return file;
}

Result<Outcome> run(const Plan& plan, const Profile& profile, const Run& what) {
  const WithoutSigpipe guard;
  Result<PipeEnds> input = make_ends(), output = make_ends(), errors = make_ends();
  for (const auto* made : {&input, &output, &errors})
    if (!*made) return made->error();
  const Time start = steady_now();
  const auto cell = Cell::start(plan, profile,
                                {.argv = what.argv,
                                 .environment = what.environment,
                                 .input = input->read.get(),
                                 .output = output->write.get(),
                                 .errors = errors->write.get(),
                                 .executable = what.executable});
  if (!cell) return cell.error();
  for (OwnedFd* theirs : {&input->read, &output->write, &errors->write}) *theirs = OwnedFd();
  const OwnedFd ended(static_cast<int>(syscall(SYS_pidfd_open, (*cell)->keeper(), 0)));
  if (!ended) return Error{ErrorCode::kFailed, "cannot watch a process: " + errno_text(errno)};
  Exchange exchange(what, std::move(input->write), std::move(output->read),
                    std::move(errors->read));
  std::function<bool()> too_large;
  if (profile.memory_bytes && !(*cell)->counts_memory())
    too_large = [&] { return (*cell)->resident_bytes() > *profile.memory_bytes; };
  std::optional<RunEnd> cut = exchange.watch(ended.get(), too_large);
  const Record& record = (*cell)->end();
  if (!exchange.take_rest() && !cut) cut = RunEnd::kOutput;
  if (exchange.has_survivor())
    return Error{ErrorCode::kFailed, "a process of " + what.argv[0] + " outlived its sandbox"};
  Outcome outcome{.output = exchange.output(),
                  .errors = exchange.errors(),
                  .seconds = seconds(steady_now() - start),
                  .cpu_seconds = record.cpu_seconds,
                  .memory_bytes_peak = record.memory_bytes_peak};
  // A keeper that was killed leaves no record: the machine had no memory, or somebody ended it.
  if (!cut && !record.ended) return Error{ErrorCode::kFailed, "the sandbox was ended from outside"};
  const bool signalled = WIFSIGNALED(record.status);
  outcome.end = cut ? *cut : signalled ? RunEnd::kSignal : RunEnd::kExited;
  outcome.code = signalled ? WTERMSIG(record.status) : WEXITSTATUS(record.status);
  return outcome;
}

}  // namespace tandem::sandbox
