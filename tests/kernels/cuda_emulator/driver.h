// The emulated driver's state in a process: devices (device.cc), blocks of memory (memory.cc),
// streams with the work queued on them (streams.cc) and graphs (graphs.cc). emulator.h has the
// rules that it keeps.
//
// Not responsible for how a kernel runs: emulator.h is.
//
// One mutex guards all of it and is never held while an item of work runs. The thread that runs
// items has the turn, and there is one turn: so kernels run one at a time, on whatever thread.
// Device memory is open only during a turn, and for the moment of a tandem_emulated_read or _write.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "emulated_host.h"
#include "tests/kernels/cuda_emulator/emulator.h"

namespace tandem::emulator {

using Lock = std::unique_lock<std::mutex>;
using Clock = std::chrono::steady_clock;
using StreamPointer = std::shared_ptr<tandem_emulated_stream>;

// The position behind the first `items` of all items that the stream is ever given; there is none
// without a stream.
struct StreamPosition {
  StreamPointer stream;
  std::uint64_t items = 0;
};

struct Item {
  enum class Kind : std::uint8_t {
    kRuns,   // in a turn, with device memory open
    kWaits,  // on a thread of its own, which may block for as long as it likes
    kJoins,  // does nothing, once another stream has come to a position
  };
  Kind kind = Kind::kRuns;
  std::function<void()> work = {};
  StreamPosition joined = {};
  Clock::time_point due = {};  // when it starts although no thread waits for it
};

// The host learns that `items` of another stream are over when it learns that item `own` is, which
// joined them.
struct Joined {
  std::uint64_t own;
  std::weak_ptr<tandem_emulated_stream> stream;
  std::uint64_t items;
};

struct Block {
  void* mapping = nullptr;
  std::size_t mapping_bytes = 0;
  char* pages = nullptr;
  std::size_t pages_bytes = 0;
  std::size_t bytes = 0;  // as asked for; the slack behind it holds poison
  int device = 0;
  int file = -1;         // the file of its pages, once another process may open it
  bool foreign = false;  // another process's block, opened by its handle
};

struct Driver {
  std::mutex mutex;
  // Pointers, because a child of fork() takes new ones: its parent's threads wait at the old ones.
  std::condition_variable* changed = new std::condition_variable;  // an item ended, or a turn
  std::condition_variable* queued = new std::condition_variable;   // for the progress thread

  std::map<void*, Block> blocks;        // by the address that the caller knows
  std::map<void*, std::size_t> pinned;  // sizes in bytes
  std::map<int, std::size_t> used;      // bytes of each device
  std::unordered_map<const void*, std::size_t> shared_allowed;
  std::atomic<bool> open = false;  // device memory may be touched

  std::map<cudaStream_t, StreamPointer> streams;
  std::vector<StreamPointer> orphans;  // destroyed before their work had run
  Dice dice{0x2545f4914f6cdd1du};      // for calls that queue and wait
  bool taken = false;                  // a thread has the turn
  int wanting = 0;  // threads that wait for it, to whom the progress thread yields

  bool started = false;      // the progress thread, which runs work that is due
  bool asleep = false;       // it waits for work
  bool progressing = false;  // it has the turn
  bool stopped = false;      // the process exits: it starts nothing more
  bool forked = false;       // this is a child of fork(), which has no such thread
};

Driver& driver();

// Waits until no thread has the turn; no thread takes it while the lock is held.
void await_turn(Lock& lock);

// The stream of that handle. The default stream, or one that was destroyed, ends the process.
StreamPointer find(cudaStream_t stream);
// Puts the item behind the stream's others, or into the graph that the stream records.
void queue(Lock& lock, cudaStream_t stream, Item item);
void append(const StreamPointer& stream, Item item);
// Runs the items of the stream at once, or not, by chance. Called after append().
void start_early(Lock& lock, const StreamPointer& stream);
// Whether this thread records a graph. (Not a thread-local: those are kernels' shared memory.)
bool records();

// These are in memory.cc.
void set_open(bool open);         // device memory, all of it
void check_slack();               // behind each block there must still be poison
bool stays(const void* address);  // in device memory, or in pinned memory of the host
int current_device();             // the calling thread's device, as the thread counts devices

}  // namespace tandem::emulator

struct tandem_emulated_stream {
  std::deque<tandem::emulator::Item> work;
  std::uint64_t queued = 0;   // items ever
  std::uint64_t ended = 0;    // items that have ended
  std::uint64_t seen = 0;     // ended items of which the host has learnt by waiting or asking
  std::uint64_t hurried = 0;  // so many are due whatever the time: a thread asked about them
  std::deque<tandem::emulator::Joined> joined;  // not seen yet
  bool runs = false;                            // an item, in the turn
  bool waits = false;                           // an item, on a thread of its own
  int device = 0;
  std::optional<std::vector<tandem::emulator::Item>> recorded;  // while it records a graph
  std::thread::id recorder;
};
