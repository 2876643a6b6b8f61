// A communicator meets its peers (meeting.h) and moves bytes (exchange.h) on the threads of the
// streams that it is given. Each call passes the faults that a test asks for (faults.h) before it
// does its work.
#include "tests/runtime/collective/fake_nccl/communicator.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <limits>

#include "tests/runtime/collective/fake_nccl/device.h"

namespace fake_nccl {
namespace {

std::string setting(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr ? otherwise : value;
}

int number(const char* variable, int otherwise) {
  return std::atoi(setting(variable, std::to_string(otherwise).c_str()).c_str());
}

// The first GPU that this process is shown, on the host that NCCL takes this one for.
std::string device_of_process() {
  const std::string shown = setting("CUDA_VISIBLE_DEVICES", "0");
  return setting("NCCL_HOSTID", "this host") + "/" +
         setting("TANDEM_FAKE_NCCL_DEVICE", shown.substr(0, shown.find(',')).c_str());
}

bool devices_may_be_shared() {
  return version() >= 23003 && number("NCCL_MULTI_RANK_GPU_ENABLE", 0) == 1;
}

int next_index() {
  static std::atomic<int> last = 0;
  return ++last;
}

// A sum of all ranks' floats: each sends its own to all others, and adds in the order of the ranks.
class Sum {
 public:
  Sum(const Request& request, int rank, int size) : request_(request), rank_(rank) {
    for (int peer = 0; peer < size; ++peer)
      theirs_.push_back(peer == rank ? nullptr : allocate_device(request.bytes));
  }
  ~Sum() {
    for (void* memory : theirs_)
      if (memory) free_device(memory);
  }
  Sum(const Sum&) = delete;
  Sum& operator=(const Sum&) = delete;

  void append_blocks(std::vector<Block>& blocks) const {
    const Label label{.operation = 3, .bytes = request_.bytes};
    for (int peer = 0; peer < static_cast<int>(theirs_.size()); ++peer) {
      if (peer == rank_) continue;
      blocks.push_back({.peer = peer, .out = true, .memory = request_.memory, .label = label});
      blocks.push_back({.peer = peer,
                        .out = false,
                        .memory = theirs_[static_cast<std::size_t>(peer)],
                        .label = label});
    }
  }
  void finish() const {
    std::vector<float> sum(request_.bytes / sizeof(float)), one(sum.size());
    for (void* memory : theirs_) {
      read_device(memory ? memory : request_.memory, one.data(), request_.bytes);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
    }
    write_device(request_.memory, sum.data(), request_.bytes);
  }

 private:
  const Request request_;
  const int rank_;
  std::vector<void*> theirs_;  // by rank; null: this one's
};

}  // namespace

int version() { return number("TANDEM_FAKE_NCCL_VERSION", 22809); }

Communicator::Communicator(int rank, int size, bool blocking)
    : rank_(rank),
      size_(size),
      blocking_(blocking),
      index_(next_index()),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      caller_(std::this_thread::get_id()) {}

NcclResult Communicator::refuse(NcclResult result, const std::string& why) {
  const std::lock_guard lock(mutex_);
  last_error_ = why;
  return result;
}

const char* Communicator::last_error() {
  const std::lock_guard lock(mutex_);
  last_error_told_ = last_error_;
  return last_error_told_.c_str();
}

Call Communicator::count(const std::string& op) {
  const std::lock_guard lock(mutex_);
  return {.rank = rank_, .comm = index_, .op = op, .nth = ++calls_[op], .nth_any = ++calls_[""]};
}

// Checks the same as ncclCommEnsureReady, and that one thread makes all calls.
NcclResult Communicator::check_caller() {
  if (caller_ != std::this_thread::get_id()) {
    last_error_ = "called from two threads";
    return NcclResult::kInvalidUsage;
  }
  if (state_ == NcclResult::kSuccess && polls_in_progress_ == 0) return NcclResult::kSuccess;
  if (state_ != NcclResult::kSuccess && state_ != NcclResult::kInProgress) return state_;
  last_error_ = "used before the previous operation returned ncclSuccess";
  return NcclResult::kInvalidArgument;
}

void Communicator::set_state(NcclResult result, const std::string& why) {
  const std::lock_guard lock(mutex_);
  state_ = result;
  last_error_ = why;
  changed_.notify_all();
}

void Communicator::arm(const Mischief& mischief) {
  if (mischief.error_code == 0) return;
  const std::lock_guard lock(mutex_);
  error_to_come_ = static_cast<NcclResult>(mischief.error_code);
  polls_to_error_ = mischief.error_polls;
}

void Communicator::stall() { wait_until_ready(-1, 0, stop_.get()); }

NcclResult Communicator::start(const NcclUniqueId& id) {
  Mischief mischief;
  if (const int code = begin_call(count("init"), mischief); code != 0)
    return static_cast<NcclResult>(code);
  arm(mischief);
  joining_ = true;
  std::thread([self = shared_from_this(), place = std::string(id.internal), mischief] {
    self->join(place, mischief);
    const std::lock_guard lock(self->mutex_);
    self->joining_ = false;
    self->changed_.notify_all();
  }).detach();
  if (!blocking_) return NcclResult::kInProgress;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !joining_; });
  return state_;
}

