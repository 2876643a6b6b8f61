// A block runs on one thread: each of its CUDA threads is a fiber that gives up the processor where
// it has to meet others. A scheduler resumes fibers in a shuffled order, and ends the process where
// those that wait can never meet (EU-1, EU-2).
#include "tests/kernels/cuda_emulator/emulator.h"

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "tests/kernels/cuda_emulator/fiber.h"

uint3 threadIdx{}, blockIdx{};
dim3 blockDim, gridDim;

namespace tandem::emulator {

namespace {

constexpr int kLanes = 32;
constexpr std::size_t kStackBytes = 256 << 10;
constexpr std::size_t kThreadsMax = 1024;
constexpr int kPoison = 0xff;  // NaN, as f32 and as bf16

enum class Wait { kNothing, kBarrier, kExchange, kBallot, kTogether, kEnded };

struct Copy {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};

struct Thread {
  Fiber fiber;
  uint3 index{};
  int number = 0;  // in the block
  Wait wait = Wait::kNothing;
  std::source_location where;
  unsigned lanes = 0;       // kExchange, kBallot: who takes part
  std::uint64_t value = 0;  // the value that it contributes
  int from = 0;             // the lane whose value it takes
  std::uint64_t taken = 0;
  void* brought = nullptr;                     // kTogether
  std::vector<std::vector<Copy>> copies = {};  // groups, the last of them not committed
};

// One block at a time, and one launch: the state of the machine. Only the thread that has the turn
// runs kernels (driver.h), so nothing here is shared between threads of the host.
struct Machine {
  Fiber scheduler;
  std::vector<Thread> threads;
  Thread* running = nullptr;
  const std::function<void()>* body = nullptr;
  std::span<char> static_shared;
  std::vector<uint4> dynamic_shared;
  char* stacks = nullptr;
  Dice dice{0x9e3779b97f4a7c15u};
};

Machine& machine() {
  static Machine* only = new Machine;  // outlives whatever static still holds device memory
  return *only;
}

template <class T>
void shuffle(std::vector<T>& items) {
  for (std::size_t i = items.size(); i > 1; --i)
    std::swap(items[i - 1], items[machine().dice.next() % i]);
}

const char* name(Wait wait) {
  switch (wait) {
    case Wait::kNothing:
      return "runs";
    case Wait::kBarrier:
      return "waits at a barrier";
    case Wait::kExchange:
      return "waits at a shuffle";
    case Wait::kBallot:
      return "waits at a vote";
    case Wait::kTogether:
      return "waits for its warp";
    case Wait::kEnded:
      return "has ended";
  }
  return "";
}

void pause(Thread& thread, Wait wait, const std::source_location& where) {
  thread.wait = wait;
  thread.where = where;
  switch_fiber(thread.fiber, machine().scheduler);
}

[[noreturn]] void fiber_body() {
  enter_fiber(machine().scheduler);
  (*machine().body)();
  pause(*machine().running, Wait::kEnded, std::source_location::current());
  std::abort();  // an ended fiber is never resumed
}

char* stack_of(std::size_t thread) {
  Machine& m = machine();
  if (m.stacks == nullptr) {
    void* memory = ::mmap(nullptr, kThreadsMax * kStackBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) broken("no memory for stacks");
    m.stacks = static_cast<char*>(memory);
  }
  return m.stacks + thread * kStackBytes;
}

// The thread-local memory of this module, for the running thread of the host.
std::span<char> static_shared() {
  static thread_local char anchor;  // makes the loader allocate it
  anchor = 0;
  std::span<char> found;
  ::dl_iterate_phdr(
      [](dl_phdr_info* module, std::size_t, void* result) {
        const auto* begin = static_cast<char*>(module->dlpi_tls_data);
        for (int i = 0; i < module->dlpi_phnum; ++i) {
          const auto& segment = module->dlpi_phdr[i];
          if (segment.p_type == PT_TLS && begin != nullptr && &anchor >= begin &&
              &anchor < begin + segment.p_memsz) {
            *static_cast<std::span<char>*>(result) = {static_cast<char*>(module->dlpi_tls_data),
                                                      segment.p_memsz};
            return 1;
          }
        }
        return 0;
      },
      &found);
  return found;
}

bool same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

// Resumes the threads that can run, in a shuffled order, until none can.
void run_until_all_wait() {
  Machine& m = machine();
  std::vector<std::size_t> order(m.threads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  shuffle(order);
  for (bool ran = true; std::exchange(ran, false);) {
    for (const std::size_t i : order) {
      Thread& thread = m.threads[i];
      if (thread.wait != Wait::kNothing) continue;
      m.running = &thread;
      threadIdx = thread.index;
      switch_fiber(m.scheduler, thread.fiber);
      ran = true;
    }
  }
  m.running = nullptr;
}

[[noreturn]] void stuck(const Thread& a, const Thread& b) {
  broken("block (%u, %u, %u): thread %d %s at %s:%u, thread %d %s%s%s:%u", blockIdx.x, blockIdx.y,
         blockIdx.z, a.number, name(a.wait), a.where.file_name(),
         static_cast<unsigned>(a.where.line()), b.number, name(b.wait),
         b.wait == Wait::kEnded ? "" : " at ", b.wait == Wait::kEnded ? "" : b.where.file_name(),
         b.wait == Wait::kEnded ? 0u : static_cast<unsigned>(b.where.line()));
}

// Everybody waits or has ended. True: all have ended. Otherwise all of them stand at one barrier,
// which opens; anything else is divergence.
bool meet() {
  std::vector<Thread>& threads = machine().threads;
  const auto at_barrier = [](const Thread& t) { return t.wait == Wait::kBarrier; };
  const auto in_warp = [](const Thread& t) {
    return t.wait == Wait::kExchange || t.wait == Wait::kBallot || t.wait == Wait::kTogether;
  };
  for (const Thread& thread : threads) {
    if (!in_warp(thread)) continue;
    const std::size_t warp = static_cast<std::size_t>(thread.number / kLanes) * kLanes;
    for (std::size_t i = warp; i < std::min(warp + kLanes, threads.size()); ++i) {
      const Thread& other = threads[i];
      const bool expected = (thread.lanes >> (i - warp) & 1u) != 0;
      const bool together = other.wait == thread.wait && other.lanes == thread.lanes &&
                            same_place(other.where, thread.where);
      if (expected && !together) stuck(thread, other);
    }
    broken("thread %d waits for lanes %08x at %s:%u, which its warp does not have", thread.number,
           thread.lanes, thread.where.file_name(), static_cast<unsigned>(thread.where.line()));
  }
  const auto first = std::find_if(threads.begin(), threads.end(), at_barrier);
  if (first == threads.end()) return true;
  for (const Thread& thread : threads) {
    if (!at_barrier(thread) || !same_place(thread.where, first->where)) stuck(*first, thread);
  }
  for (Thread& thread : threads) thread.wait = Wait::kNothing;
  return false;
}

void run_block() {
  Machine& m = machine();
  std::memset(m.static_shared.data(), kPoison, m.static_shared.size());
  if (!m.dynamic_shared.empty()) {
    std::memset(m.dynamic_shared.data(), kPoison, m.dynamic_shared.size() * sizeof(uint4));
  }
  for (std::size_t i = 0; i < m.threads.size(); ++i) {
    const auto number = static_cast<unsigned>(i);
    m.threads[i] = {.fiber = make_fiber(stack_of(i), kStackBytes, fiber_body),
                    .index = {number % blockDim.x, number / blockDim.x % blockDim.y,
                              number / blockDim.x / blockDim.y},
                    .number = static_cast<int>(i)};
  }
  do {
    run_until_all_wait();
  } while (!meet());
}

// The warp's lanes that take part, once all of them have come; else none.
std::vector<Thread*> complete(const Thread& last) {
  std::vector<Thread>& threads = machine().threads;
  const std::size_t warp = static_cast<std::size_t>(last.number / kLanes) * kLanes;
  for (std::size_t i = 0; i < kLanes; ++i) {
    if ((last.lanes >> i & 1u) == 0) continue;
    if (warp + i >= threads.size()) return {};
    const Thread& other = threads[warp + i];
    if (other.wait != last.wait || other.lanes != last.lanes ||
        !same_place(other.where, last.where)) {
      return {};
    }
  }
  std::vector<Thread*> party;
  party.reserve(kLanes);
  for (std::size_t i = 0; i < kLanes; ++i) {
    if ((last.lanes >> i & 1u) != 0) party.push_back(&threads[warp + i]);
  }
  return party;
}

Thread& arrive(unsigned lanes, Wait wait, const std::source_location& where) {
  Thread& self = *machine().running;
  if ((lanes >> lane() & 1u) == 0) {
    broken("thread %d calls a warp function for lanes %08x without itself at %s:%u", self.number,
           lanes, where.file_name(), static_cast<unsigned>(where.line()));
  }
  self.lanes = lanes;
  self.wait = wait;
  self.where = where;
  return self;
}

// Lets the party go on, or waits for the lane that will.
void leave(Thread& self, const std::vector<Thread*>& party) {
  if (party.empty()) return pause(self, self.wait, self.where);
  for (Thread* member : party) member->wait = Wait::kNothing;
}

}  // namespace

int lane() { return machine().running->number % kLanes; }

void* dynamic_shared() { return machine().dynamic_shared.data(); }

std::uint64_t Dice::next() {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return state_;
}

void barrier(const std::source_location& where) {
  pause(*machine().running, Wait::kBarrier, where);
}

std::uint64_t exchange(unsigned lanes, std::uint64_t value, int from,
                       const std::source_location& where) {
  Thread& self = arrive(lanes, Wait::kExchange, where);
  self.value = value;
  self.from = from;
  const std::vector<Thread*> party = complete(self);
  for (Thread* member : party) {
    if ((lanes >> member->from & 1u) == 0) {
      broken("thread %d takes the value of lane %d, which is not among %08x, at %s:%u",
             member->number, member->from, lanes, where.file_name(),
             static_cast<unsigned>(where.line()));
    }
    const int warp = member->number / kLanes * kLanes;
    member->taken = machine().threads[static_cast<std::size_t>(warp + member->from)].value;
  }
  leave(self, party);
  return self.taken;
}

unsigned ballot(unsigned lanes, bool predicate, const std::source_location& where) {
  Thread& self = arrive(lanes, Wait::kBallot, where);
  self.value = predicate ? 1 : 0;
  const std::vector<Thread*> party = complete(self);
  std::uint64_t votes = 0;
  for (const Thread* member : party) votes |= member->value << (member->number % kLanes);
  for (Thread* member : party) member->taken = votes;
  leave(self, party);
  return static_cast<unsigned>(self.taken);
}

void together(void* own, void (*act)(void* const* lanes), const std::source_location& where) {
  Thread& self = arrive(0xffffffffu, Wait::kTogether, where);
  self.brought = own;
  const std::vector<Thread*> party = complete(self);
  if (!party.empty()) {
    void* lanes[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = party[i]->brought;
    act(lanes);
  }
  leave(self, party);
}

void copy_async(void* to, const void* from, std::size_t bytes) {
  for (const void* at : {static_cast<const void*>(to), from}) {
    if (reinterpret_cast<std::uintptr_t>(at) % bytes != 0) {
      broken("thread %d copies %zu bytes that are not aligned so", machine().running->number,
             bytes);
    }
  }
  auto& groups = machine().running->copies;
  if (groups.empty()) groups.emplace_back();
  groups.back().push_back({.to = to, .from = from, .bytes = bytes});
  std::memset(to, kPoison, bytes);
}

void commit_copies() {
  auto& groups = machine().running->copies;
  if (groups.empty()) groups.emplace_back();
  groups.emplace_back();
}

void wait_copies(std::size_t groups_left) {
  auto& groups = machine().running->copies;
  while (groups.size() > groups_left + 1) {
    for (const Copy& copy : groups.front()) {
      if (copy.from == nullptr) {
        std::memset(copy.to, 0, copy.bytes);
      } else {
        std::memcpy(copy.to, copy.from, copy.bytes);
      }
    }
    groups.erase(groups.begin());
  }
}

void run_grid(std::size_t shared_bytes, const std::function<void()>& thread) {
  Machine& m = machine();
  m.scheduler = {};  // the fiber of this thread, which may be another than the last time
  m.body = &thread;
  m.static_shared = static_shared();
  m.threads.assign(std::size_t{blockDim.x} * blockDim.y * blockDim.z, Thread{});
  m.dynamic_shared.assign((shared_bytes + sizeof(uint4) - 1) / sizeof(uint4), uint4{});
  std::vector<std::uint64_t> blocks(std::uint64_t{gridDim.x} * gridDim.y * gridDim.z);
  std::iota(blocks.begin(), blocks.end(), std::uint64_t{0});
  shuffle(blocks);
  for (const std::uint64_t block : blocks) {
    blockIdx = {static_cast<unsigned>(block % gridDim.x),
                static_cast<unsigned>(block / gridDim.x % gridDim.y),
                static_cast<unsigned>(block / gridDim.x / gridDim.y)};
    run_block();
  }
  m.body = nullptr;
}

void broken(const char* format, ...) {
  std::fputs("emulated GPU: ", stderr);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputs("\n", stderr);
  std::abort();
}

}  // namespace tandem::emulator
