// A communicator of the fake NCCL. It refuses uses that NCCL's manual forbids and NCCL itself does
// not notice: all calls on one thread, none while one is in progress.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/collective/nccl_api.h"
#include "tests/runtime/collective/fake_nccl/exchange.h"
#include "tests/runtime/collective/fake_nccl/faults.h"

namespace fake_nccl {

using tandem::collective::NcclConfig;
using tandem::collective::NcclResult;
using tandem::collective::NcclUniqueId;

int version();  // $TANDEM_FAKE_NCCL_VERSION, else 22809

// One call of ncclBroadcast, ncclAllReduce (a sum of f32, in place), ncclSend or ncclRecv.
struct Request {
  std::string op;
  void* memory = nullptr;
  std::size_t bytes = 0;
  int peer = 0;
  void* stream = nullptr;
};

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  Communicator(int rank, int size, bool blocking);

  NcclResult start(const NcclUniqueId& id);
  NcclResult state(NcclResult* now);  // ncclCommGetAsyncError
  // Counts the call and does its faults; kSuccess: it goes on.
  NcclResult request(const Request& request, Mischief& mischief);
  NcclResult issue(const std::vector<Request>& group, const Mischief& mischief);
  // Registers memory that ncclMemAlloc gave.
  NcclResult register_memory(void* memory, std::size_t bytes, void** handle);
  NcclResult deregister_memory(void* handle);
  bool holds(const void* memory);  // it is registered, and the communicator at work
  NcclResult finalize();
  NcclResult destroy();
  NcclResult abort();

  int rank() const { return rank_; }
  int size() const { return size_; }
  const char* last_error();

 private:
  NcclResult refuse(NcclResult result, const std::string& why);
  NcclResult check_caller();  // `mutex_` held
  Call count(const std::string& op);
  bool is_registered(const void* memory, std::size_t bytes);  // `mutex_` held
  void join(const std::string& place, const Mischief& mischief);
  void arm(const Mischief& mischief);
  std::vector<Block> blocks_of(const Request& request);
  // `after` runs once the blocks are there.
  void run(std::uint64_t turn, const std::vector<Block>& blocks, const Mischief& mischief,
           const std::function<void()>& after);
  Exchanged carry_out(const std::vector<Block>& blocks, const Mischief& mischief);
  void set_state(NcclResult result, const std::string& why);
  void stall();  // until an abort

  const int rank_;
  const int size_;
  const bool blocking_;
  const int index_;  // among those of the process, from 1
  Fd stop_;          // an eventfd, readable after an abort

  std::mutex mutex_;
  std::condition_variable changed_;
  bool joining_ = false;  // a thread does
  std::vector<Fd> peers_;
  std::thread::id caller_;
  std::map<std::string, int> calls_;
  std::map<std::uintptr_t, std::size_t> registered_;  // bytes by the address
  NcclResult state_ = NcclResult::kInProgress;
  std::string last_error_;
  std::string last_error_told_;
  int polls_in_progress_ = 0;  // so many more of a call that takes a while
  int polls_to_error_ = -1;    // -1: none is to come
  NcclResult error_to_come_ = NcclResult::kRemoteError;
  bool finalizing_ = false;
  bool aborted_ = false;
  std::uint64_t issued_ = 0;
  std::uint64_t turn_ = 1;  // the number of the operation that may use the sockets
  int running_ = 0;
};

}  // namespace fake_nccl