void Communicator::join(const std::string& place, const Mischief& mischief) {
  if (mischief.hang || mischief.stubborn) return stall();
  if (mischief.late_ms > 0 &&
      wait_until_ready(-1, 0, stop_.get(), mischief.late_ms) == Ready::kStopped)
    return;
  Presence presence{.rank = rank_, .size = size_};
  device_of_process().copy(presence.device, sizeof presence.device - 1);
  Meeting meeting = meet(place, presence, devices_may_be_shared(), stop_.get());
  switch (meeting.met) {
    case Met::kYes: {
      const std::lock_guard lock(mutex_);
      peers_ = std::move(meeting.peers);
      break;
    }
    case Met::kStopped:
      return;
    case Met::kGone:
      return set_state(NcclResult::kRemoteError, "bootstrap: a rank or the root has gone");
    case Met::kDisagreed:
      return set_state(NcclResult::kInvalidUsage, "bootstrap: ranks disagree about the group");
    case Met::kSameDevice:
      return set_state(NcclResult::kInvalidUsage, "Duplicate GPU detected : rank " +
                                                      std::to_string(rank_) + " and rank " +
                                                      std::to_string(meeting.other) +
                                                      " both on CUDA device " + presence.device);
  }
  set_state(NcclResult::kSuccess, "");
}

NcclResult Communicator::state(NcclResult* now) {
  const std::lock_guard lock(mutex_);
  if (polls_to_error_ >= 0 && polls_to_error_-- == 0) {
    state_ = error_to_come_;
    last_error_ = "an error that was asked for";
  }
  *now = state_;
  if (state_ != NcclResult::kSuccess) return NcclResult::kSuccess;
  const bool flushing = finalizing_ && turn_ <= issued_;
  if (flushing || (polls_in_progress_ > 0 && polls_in_progress_-- > 0))
    *now = NcclResult::kInProgress;
  return NcclResult::kSuccess;
}

NcclResult Communicator::register_memory(void* memory, std::size_t bytes, void** handle) {
  Mischief mischief;
  if (const int code = begin_call(count("register"), mischief); code != 0)
    return refuse(static_cast<NcclResult>(code), "refused because it was asked for");
  arm(mischief);
  const std::lock_guard lock(mutex_);
  if (const NcclResult ready = check_caller(); ready != NcclResult::kSuccess) return ready;
  registered_[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
  *handle = memory;
  if (blocking_) return NcclResult::kSuccess;
  polls_in_progress_ =
      mischief.hang ? std::numeric_limits<int>::max() : number("TANDEM_FAKE_NCCL_POLLS", 2);
  return NcclResult::kInProgress;
}

NcclResult Communicator::deregister_memory(void* handle) {
  const std::lock_guard lock(mutex_);
  if (const NcclResult ready = check_caller(); ready != NcclResult::kSuccess) return ready;
  if (registered_.erase(reinterpret_cast<std::uintptr_t>(handle)) == 1) return NcclResult::kSuccess;
  last_error_ = "ncclCommDeregister: it is not registered";
  return NcclResult::kInvalidArgument;
}

bool Communicator::holds(const void* memory) {
  const std::lock_guard lock(mutex_);
  return !aborted_ && is_registered(memory, 1);  // its end may be the next block
}

bool Communicator::is_registered(const void* memory, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  auto after = registered_.upper_bound(at);
  if (after == registered_.begin()) return false;
  const auto& [begin, size] = *--after;
  return at + bytes <= begin + size;
}

NcclResult Communicator::request(const Request& request, Mischief& mischief) {
  {
    const std::lock_guard lock(mutex_);
    if (const NcclResult ready = check_caller(); ready != NcclResult::kSuccess) return ready;
  }
  if (const int code = begin_call(count(request.op), mischief); code != 0)
    return refuse(static_cast<NcclResult>(code), "refused because it was asked for");
  if (request.peer < 0 || request.peer >= size_ || request.memory == nullptr)
    return refuse(NcclResult::kInvalidArgument, request.op + ": invalid argument");
  return NcclResult::kSuccess;
}

std::vector<Block> Communicator::blocks_of(const Request& request) {
  const std::lock_guard lock(mutex_);
  const Label label{.operation = request.op == "broadcast" ? 1u : 2u,
                    .root = request.op == "broadcast" ? request.peer : 0,
                    .bytes = request.bytes,
                    .registered = is_registered(request.memory, request.bytes) ? 1u : 0u};
  const bool to_all = request.op == "broadcast" && request.peer == rank_;
  std::vector<Block> blocks;
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_ && (to_all || peer == request.peer))
      blocks.push_back({.peer = peer,
                        .out = to_all || request.op == "send",
                        .memory = request.memory,
                        .label = label});
  return blocks;
}

