// A GPU on the CPU, for tests: runs the module's own kernel sources, compiled by g++ against
// include/, and keeps CUDA's rules more strictly than a GPU does.
//
// EU-1  A block's threads are fibers that run until they meet: at a barrier, at an exchange
//       within a warp, or at their end. Between meetings they run in a shuffled order, as do the
//       blocks of a grid, so a result that depends on an order that CUDA does not promise comes
//       out wrong.
// EU-2  Threads of a block that wait at different barriers, lanes that wait for one that has
//       ended or waits elsewhere, and a launch outside the limits of the hardware end the process
//       or give CUDA's error. So does taking back what shared memory a kernel may have: other
//       threads launch it too.
// EU-3  Shared memory and fresh device memory hold NaN.
// EU-4  Device memory can be touched by queued work alone: a read or write of it by the host, or of
//       anything beyond a block by a kernel, ends the process. (A block's end is exact to 16
//       bytes.)
// EU-5  Queued work starts by itself, in its stream's order: after some milliseconds, sooner when
//       a thread waits for it or asks about it, and by chance before the call that queues it
//       returns. Work behind an event runs while the host waits for the event, or does not, by
//       chance. So memory that is read or written too early or too late shows.
// EU-6  A stream that records a graph runs nothing. A call that CUDA refuses to the recording
//       thread, and some more, give cudaErrorStreamCaptureUnsupported: to allocate, to free, to
//       wait, to copy host memory that is not pinned, to use events, to launch another graph, to
//       queue a waiting item. A graph that is destroyed before the host has waited for its work,
//       or has asked and learnt that it is over, ends the process, even if the work has run.
// EU-7  A waiting item (cudaLaunchHostFunc, tandem_emulated_enqueue) may block for long: it has a
//       thread of its own. Its stream stands behind it; all other streams go on, and so do all
//       threads that do not wait for that stream.
// EU-8  A waiting item reaches device memory by tandem_emulated_read and tandem_emulated_write
//       alone, and these refuse a range that does not lie in one block.
// EU-9  There are $TANDEM_EMULATED_GPUS devices (one, if the variable is not set); a process sees
//       those that CUDA_VISIBLE_DEVICES names. Each device has its own memory, bus id and uuid; a
//       kernel runs on the device of its stream.
// EU-10  A process may fork or exit at any time. A child of fork() finds no item half done; its
//       work runs only when it waits for it or asks about it. An exiting process starts no work by
//       itself, and does not wait for waiting items.
//
// It does not show: races between threads that no order makes visible, weak memory ordering, time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>

namespace tandem::emulator {

// Random numbers, the same each time a process runs.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();

 private:
  std::uint64_t state_;
};

int lane();  // the running thread's lane in its warp
void* dynamic_shared();

void barrier(const std::source_location& where);

// Waits for the lanes, which all bring a value and name the lane whose value they take.
std::uint64_t exchange(unsigned lanes, std::uint64_t value, int from,
                       const std::source_location& where);
unsigned ballot(unsigned lanes, bool predicate, const std::source_location& where);

// Waits for the whole warp; the last lane to come acts on the values of all, in the lanes' order.
void together(void* own, void (*act)(void* const* lanes), const std::source_location& where);

// The running thread's copies into shared memory (from null: of zeros), in groups. A copy is done
// no sooner than it is waited for; until then its target holds NaN.
void copy_async(void* to, const void* from, std::size_t bytes);
void commit_copies();
void wait_copies(std::size_t groups_left);

// Runs `thread` once per thread of the block that threadIdx and blockIdx then name.
void run_grid(std::size_t shared_bytes, const std::function<void()>& thread);

// Ends the process with the message and the running thread.
[[noreturn]] void broken(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace tandem::emulator

// Functions that a stand-in for another library of NVIDIA's finds in the module by these names. All
// give 0 where they succeed.
extern "C" {
#pragma GCC visibility push(default)
// tandem_emulated_read and _write copy between device memory, which must lie in one block, and the
// host's. The device's side may be the host's memory as well.
int tandem_emulated_allocate(void** device_memory, std::size_t bytes);
int tandem_emulated_free(void* device_memory);
int tandem_emulated_read(const void* device_memory, void* host, std::size_t bytes);
int tandem_emulated_write(void* device_memory, const void* host, std::size_t bytes);
// Work that may block for long, in the order of the stream, which is a cudaStream_t (EU-7).
int tandem_emulated_enqueue(void* stream, void (*work)(void*), void* argument);
#pragma GCC visibility pop
}
