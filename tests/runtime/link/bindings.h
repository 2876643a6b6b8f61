// Where tests listen: a Unix socket, or loopback TCP with keys that the test knows.
#pragma once

#include <utility>

#include "runtime/link/curve.h"
#include "runtime/link/socket_folder.h"

namespace tandem::link {

// A Unix socket that no earlier call returned; the folder goes when the program ends.
inline Binding here() {
  static SocketFolder folder = SocketFolder::make().value();
  return {folder.next(), std::nullopt};
}

// A server on any free port, and the keys with which a client may come.
struct GuardedPort {
  CurveKeys server = make_curve_keys();
  CurveClient client{server.public_key, make_curve_keys()};
  Binding binding() const { return {{}, CurveServer{server.secret_key, {client.own.public_key}}}; }
};

}  // namespace tandem::link
