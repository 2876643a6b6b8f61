// A GPU on the CPU, for tests: runs the module's own kernel sources, compiled by g++ against
// include/, and keeps CUDA's rules more strictly than a GPU does.
//
// EM-1  A block's threads are fibers that run until they meet: at a barrier, at an exchange
//       within a warp, or at their end. Between meetings they run in a shuffled order, as do the
//       blocks of a grid, so what depends on an order that CUDA does not promise comes out wrong.
// EM-2  Threads of a block that wait at different barriers, lanes that wait for one that has
//       ended or waits elsewhere, and a launch outside the limits of the hardware end the process
//       or give CUDA's error. So does taking back what shared memory a kernel may have: other
//       threads launch it too.
// EM-3  Shared memory and fresh device memory hold NaN.
// EM-4  Device memory can be touched by queued work alone: a read or write of it by the host, or of
//       anything beyond a block by a kernel, ends the process. (A block's end is exact to 16
//       bytes.)
// EM-5  Work runs when somebody waits for it, in the stream's order: a result that was not waited
//       for is not there. What is queued behind an event runs while the host waits for the event,
//       or does not, by chance: so memory that is read or written too early or too late shows.
// EM-6  A stream that records a graph runs nothing. What CUDA refuses to the recording thread,
//       and a little more, gives cudaErrorStreamCaptureUnsupported: to allocate, to free, to wait,
//       to copy host memory that is not pinned, to use events, to launch another graph. A graph
//       that is destroyed before its work has run ends the process.
//
// It does not show: races between threads that no order makes visible, weak memory ordering, time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>

namespace tandem::emulator {

bool toss();  // of a coin, the same each time a process runs

int lane();  // of the running thread in its warp
void* dynamic_shared();

void barrier(const std::source_location& where);

// Waits for the lanes, which all bring a value and name the lane whose value they take.
std::uint64_t exchange(unsigned lanes, std::uint64_t value, int from,
                       const std::source_location& where);
unsigned ballot(unsigned lanes, bool predicate, const std::source_location& where);

// Waits for the whole warp; the last lane to come acts on what all brought, in the lanes' order.
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
