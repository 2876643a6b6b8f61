// The owner of a cluster is a process for which the others of the cluster work: `tandem run`. It
// holds the lock of a file (FileLock) as long as it lives. The others learn of its end from the
// kernel, at once and however it ends, and end too. They need not be its children: one that another
// of them has started again finds the owner by the file as well.
//
// A parent-death signal would not do: it comes when a thread of the parent ends, and only to its
// children.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "runtime/node/daemon.h"

namespace tandem::node {

// The variable by which a node tells its ranks, and those their children, the path of the file.
inline constexpr const char* kOwnerVariable = "TANDEM_OWNER";

class Owner {
 public:
  // The process that holds the lock of this file; where none does, the owner has ended.
  explicit Owner(const std::filesystem::path& lock);
  // The owner that kOwnerVariable tells; none where it is not set.
  static std::optional<Owner> of_environment();

  bool has_ended() const;

 private:
  friend class OwnerWatch;
  std::filesystem::path lock_;
  // None: it has ended, or it cannot be opened, as where this process has too many files open. The
  // lock tells which.
  std::optional<ProcessEnd> end_;
};

// Calls `ended`, once and on a thread of its own, when the owner has ended. After the destructor it
// is called no more; one that is under way is waited for.
class OwnerWatch {
 public:
  OwnerWatch(Owner owner, std::function<void()> ended);
  ~OwnerWatch();
  OwnerWatch(const OwnerWatch&) = delete;
  OwnerWatch& operator=(const OwnerWatch&) = delete;

 private:
  struct Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace tandem::node
