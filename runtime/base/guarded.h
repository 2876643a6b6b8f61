// A value that several threads share: reachable only while its mutex is held.
#pragma once

#include <mutex>
#include <utility>

namespace tandem {

template <class T>
class Guarded {
 public:
  // Calls `use(value)` with the mutex held; `use` must not wait for anything.
  template <class Use>
  decltype(auto) with(Use&& use) {
    const std::lock_guard lock(mutex_);
    return std::forward<Use>(use)(value_);
  }

 private:
  std::mutex mutex_;
  T value_{};
};

}  // namespace tandem
