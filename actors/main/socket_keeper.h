// Keeps the folder of sockets that the ranks of this host dial for as long as the controller's
// process lasts, and tells people when another program has removed it. Not here: the files of the
// sockets, which each ZmqSocket makes again (runtime/link/zmq_socket.h).
#pragma once

#include <optional>
#include <variant>

#include "actors/controller/controller.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/actor/ref.h"
#include "runtime/base/guarded.h"
#include "runtime/link/socket_folder.h"

namespace tandem::app {

struct KeepNow {};  // sent once; the keeper repeats it

class SocketKeeper {
 public:
  using Inbox = std::variant<KeepNow>;
  using Sockets = Guarded<std::optional<link::SocketFolder>>;  // the folder is set

  // `sockets` outlives the keeper.
  SocketKeeper(Sockets& sockets, actor::Ref<controller::Controller::Inbox> controller)
      : sockets_(sockets), controller_(std::move(controller)) {}

  void handle(actor::Context& cx, KeepNow);

 private:
  void tell(const std::string& message);

  Sockets& sockets_;
  const actor::Ref<controller::Controller::Inbox> controller_;
  bool lost_ = false;
};

static_assert(actor::Actor<SocketKeeper>);

}  // namespace tandem::app
