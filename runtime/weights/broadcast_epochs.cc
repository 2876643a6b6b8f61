// An epoch is one thread: it starts the communicator, carries the jobs that are queued, and takes
// the communicator down. Any cause from outside that ends the epoch (leave(), a gap, the owner's
// end) sets `why` or `failure` under the mutex and aborts the communicator, which wakes the thread
// wherever it waits. The thread itself reports every event, so that the events of one epoch come in
// order: kOpened, kJoined, kInUse, kFailed, kLeft.
//
// Easy to get wrong: the mutex is never held while NCCL is waited for or the carrier works (WB-3),
// but it is held while a communicator is made, so that leave() either prevents the communicator or
// finds it and aborts it.
#include "runtime/weights/broadcast_epochs.h"

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"

namespace tandem::weights {

struct BroadcastEpochs::Epoch {
  collective::NcclEpoch nccl;
  bool opens = false;  // this rank makes the unique id: the publisher
  std::thread thread;

  // The mutex of BroadcastEpochs guards the rest.
  std::optional<Error> failure;    // told from outside
  std::optional<std::string> why;  // leave() was called
  bool used = false;               // use() was called, kInUse is due
  bool at_work = false;            // started, and not ended
  bool over = false;               // its jobs are dropped, and it takes no more
  bool gone = false;               // kLeft has been queued: the number is unknown again
  bool finished = false;           // the thread is about to end, and can be joined
  std::uint64_t sequence = 0;      // the sequence number of the last job
  std::deque<BroadcastJob> jobs;   // the first one may be being carried
  std::unique_ptr<collective::NcclCommunicator> communicator;
};

BroadcastEpochs::~BroadcastEpochs() {
  {
    const std::lock_guard lock(mutex_);
    for (const Shared& epoch : epochs_) {
      if (!epoch->why) epoch->why = "its owner ends";
      if (epoch->communicator) epoch->communicator->abort(*epoch->why);
    }
    changed_.notify_all();
  }
  for (const Shared& epoch : epochs_) epoch->thread.join();
}

BroadcastEpochs::Epoch* BroadcastEpochs::find(std::uint64_t number) const {
  for (const Shared& epoch : epochs_)
    if (epoch->nccl.epoch == number && !epoch->gone) return epoch.get();
  return nullptr;
}

void BroadcastEpochs::join_the_finished() {
  std::list<Shared> finished;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = epochs_.begin(); it != epochs_.end();) {
      const auto next = std::next(it);
      if ((*it)->finished) finished.splice(finished.end(), epochs_, it);
      it = next;
    }
  }
  for (const Shared& epoch : finished) epoch->thread.join();
}

// Starts the epoch's thread; an epoch of that number that exists already is left as it is.
void BroadcastEpochs::begin(const Shared& epoch) {
  join_the_finished();
  epoch->nccl.name = config_.broadcasting->name;
  const std::lock_guard lock(mutex_);
  if (find(epoch->nccl.epoch) != nullptr) return;
  epochs_.push_back(epoch);
  epoch->thread = std::thread([this, epoch] { run(*epoch); });
}

void BroadcastEpochs::open(std::uint64_t number, int size) {
  const auto epoch = std::make_shared<Epoch>();
  epoch->nccl.epoch = number;
  epoch->nccl.size = size;
  epoch->opens = true;
  begin(epoch);
}

void BroadcastEpochs::join(const collective::NcclRendezvous& rendezvous, int rank) {
  const auto epoch = std::make_shared<Epoch>();
  epoch->nccl.epoch = rendezvous.epoch;
  epoch->nccl.unique_id = rendezvous.unique_id;
  epoch->nccl.rank = rank;
  epoch->nccl.size = rendezvous.size;
  if (const auto fits = check_rendezvous(rendezvous, rank, config_.layout.hash); !fits)
    epoch->failure = fits.error();
  begin(epoch);
}

void BroadcastEpochs::use(std::uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  in_use_ = epoch;
  if (Epoch* const used = find(epoch)) used->used = true;
  changed_.notify_all();
}

