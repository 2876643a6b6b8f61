#include "tests/bench/link_peers.h"

#include <utility>

namespace tandem::bench {

using runtime::Hello;
using runtime::PeerId;

runtime::LinkCallbacks callbacks_of(runtime::Directory& directory,
                                    std::function<runtime::ParcelSender(const PeerId&)> back) {
  return {.on_parcel = [&directory, back = std::move(back)](
                           const PeerId& from,
                           std::string& frame) { return directory.deliver(frame, back(from)); },
          .on_up = [](const PeerId&, const Hello&) {},
          .on_down = [](const PeerId&, const runtime::Down&) {}};
}

Dialled::Dialled(runtime::IoThread& io, runtime::Directory& directory,
                 const runtime::Endpoint& server, const std::string& name,
                 const std::string& opaque) {
  link_.emplace(io, server,
                Hello{.name = name, .incarnation = {1}, .build = kBuild, .opaque = opaque},
                runtime::LinkOptions{},
                callbacks_of(directory, [back = sender()](const PeerId&) { return back; }));
  link_->start();
}

runtime::ParcelSender Dialled::sender() {
  return [this](std::string frame) { return link_->send(std::move(frame)); };
}

}  // namespace tandem::bench
