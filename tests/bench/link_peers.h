// The two ends of a link as the benchmarks make them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/net/link.h"
#include "runtime/net/remote.h"

namespace tandem::bench {

inline constexpr const char* kBuild = "bench";  // what both ends say in their Hello

// Parcels go to `directory`; `back` is the way back to a peer.
runtime::LinkCallbacks callbacks_of(
    runtime::Directory& directory,
    std::function<runtime::ParcelSender(const runtime::PeerId&)> back);

// A client's link, made together with the sender that its callbacks need.
class Dialled {
 public:
  Dialled(runtime::IoThread& io, runtime::Directory& directory, const runtime::Endpoint& server,
          const std::string& name, const std::string& opaque = "");
  runtime::ParcelSender sender();

 private:
  std::optional<runtime::LinkClient> link_;
};

}  // namespace tandem::bench