NcclResult Communicator::issue(const std::vector<Request>& group, const Mischief& mischief) {
  std::vector<Block> blocks;
  std::function<void()> after = [] {};
  for (const Request& request : group) {
    if (request.op == "allreduce") {
      auto sum = std::make_shared<Sum>(request, rank_, size_);
      sum->append_blocks(blocks);
      after = [sum] { sum->finish(); };
      continue;
    }
    for (const Block& block : blocks_of(request)) blocks.push_back(block);
  }
  arm(mischief);
  std::uint64_t turn = 0;
  {
    const std::lock_guard lock(mutex_);
    turn = ++issued_;
    if (!blocking_) polls_in_progress_ = number("TANDEM_FAKE_NCCL_POLLS", 2);
  }
  enqueue(group.front().stream, [self = shared_from_this(), turn, blocks, mischief, after] {
    self->run(turn, blocks, mischief, after);
  });
  return blocking_ ? NcclResult::kSuccess : NcclResult::kInProgress;
}

void Communicator::run(std::uint64_t turn, const std::vector<Block>& blocks,
                       const Mischief& mischief, const std::function<void()>& after) {
  if (mischief.stubborn) block_forever();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return aborted_ || (turn_ == turn && !peers_.empty()); });
    if (aborted_) return;
    ++running_;
  }
  const Exchanged outcome = carry_out(blocks, mischief);
  if (outcome == Exchanged::kGone && number("TANDEM_FAKE_NCCL_SILENT", 0) == 0)
    set_state(NcclResult::kRemoteError, "socketProgress: Connection closed by remote peer");
  if (outcome == Exchanged::kGone || outcome == Exchanged::kMismatched) stall();
  if (outcome == Exchanged::kDone) after();
  if (outcome == Exchanged::kDone && mischief.die_after) die();
  const std::lock_guard lock(mutex_);
  --running_;
  turn_ += outcome == Exchanged::kDone ? 1 : 0;
  changed_.notify_all();
}

Exchanged Communicator::carry_out(const std::vector<Block>& blocks, const Mischief& mischief) {
  if (mischief.hang) {
    stall();
    return Exchanged::kStopped;
  }
  if (mischief.late_ms > 0 &&
      wait_until_ready(-1, 0, stop_.get(), mischief.late_ms) == Ready::kStopped)
    return Exchanged::kStopped;
  return exchange(blocks, peers_, mischief, stop_.get());
}

NcclResult Communicator::finalize() {
  Mischief mischief;
  if (const int code = begin_call(count("finalize"), mischief); code != 0)
    return static_cast<NcclResult>(code);
  arm(mischief);
  const std::lock_guard lock(mutex_);
  if (const NcclResult ready = check_caller(); ready != NcclResult::kSuccess) return ready;
  finalizing_ = true;
  if (mischief.hang) ++issued_;  // an operation that never ends
  return NcclResult::kInProgress;
}

NcclResult Communicator::destroy() {
  Mischief mischief;
  if (const int code = begin_call(count("destroy"), mischief); code != 0)
    return static_cast<NcclResult>(code);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !joining_ && turn_ > issued_; });
  peers_.clear();
  return NcclResult::kSuccess;
}

NcclResult Communicator::abort() {
  Mischief mischief;
  if (const int code = begin_call(count("abort"), mischief); code != 0)
    return static_cast<NcclResult>(code);
  ::eventfd_write(stop_.get(), 1);
  std::unique_lock lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !joining_ && running_ == 0; });
  peers_.clear();
  return NcclResult::kSuccess;
}

}  // namespace fake_nccl
