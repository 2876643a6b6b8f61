#include "tests/bench/link_peers.h"

#include <utility>

#include "tests/bench/must.h"

namespace tandem::bench {

using link::Hello;

link::LinkCallbacks callbacks_of(link::Directory& directory,
                                 std::function<link::ParcelSender(const ActorId&)> back) {
  return {.on_parcel = [&directory, back = std::move(back)](
                           const ActorId& from,
                           std::string& frame) { return directory.deliver(frame, back(from)); },
          .on_up = [](const ActorId&, const Hello&) {},
          .on_down = [](const ActorId&, const link::Down&) {}};
}

ServerAddress::ServerAddress(Transport transport) {
  if (transport == Transport::kUnix) folder_.emplace(must(link::SocketFolder::make()));
  server_ = link::make_curve_keys();
  client_ = {server_.public_key, link::make_curve_keys()};
}

link::Binding ServerAddress::binding() {
  if (folder_) return {folder_->next(), std::nullopt};
  return {{}, link::CurveServer{server_.secret_key, {client_.own.public_key}}};
}

std::string ServerAddress::text(const link::Endpoint& bound) const {
  return to_string(bound) + (folder_ ? "" : " " + to_text(client_));
}

link::Dial dial_of(const std::string& text) {
  const auto end = text.find(' ');
  link::Dial dial{must(link::parse_endpoint(text.substr(0, end))), std::nullopt};
  if (end != std::string::npos) dial.keys = must(link::parse_curve_client(text.substr(end + 1)));
  return dial;
}

Dialled::Dialled(link::IoThread& io, link::Directory& directory, link::Dial server,
                 const std::string& name, const std::string& opaque) {
  link_.emplace(io, std::move(server),
                Hello{.name = name, .incarnation = {1}, .build = kBuild, .opaque = opaque},
                link::LinkOptions{},
                callbacks_of(directory, [back = sender()](const ActorId&) { return back; }));
  link_->start();
}

link::ParcelSender Dialled::sender() {
  return [this](std::string frame) { return link_->send(std::move(frame)); };
}

}  // namespace tandem::bench
