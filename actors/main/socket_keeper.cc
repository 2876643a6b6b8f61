#include "actors/main/socket_keeper.h"

#include <string>

#include "runtime/base/log.h"

namespace tandem::app {
namespace {

constexpr Duration kKeepEvery = std::chrono::milliseconds(500);

}  // namespace

void SocketKeeper::handle(actor::Context& cx, KeepNow) {
  const auto kept = sockets_.with([&](auto& folder) { return folder->keep(cx.now()); });
  if (!kept && !lost_)
    tell("the folder of sockets is gone, and no actor can be started before it is back: " +
         kept.error().message + ": " + kept.error().where);
  if (kept && *kept == link::SocketFolder::Kept::kMadeAgain)
    tell("another program removed the folder of sockets; it has been made again");
  else if (kept && lost_)
    tell("the folder of sockets is back");
  lost_ = !kept;
  // Repeats for ever; the system's end stops it.
  cx.after(kKeepEvery, [this](actor::Context& then) { handle(then, KeepNow{}); });
}

void SocketKeeper::tell(const std::string& message) {
  log::warn("event=sockets message=\"{}\"", message);
  if (controller_.tell(controller::ProcessNews{message}) != actor::Delivery::kAccepted)
    log::error("event=news_lost message=\"{}\"", message);  // and no event says it
}

}  // namespace tandem::app
