// Threads for work that waits for programs: run() blocks, and an actor's turn must not.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/base/file.h"

namespace tandem::sandbox {

class Workers {
 public:
  // `stop` becomes readable when the workers are to end: the work then returns soon (Run::stop).
  using Work = std::function<void(int stop)>;

  explicit Workers(int threads);
  ~Workers();  // drops work that has not begun, stops what has, and waits for it
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void post(Work work);  // in the order of the calls; from any thread

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> waiting_;  // guarded by mutex_
  bool ending_ = false;       // guarded by mutex_
  OwnedFd stop_read_, stop_write_;
  std::vector<std::thread> threads_;
};

}  // namespace tandem::sandbox
