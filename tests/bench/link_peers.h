// The two ends of a link as the benchmarks make them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/link/link.h"
#include "runtime/link/remote.h"
#include "runtime/link/socket_folder.h"

namespace tandem::bench {

inline constexpr const char* kBuild = "bench";  // what both ends say in their Hello

// Parcels go to `directory`; `back` is the way back to a peer.
runtime::LinkCallbacks callbacks_of(
    runtime::Directory& directory,
    std::function<runtime::ParcelSender(const runtime::PeerId&)> back);

enum class Transport { kUnix, kTcpCurve };

// Where a benchmark's server listens, and how a child is told of it.
class Place {
 public:
  explicit Place(Transport transport);
  runtime::Binding binding();
  // "ipc://PATH", or "HOST:PORT SERVER_KEY SECRET_KEY": keys of this benchmark alone.
  std::string text(const runtime::Endpoint& bound) const;

 private:
  std::optional<runtime::SocketFolder> folder_;  // none: TCP with the keys
  runtime::CurveKeys server_;
  runtime::CurveClient client_;
};
runtime::Dial dial_of(const std::string& text);

// A client's link, made together with the sender that its callbacks need.
class Dialled {
 public:
  Dialled(runtime::IoThread& io, runtime::Directory& directory, runtime::Dial server,
          const std::string& name, const std::string& opaque = "");
  runtime::ParcelSender sender();

 private:
  std::optional<runtime::LinkClient> link_;
};

}  // namespace tandem::bench
