// How the ranks of a fake communicator find each other, as NCCL's do: the process that made the
// unique id keeps a place open where each rank presents itself; when all are there it lets them go,
// and each pair connects. Unix sockets in the abstract name space, which leave no file behind.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace fake_nccl {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// Whether `fd` is ready for `events` before `stop` is readable; `timeout_ms` -1: for ever.
enum class Ready { kYes, kStopped, kTimedOut };
Ready wait_until_ready(int fd, short events, int stop, int timeout_ms = -1);

// Opens the place and a thread that keeps it; its name, or "".
std::string open_place();

struct Presence {
  int rank = 0;
  int size = 0;
  char device[64] = {};  // also names the machine: no two ranks may have the same
};

enum class Met { kYes, kStopped, kGone, kSameDevice, kDisagreed };

struct Meeting {
  Met met = Met::kGone;
  int other = -1;         // the rank with the same device
  std::vector<Fd> peers;  // by rank; none for this one
};
Meeting meet(const std::string& place, const Presence& presence, bool devices_may_be_shared,
             int stop);

}  // namespace fake_nccl