// An unknown epoch gets a thread as well, whose only work is to report kLeft (WB-4).
void BroadcastEpochs::leave(std::uint64_t number, const std::string& why) {
  const auto unknown = std::make_shared<Epoch>();
  unknown->nccl.epoch = number;
  unknown->why = why;
  begin(unknown);
  const std::lock_guard lock(mutex_);
  Epoch* const epoch = find(number);
  if (epoch == nullptr || epoch->why) return;
  epoch->why = why;
  if (epoch->communicator) epoch->communicator->abort(why);
  changed_.notify_all();
}

std::vector<BroadcastEvent> BroadcastEpochs::take_events() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

void BroadcastEpochs::on_event(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void BroadcastEpochs::tell(BroadcastEvent event) {
  // `wake` is called without the mutex: the function may call take_events() at once.
  std::function<void()> wake;
  {
    const std::lock_guard lock(mutex_);
    if (event.kind == BroadcastEvent::Kind::kLeft) find(event.epoch)->gone = true;
    events_.push_back(std::move(event));
    wake = wake_;
  }
  if (wake) wake();
}

std::optional<wire::BroadcastPlace> BroadcastEpochs::send(BroadcastJob job) {
  const std::lock_guard lock(mutex_);
  Epoch* const epoch = find(in_use_);
  if (epoch == nullptr || !epoch->at_work || ending(*epoch)) return std::nullopt;
  job.place = {.epoch = in_use_, .sequence = ++epoch->sequence};
  epoch->jobs.push_back(job);
  changed_.notify_all();
  return job.place;
}

void BroadcastEpochs::receive(const BroadcastJob& job) {
  const std::lock_guard lock(mutex_);
  Epoch* const epoch = find(job.place.epoch);
  if (epoch == nullptr || epoch->over || ending(*epoch)) return;
  if (job.place.sequence <= epoch->sequence) return;
  if (job.place.sequence > epoch->sequence + 1) {
    epoch->failure = Error{
        .message = "broadcast " + std::to_string(job.place.sequence) + " of " + epoch->nccl.name +
                   ", epoch " + std::to_string(job.place.epoch) + ", was announced to rank " +
                   std::to_string(epoch->nccl.rank) + " after broadcast " +
                   std::to_string(epoch->sequence) + ": its ranks no longer agree"};
    if (epoch->communicator) epoch->communicator->abort(epoch->failure->message);
  } else {
    ++epoch->sequence;
    epoch->jobs.push_back(job);
  }
  changed_.notify_all();
}

std::optional<std::uint64_t> BroadcastEpochs::checksum_on_its_way(PolicyVersion version) const {
  const std::lock_guard lock(mutex_);
  std::optional<BroadcastJob> newest;
  for (const Shared& epoch : epochs_)
    for (const BroadcastJob& job : epoch->jobs)
      if (job.version == version && (!newest || newest->place < job.place)) newest = job;
  return newest ? std::optional(newest->checksum) : std::nullopt;
}

bool BroadcastEpochs::ending(const Epoch& epoch) const { return epoch.why || epoch.failure; }

bool BroadcastEpochs::ends(const Epoch& epoch) const {
  const std::lock_guard lock(mutex_);
  return ending(epoch);
}

bool BroadcastEpochs::turn_of(const Epoch& epoch) const {
  // All ranks carry the broadcasts of one epoch before those of the next: their order on the
  // network, and into the one spare arena, is then the same everywhere.
  return std::ranges::none_of(epochs_, [&](const Shared& other) {
    return other->nccl.epoch < epoch.nccl.epoch && !other->jobs.empty();
  });
}

void BroadcastEpochs::run(Epoch& epoch) {
  std::unique_ptr<BroadcastStaging> staging;
  Result<void> outcome;
  if (!ends(epoch)) outcome = prepare(epoch, staging);
  if (outcome) outcome = start(epoch);
  while (outcome) {
    const std::optional<BroadcastJob> job = next(epoch);
    if (!job) break;
    outcome = carrier_.carry(*epoch.communicator, *staging, *job);
    if (!outcome) break;
    carrier_.over(*job);
    const std::lock_guard lock(mutex_);
    epoch.jobs.pop_front();
    changed_.notify_all();
  }
  end(epoch, outcome);
  const std::lock_guard lock(mutex_);
  epoch.finished = true;
}

Result<void> BroadcastEpochs::prepare(Epoch& epoch, std::unique_ptr<BroadcastStaging>& staging) {
  auto made = BroadcastStaging::make(config_);
  if (!made) return made.error();
  staging = *std::move(made);
  epoch.nccl.memory = {staging->memory()};
  return carrier_.prepare();
}

Result<void> BroadcastEpochs::start(Epoch& epoch) {
  const collective::NcclProcess& process = *config_.broadcasting->nccl;
  if (epoch.opens && !ends(epoch)) {
    const auto made = make_nccl_unique_id(process, process.thread->grace() / 2);
    if (!made) return made.error();
    epoch.nccl.unique_id = *made;
    tell({.kind = BroadcastEvent::Kind::kOpened,
          .epoch = epoch.nccl.epoch,
          .unique_id = *made,
          .message = {}});
  }
  collective::NcclCommunicator* communicator = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (ending(epoch)) return {};
    auto started = collective::NcclCommunicator::start(process, epoch.nccl, config_.stall_max);
    if (!started) return started.error();
    communicator = started->get();
    epoch.communicator = *std::move(started);
  }
  if (const auto outcome = communicator->wait_started(); !outcome) return outcome;
  {
    const std::lock_guard lock(mutex_);
    epoch.at_work = true;
  }
  tell({.kind = BroadcastEvent::Kind::kJoined,
        .epoch = epoch.nccl.epoch,
        .unique_id = {},
        .message = {}});
  return {};
}

