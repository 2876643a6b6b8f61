#include "tests/bench/link_peers.h"

#include <utility>

#include "tests/bench/must.h"

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

Place::Place(Transport transport) {
  if (transport == Transport::kUnix) folder_.emplace(must(runtime::SocketFolder::make()));
  server_ = runtime::make_curve_keys();
  client_ = {server_.public_key, runtime::make_curve_keys()};
}

runtime::Binding Place::binding() {
  if (folder_) return {folder_->next(), std::nullopt};
  return {{}, runtime::CurveServer{server_.secret_key, {client_.own.public_key}}};
}

std::string Place::text(const runtime::Endpoint& bound) const {
  return to_string(bound) + (folder_ ? "" : " " + to_text(client_));
}

runtime::Dial dial_of(const std::string& text) {
  const auto end = text.find(' ');
  runtime::Dial dial{must(runtime::parse_endpoint(text.substr(0, end))), std::nullopt};
  if (end != std::string::npos) dial.keys = must(runtime::parse_curve_client(text.substr(end + 1)));
  return dial;
}

Dialled::Dialled(runtime::IoThread& io, runtime::Directory& directory, runtime::Dial server,
                 const std::string& name, const std::string& opaque) {
  link_.emplace(io, std::move(server),
                Hello{.name = name, .incarnation = {1}, .build = kBuild, .opaque = opaque},
                runtime::LinkOptions{},
                callbacks_of(directory, [back = sender()](const PeerId&) { return back; }));
  link_->start();
}

runtime::ParcelSender Dialled::sender() {
  return [this](std::string frame) { return link_->send(std::move(frame)); };
}

}  // namespace tandem::bench
