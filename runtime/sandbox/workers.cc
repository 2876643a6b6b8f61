#include "runtime/sandbox/workers.h"

#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/check.h"

namespace tandem::sandbox {

Workers::Workers(int threads) {
  int ends[2];
  CHECK(pipe2(ends, O_CLOEXEC) == 0);
  stop_read_ = OwnedFd(ends[0]);
  stop_write_ = OwnedFd(ends[1]);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    waiting_.clear();
  }
  stop_write_ = OwnedFd();  // the pipe's end makes the other one readable
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::post(Work work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void Workers::serve() {
  for (;;) {
    Work work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (ending_) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work(stop_read_.get());
  }
}

}  // namespace tandem::sandbox
