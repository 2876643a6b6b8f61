// Daemons: processes that outlive the process that starts them. This header starts a daemon, hears
// from it that it is ready, and waits for the end of a process that is not a child.
//
// A daemon reports by words. A word is one byte on a socket that the daemon inherits, so that its
// starter waits without polling a file, and hears a daemon that ends early as the end of the
// socket. The meaning of a word is agreed between the two. Rank processes are no daemons: they end
// with their host (process_host.h).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace tandem::node {

struct DaemonSpec {
  std::string name;               // for errors: "the controller"
  std::filesystem::path program;  // not looked up in PATH
  std::vector<std::string> argv;  // argv[0] is the name that ps shows
  // stdout and stderr are appended; its directory must exist. The daemon finds it in kLogVariable,
  // and keeps it within its limits (log_rotation.h). Empty: both go where stderr of this process
  // goes.
  std::filesystem::path log;
};
struct Daemon {
  pid_t pid = 0;
  OwnedFd words;  // the starter's end of the socket
};

// Starts a daemon in a session of its own, so that no terminal's signals reach it; its stdin is
// /dev/null. An error where the program or the log cannot be opened; then no process is left.
Result<Daemon> spawn_daemon(DaemonSpec spec);

// Starts a daemon that is a copy of this process and does `work`, which has all that this process
// has in memory. Its output goes where stderr of this process goes, and of the open files it keeps
// those three. This process must have one thread. Does not return in the daemon, which exits with
// what `work` returns. `name` is for errors.
Result<Daemon> fork_daemon(const std::string& name, const std::function<int()>& work);
// What ps and pkill take for this process's command line from now on, cut to the length of its own.
// Whoever has kept pointers to main()'s arguments reads it there too.
void show_command_line(std::span<const std::string> words);

enum class Heard { kWord, kEnd, kNothing };

// Waits for the next word of `speaker`: kEnd if `speaker` or `other` ends before it, kNothing if
// the time passes. Words of `other` are not heard.
Heard wait_for_word(const Daemon& speaker, const Daemon& other, Duration timeout);

// Ends a daemon that did not come up, so that its starter leaves no process behind: SIGTERM, and
// SIGKILL if it has not ended after `patience`. Returns when the process has ended; a daemon whose
// socket has ended may still be on its way out.
void end_daemon(const Daemon& daemon, Duration patience);

// Takes the end of a daemon from the kernel, which keeps it for its starter as long as that lives.
// Nothing happens while the daemon runs. Returns how it ended, the first time: the code with which
// it exited, or 128 + the number of the signal that ended it, as a shell does.
std::optional<int> reap(const Daemon& daemon);

// A daemon's end of the socket. In a process that was not started as a daemon it does nothing.
class DaemonWords {
 public:
  // Takes the socket over, and keeps it from this process's own children. Changes the environment:
  // call it before threads and children exist, and once.
  static DaemonWords inherited();
  // Says one word, from any thread. Never blocks or fails, also where no process listens any more.
  void say() const;

 private:
  OwnedFd socket_;
};

// Whether a process `pid` runs on this host and has `argument` among the arguments of its start. A
// pid that a process of another host reported may belong to any process here.
bool runs_here(pid_t pid, std::string_view argument);

// Waits for the end of a process, which need not be a child of this one. The process is looked up
// by its pid once, in the constructor: a later process with the same pid is not mistaken for it.
class ProcessEnd {
 public:
  explicit ProcessEnd(pid_t pid);
  // Whether the process has ended by `deadline`; a zombie has ended.
  bool wait_until(Time deadline) const;
  void signal(int number) const;  // nothing happens where it has ended
  // Can be read once the process has ended; negative where there was no such process.
  int descriptor() const { return pidfd_ ? pidfd_.get() : -1; }

 private:
  OwnedFd pidfd_;  // none: there was no such process
};

// The process that holds this lock (FileLock), opened: its number was looked at again afterwards,
// so it is no later process that has the number of one that has just ended. None where no process
// holds the lock, or where the process cannot be opened.
std::optional<ProcessEnd> process_of_lock(const std::filesystem::path& lock);

}  // namespace tandem::node
