// Memory and queued work are the CUDA emulator's where this process has its module open. Else
// memory is the process's own, and a stream is a thread that does its work in order.
#include "tests/runtime/collective/fake_nccl/device.h"

#include <dlfcn.h>

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

namespace fake_nccl {
namespace {

struct Emulator {
  int (*allocate)(void** memory, std::size_t bytes) = nullptr;
  int (*free)(void* memory) = nullptr;
  int (*read)(const void* device, void* host, std::size_t bytes) = nullptr;
  int (*write)(void* device, const void* host, std::size_t bytes) = nullptr;
  int (*enqueue)(void* stream, void (*work)(void*), void* argument) = nullptr;
};

void* find_in_module(const char* name) {
  if (void* found = ::dlsym(RTLD_DEFAULT, name)) return found;
  const char* path = std::getenv("TANDEM_CUDA_MODULE");
  void* module = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  return module == nullptr ? nullptr : ::dlsym(module, name);
}

Emulator find_emulator() {
  Emulator found;
  found.allocate =
      reinterpret_cast<decltype(found.allocate)>(find_in_module("tandem_emulated_allocate"));
  found.free = reinterpret_cast<decltype(found.free)>(find_in_module("tandem_emulated_free"));
  found.read = reinterpret_cast<decltype(found.read)>(find_in_module("tandem_emulated_read"));
  found.write = reinterpret_cast<decltype(found.write)>(find_in_module("tandem_emulated_write"));
  found.enqueue =
      reinterpret_cast<decltype(found.enqueue)>(find_in_module("tandem_emulated_enqueue"));
  const bool all = found.allocate && found.free && found.read && found.write && found.enqueue;
  return all ? found : Emulator{};
}

const Emulator& emulator() {
  static const Emulator found = find_emulator();
  return found;
}

void must(int failure) {
  if (failure != 0) std::abort();
}

// A stream that is a thread. It never ends: work of a test that hangs is on it.
class Worker {
 public:
  static std::shared_ptr<Worker> of(void* stream) {
    static std::mutex& mutex = *new std::mutex;
    static auto& workers = *new std::map<void*, std::shared_ptr<Worker>>;
    const std::lock_guard lock(mutex);
    std::shared_ptr<Worker>& worker = workers[stream];
    if (!worker) {
      worker = std::make_shared<Worker>();
      std::thread([worker] { worker->run(); }).detach();
    }
    return worker;
  }

  void push(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    ++queued_;
    changed_.notify_all();
  }
  std::uint64_t queued() {
    const std::lock_guard lock(mutex_);
    return queued_;
  }
  std::uint64_t done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !work_.empty(); });
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      lock.lock();
      ++done_;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::uint64_t queued_ = 0;
  std::uint64_t done_ = 0;
};

struct Event {
  std::shared_ptr<Worker> worker;
  std::uint64_t place = 0;
};

// The events that are not destroyed yet: some stay with work that never ends.
struct Events {
  std::mutex mutex;
  std::map<void*, std::unique_ptr<Event>> all;
};

Events& events() {
  static Events& only = *new Events;
  return only;
}

}  // namespace

void* allocate_device(std::size_t bytes) {
  if (emulator().allocate == nullptr) return ::operator new(bytes, std::nothrow);
  void* memory = nullptr;
  return emulator().allocate(&memory, bytes) == 0 ? memory : nullptr;
}

void free_device(void* memory) {
  if (emulator().free == nullptr) return ::operator delete(memory);
  must(emulator().free(memory));
}

void read_device(const void* device, void* host, std::size_t bytes) {
  if (emulator().read != nullptr) return must(emulator().read(device, host, bytes));
  std::memcpy(host, device, bytes);
}

void write_device(void* device, const void* host, std::size_t bytes) {
  if (emulator().write != nullptr) return must(emulator().write(device, host, bytes));
  std::memcpy(device, host, bytes);
}

void enqueue(void* stream, std::function<void()> work) {
  if (emulator().enqueue == nullptr) return Worker::of(stream)->push(std::move(work));
  const auto run = [](void* argument) {
    const std::unique_ptr<std::function<void()>> owned(
        static_cast<std::function<void()>*>(argument));
    (*owned)();
  };
  must(emulator().enqueue(stream, run, new std::function<void()>(std::move(work))));
}

void* create_event() {
  auto event = std::make_unique<Event>();
  const std::lock_guard lock(events().mutex);
  Event* const made = event.get();
  events().all[made] = std::move(event);
  return made;
}

void record_event(void* event, void* stream) {
  auto worker = Worker::of(stream);
  const std::uint64_t place = worker->queued();
  *static_cast<Event*>(event) = {.worker = std::move(worker), .place = place};
}

bool event_done(void* event) {
  const auto& at = *static_cast<Event*>(event);
  return !at.worker || at.worker->done() >= at.place;
}

void destroy_event(void* event) {
  const std::lock_guard lock(events().mutex);
  if (events().all.erase(event) == 0) std::abort();
}

}  // namespace fake_nccl
