// The emulator's streams and events: when queued work runs, and on which thread.
//
// An item runs in the turn of the thread that waits for it, or of the progress thread once it is
// due, or by chance of the thread that queues it. A turn opens device memory once for all of its
// items: to open and to close it takes longer than most items do. A waiting item has a thread of
// its own and no turn. Streams that join each other make no circle, since a stream joins only work
// that was queued before.
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "cuda_runtime.h"
#include "tests/kernels/cuda_emulator/driver.h"

namespace tandem::emulator {
namespace {

// Work is put off for so long if no thread waits for it: a host that reads the result too early
// finds it missing. Most threads wait sooner, so tests are not slower for it.
constexpr std::chrono::milliseconds kLate{3};
// One call in so many runs the work that it queues before it returns.
constexpr std::uint64_t kEarlyOneIn = 32;

bool toss() { return driver().dice.next() % 2 == 0; }

bool reached(const StreamPosition& position) {
  return position.stream == nullptr || position.stream->ended >= position.items;
}

bool ready(const tandem_emulated_stream& stream) {
  if (stream.waits || stream.runs || stream.work.empty()) return false;
  const Item& next = stream.work.front();
  return next.kind != Item::Kind::kJoins || reached(next.joined);
}

// The stream whose next item brings the position nearer; none while an item that waits has to come
// first.
StreamPointer next_towards(const StreamPosition& position) {
  if (reached(position)) return nullptr;
  StreamPointer at = position.stream;
  while (!at->runs && !ready(*at)) {
    if (at->waits) return nullptr;
    at = at->work.front().joined.stream;
  }
  return at;
}

void wake() {
  if (!std::exchange(driver().asleep, false)) return;
  driver().queued->notify_one();
}

// The host has learnt that the position was reached, and with it all positions that its stream had
// joined before.
void note_seen(const StreamPosition& position) {
  std::vector<StreamPosition> known{position};
  while (!known.empty()) {
    const StreamPosition at = std::move(known.back());
    known.pop_back();
    if (at.stream == nullptr) continue;
    at.stream->seen = std::max(at.stream->seen, at.items);
    auto& joined = at.stream->joined;
    for (; !joined.empty() && joined.front().own <= at.stream->seen; joined.pop_front())
      known.push_back({joined.front().stream.lock(), joined.front().items});
  }
}

// A thread that takes no signals of the process's.
void start_thread(std::function<void()> body) {
  sigset_t all, before;
  ::sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(std::move(body)).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void start_waiting(const StreamPointer& stream, std::function<void()> work) {
  stream->waits = true;
  start_thread([stream, work = std::move(work)]() mutable {
    work();
    work = nullptr;
    const Lock lock(driver().mutex);
    stream->waits = false;
    ++stream->ended;
    driver().changed->notify_all();
    wake();
  });
}

// The right to run items, taken when no thread has it. The lock is open while an item runs.
class Turn {
 public:
  explicit Turn(Lock& lock) : lock_(lock) { driver().taken = true; }
  ~Turn() {
    if (driver().open) set_open(false);
    driver().taken = false;
    driver().changed->notify_all();
    wake();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  void run_next(const StreamPointer& stream) {
    Item item = std::move(stream->work.front());
    stream->work.pop_front();
    switch (item.kind) {
      case Item::Kind::kWaits:
        return start_waiting(stream, std::move(item.work));
      case Item::Kind::kJoins:
        stream->joined.push_back({stream->ended + 1, item.joined.stream, item.joined.items});
        break;
      case Item::Kind::kRuns:
        run(*stream, item.work);
        break;
    }
    ++stream->ended;
    driver().changed->notify_all();
  }

  void run_towards(const StreamPosition& position) {
    while (const StreamPointer next = next_towards(position)) run_next(next);
  }

 private:
  void run(tandem_emulated_stream& stream, std::function<void()>& work) {
    if (!driver().open) set_open(true);
    stream.runs = true;
    lock_.unlock();
    work();
    work = nullptr;
    lock_.lock();
    stream.runs = false;
    check_slack();
  }

  Lock& lock_;
};

void try_towards(Lock& lock, const StreamPosition& position) {
  if (driver().taken || next_towards(position) == nullptr) return;
  Turn(lock).run_towards(position);
}

void wait_for(Lock& lock, const StreamPosition& position) {
  while (!reached(position)) {
    const bool wants = next_towards(position) != nullptr;
    if (wants && !driver().taken) {
      Turn(lock).run_towards(position);
      continue;
    }
    driver().wanting += wants ? 1 : 0;
    driver().changed->wait(lock);
    driver().wanting -= wants ? 1 : 0;
    wake();
  }
  note_seen(position);
}

// Makes all that comes before the position due now.
void hurry(const StreamPosition& position) {
  std::vector<StreamPosition> asked{position};
  while (!asked.empty()) {
    const StreamPosition at = std::move(asked.back());
    asked.pop_back();
    if (reached(at) || at.stream->hurried >= at.items) continue;
    at.stream->hurried = at.items;
    std::uint64_t before = at.stream->queued - at.stream->work.size();
    for (const Item& item : at.stream->work) {
      if (before++ == at.items) break;
      if (item.kind == Item::Kind::kJoins) asked.push_back(item.joined);
    }
  }
}

// The answer to whether the position has been reached. To ask also hurries the work, as with CUDA.
cudaError_t answer(Lock& lock, const StreamPosition& position) {
  if (!reached(position)) {
    hurry(position);
    driver().asleep = false;
    driver().queued->notify_one();
    if (driver().forked) try_towards(lock, position);
    return cudaErrorNotReady;
  }
  note_seen(position);
  return cudaSuccess;
}

std::vector<StreamPointer> ready_streams() {
  std::vector<StreamPointer> all;
  for (const auto& [handle, stream] : driver().streams)
    if (ready(*stream)) all.push_back(stream);
  for (const StreamPointer& stream : driver().orphans)
    if (ready(*stream)) all.push_back(stream);
  return all;
}

Clock::time_point due(const tandem_emulated_stream& stream) {
  return stream.ended < stream.hurried ? Clock::time_point{} : stream.work.front().due;
}

void drop_orphans() {
  std::erase_if(driver().orphans, [](const StreamPointer& stream) {
    return stream->work.empty() && !stream->runs && !stream->waits;
  });
}

// Runs items that are due, of streams chosen by chance, until a thread waits for the turn.
void run_due(Lock& lock, Dice& dice) {
  driver().progressing = true;
  {
    Turn turn(lock);
    while (driver().wanting == 0 && !driver().stopped) {
      std::vector<StreamPointer> streams = ready_streams();
      const auto now = Clock::now();
      std::erase_if(streams, [&](const StreamPointer& stream) { return due(*stream) > now; });
      if (streams.empty()) break;
      turn.run_next(streams[dice.next() % streams.size()]);
    }
  }
  drop_orphans();
  driver().progressing = false;
}

void make_progress() {
  Dice dice(0x9e6c63d0876a9a47u);
  Lock lock(driver().mutex);
  for (;;) {
    const std::vector<StreamPointer> streams = ready_streams();
    if (streams.empty() || driver().taken || driver().wanting > 0 || driver().stopped) {
      driver().asleep = true;
      driver().queued->wait(lock, [] { return !driver().asleep; });
      continue;
    }
    Clock::time_point first = Clock::time_point::max();
    for (const StreamPointer& stream : streams) first = std::min(first, due(*stream));
    if (first > Clock::now()) {
      driver().queued->wait_until(lock, first);
    } else {
      run_due(lock, dice);
    }
  }
}

void before_fork() {
  Lock lock(driver().mutex);
  await_turn(lock);
  lock.release();  // held until fork() has returned
}
void after_fork_in_parent() { driver().mutex.unlock(); }
void after_fork_in_child() {
  driver().changed = new std::condition_variable;
  driver().queued = new std::condition_variable;
  driver().forked = driver().started;
  driver().wanting = 0;
  driver().mutex.unlock();
}

// From now on statics end, which a kernel may read. A thread that still waits runs its work itself.
void at_exit() {
  Lock lock(driver().mutex);
  driver().stopped = true;
  driver().changed->wait(lock, [] { return !driver().progressing || driver().forked; });
}

StreamPosition end_of(const StreamPointer& stream) { return {stream, stream->queued}; }

}  // namespace

Driver& driver() {
  static Driver* only = [] {
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return new Driver;  // outlives whatever static still holds device memory
  }();
  return *only;
}

void await_turn(Lock& lock) {
  ++driver().wanting;
  driver().changed->wait(lock, [] { return !driver().taken; });
  --driver().wanting;
  wake();
}

StreamPointer find(cudaStream_t stream) {
  if (stream == nullptr) broken("work on the default stream, which waits for all others");
  const auto found = driver().streams.find(stream);
  if (found == driver().streams.end()) broken("a stream is used that was destroyed");
  return found->second;
}

void append(const StreamPointer& stream, Item item) {
  item.due = Clock::now() + kLate;
  stream->work.push_back(std::move(item));
  ++stream->queued;
  wake();
}

void start_early(Lock& lock, const StreamPointer& stream) {
  if (driver().dice.next() % kEarlyOneIn == 0) try_towards(lock, end_of(stream));
}

void queue(Lock& lock, cudaStream_t stream, Item item) {
  const StreamPointer held = find(stream);
  if (held->recorded) return held->recorded->push_back(std::move(item));
  append(held, std::move(item));
  start_early(lock, held);
}

bool records() {
  return std::ranges::any_of(driver().streams, [](const auto& each) {
    return each.second->recorded && each.second->recorder == std::this_thread::get_id();
  });
}

void enqueue_work(cudaStream_t stream, std::function<void()> work) {
  Lock lock(driver().mutex);
  queue(lock, stream, {.work = std::move(work)});
}

}  // namespace tandem::emulator

using namespace tandem::emulator;

struct tandem_emulated_event {
  StreamPosition position;  // where it was last recorded
};

int tandem_emulated_enqueue(void* stream, void (*work)(void*), void* argument) {
  return cudaLaunchHostFunc(static_cast<cudaStream_t>(stream), work, argument) == cudaSuccess ? 0
                                                                                              : 1;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t work, void* argument) {
  Lock lock(driver().mutex);
  if (find(stream)->recorded) return cudaErrorStreamCaptureUnsupported;
  queue(lock, stream, {.kind = Item::Kind::kWaits, .work = [=] { work(argument); }});
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const auto made = std::make_shared<tandem_emulated_stream>();
  made->device = current_device();
  *stream = made.get();
  const Lock lock(driver().mutex);
  driver().streams.emplace(*stream, made);
  if (!std::exchange(driver().started, true)) {
    std::atexit(at_exit);
    start_thread(make_progress);
  }
  return cudaSuccess;
}

// Does not wait, as with CUDA: the stream's work goes on without it.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Lock lock(driver().mutex);
  const StreamPointer held = find(stream);
  if (held->recorded) broken("a stream was destroyed that records a graph");
  driver().streams.erase(stream);
  driver().orphans.push_back(held);
  if (toss() || driver().forked) try_towards(lock, end_of(held));
  drop_orphans();
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Lock lock(driver().mutex);
  const StreamPointer held = find(stream);
  if (held->recorded || records()) return cudaErrorStreamCaptureUnsupported;
  wait_for(lock, end_of(held));
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  Lock lock(driver().mutex);
  const StreamPointer held = find(stream);
  if (held->recorded || records()) return cudaErrorStreamCaptureUnsupported;
  return answer(lock, end_of(held));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new tandem_emulated_event;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(driver().mutex);
  const StreamPointer held = find(stream);
  if (held->recorded) return cudaErrorStreamCaptureUnsupported;
  event->position = end_of(held);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  Lock lock(driver().mutex);
  if (find(stream)->recorded) return cudaErrorStreamCaptureUnsupported;
  if (event->position.stream == nullptr) return cudaSuccess;
  queue(lock, stream, {.kind = Item::Kind::kJoins, .joined = event->position});
  return cudaSuccess;
}

// The work behind the event may run as well, or may not.
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Lock lock(driver().mutex);
  if (records()) return cudaErrorStreamCaptureUnsupported;
  const StreamPosition position = event->position;
  wait_for(lock, position);
  if (position.stream != nullptr && toss()) try_towards(lock, end_of(position.stream));
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  Lock lock(driver().mutex);
  if (records()) return cudaErrorStreamCaptureUnsupported;
  return answer(lock, event->position);
}
