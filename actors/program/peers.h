// How an actor of a user's program finds the other actors of its job, by name.
//
//   Ref<Board::Inbox> board = start.peers.find<Board::Inbox>("board/0");
//   cx.ask(board, Best{}, 2s, [this](Context&, Result<Score> best) { … });
//
// A Ref can be had before its actor runs, and stays valid when the actor is started again. A
// message is delivered at most once: a told message is lost if the actor is not running, and an ask
// ends with kUnreachable, whose message names the actor, if it is not running or ends before its
// answer. An ask of an actor whose inbox is another type ends as if that actor were not there.
// Messages from one actor to another arrive in the order in which they were sent.
#pragma once

#include <string>
#include <utility>

#include "runtime/actor/ref.h"
#include "runtime/link/forwarder.h"
#include "runtime/link/remote.h"
#include "runtime/wire/schema.h"

namespace tandem {

// A value, cheap to copy; usable from any thread while the process's actors run.
class Peers {
 public:
  // Finds nobody: every message is refused.
  Peers() = default;
  // `directory` outlives the Peers and the Refs that they make; `out` leads to the controller.
  Peers(std::string job, link::Directory& directory, link::ParcelSender out)
      : job_(std::move(job)), directory_(&directory), out_(std::move(out)) {}

  // `name` is "board/0" or "JOB/board/0"; other jobs cannot be reached.
  template <class Inbox>
  actor::Ref<Inbox> find(const std::string& name) const {
    if (!directory_) return {};
    const std::string actor = full_name(name);
    return directory_->remote<Inbox>(
        {link::inbox_name(actor, wire::schema_hash(wire::wire_schema<Inbox>())), {}}, out_,
        ActorId{actor, {}});
  }

  // "board/0" -> "JOB/board/0"; a name with its job stays.
  std::string full_name(const std::string& name) const {
    return name.starts_with(job_ + "/") ? name : job_ + "/" + name;
  }

 private:
  std::string job_;
  link::Directory* directory_ = nullptr;
  link::ParcelSender out_;
};

}  // namespace tandem