// Waits for the next job that may be carried; none means that the epoch ends. kInUse is reported
// here because at this point the broadcasts of all earlier epochs have ended.
std::optional<BroadcastJob> BroadcastEpochs::next(Epoch& epoch) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] {
      return ending(epoch) || (turn_of(epoch) && (epoch.used || !epoch.jobs.empty()));
    });
    if (ending(epoch)) return std::nullopt;
    if (!epoch.used) return epoch.jobs.front();
    epoch.used = false;
    lock.unlock();
    tell({.kind = BroadcastEvent::Kind::kInUse,
          .epoch = epoch.nccl.epoch,
          .unique_id = {},
          .message = {}});
    lock.lock();
  }
}

void BroadcastEpochs::end(Epoch& epoch, const Result<void>& outcome) {
  std::unique_ptr<collective::NcclCommunicator> communicator;
  std::deque<BroadcastJob> dropped;
  std::optional<Error> failure;
  {
    const std::lock_guard lock(mutex_);
    epoch.over = true;
    epoch.at_work = false;
    // The communicator is taken out under the mutex: no abort reaches a communicator that is being
    // destroyed.
    communicator = std::move(epoch.communicator);
    dropped = std::exchange(epoch.jobs, {});
    if (!epoch.why) failure = epoch.failure ? *epoch.failure : outcome.error();
    changed_.notify_all();
  }
  // The first of them may be the job whose carry() failed.
  for (const BroadcastJob& job : dropped) carrier_.over(job);
  if (failure) {
    log::warn("event=weights_epoch_failed weights={} epoch={} rank={} reason=\"{}\"", config_.name,
              epoch.nccl.epoch, epoch.nccl.rank, failure->message);
    tell({.kind = BroadcastEvent::Kind::kFailed,
          .epoch = epoch.nccl.epoch,
          .unique_id = {},
          .message = failure->message});
  }
  // The communicator goes before the memory that is registered with it.
  communicator.reset();
  epoch.nccl.memory.clear();
  {
    std::unique_lock lock(mutex_);
    // An epoch that failed stays until leave(): kLeft answers leave() and nothing else (WB-4).
    changed_.wait(lock, [&] { return epoch.why.has_value(); });
  }
  tell({.kind = BroadcastEvent::Kind::kLeft,
        .epoch = epoch.nccl.epoch,
        .unique_id = {},
        .message = {}});
}

}  // namespace tandem::weights
