// The two ends of a link as the benchmarks make them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/link/link.h"
#include "runtime/link/remote.h"
#include "runtime/link/socket_folder.h"

namespace tandem::bench {

inline constexpr const char* kBuild = "bench";  // the build that both ends say in their Hello

// Parcels go to `directory`; `back` is the way back to a peer.
link::LinkCallbacks callbacks_of(link::Directory& directory,
                                 std::function<link::ParcelSender(const ActorId&)> back);

enum class Transport { kUnix, kTcpCurve };

// Where a benchmark's server listens, and how a child is told of it.
class ServerAddress {
 public:
  explicit ServerAddress(Transport transport);
  link::Binding binding();
  // "ipc://PATH", or "HOST:PORT SERVER_KEY SECRET_KEY": keys of this benchmark alone.
  std::string text(const link::Endpoint& bound) const;

 private:
  std::optional<link::SocketFolder> folder_;  // none: TCP with the keys
  link::CurveKeys server_;
  link::CurveClient client_;
};
link::Dial dial_of(const std::string& text);

// A client's link, made together with the sender that its callbacks need.
class Dialled {
 public:
  Dialled(link::IoThread& io, link::Directory& directory, link::Dial server,
          const std::string& name, const std::string& opaque = "");
  link::ParcelSender sender();

 private:
  std::optional<link::LinkClient> link_;
};

}  // namespace tandem::bench
