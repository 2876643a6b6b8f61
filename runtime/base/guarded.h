// A value that several threads share, together with the mutex that guards it. The value can be
// reached only through with(), so that no code forgets the mutex. Neither copied nor moved.
#pragma once

#include <mutex>
#include <utility>

namespace tandem {

// Example: `Guarded<std::map<K, V>> open; open.with([&](auto& map) { map.erase(key); });`
template <class T>
class Guarded {
 public:
  // Calls `use(value)` with the mutex held and returns its result. `use` must neither wait for
  // anything nor call with() of the same object, and must not let a reference to the value out.
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
