// CURVE (rfc.zeromq.org/spec/26), by which ZeroMQ sockets over TCP encrypt and know each other:
// keys, who dials and who listens with them, and the files in which a cluster keeps them. Keys are
// Z85 text of 40 characters. A Unix socket needs no keys: only its owner can open its folder.
//
// Files, below the state folder:
//   controller.secret        the controller's secret key; stays where the controller runs
//   keys/controller.public   these two are for nodes: copy keys/ to another host's TANDEM_HOME and
//   keys/node.secret         start `tandem node` there
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/link/endpoint.h"
#include "runtime/link/port_range.h"

namespace tandem::link {

struct CurveKeys {
  std::string public_key, secret_key;
};
// A new random key pair.
CurveKeys make_curve_keys();
// The key pair of a secret key. kInvalid: the text is no key.
Result<CurveKeys> curve_keys_of(const std::string& secret_key);

struct CurveServer {
  std::string secret_key;
  std::vector<std::string> clients;  // public keys; a client with any other key may not connect
};
struct CurveClient {
  std::string server_key;  // the server's public key; a server without its secret is not talked to
  CurveKeys own;
};

// Where a socket listens. TCP without keys is refused.
struct Binding {
  Endpoint at;
  // These are not used for a Unix socket.
  std::optional<CurveServer> keys;
  PortRange ports = {};  // of which one is taken where at.port is 0
};

// Whom a socket dials.
struct Dial {
  Endpoint to;
  std::optional<CurveClient> keys;
};

// The controller's side; makes all files that are missing. Errors: as of runtime/base/secret.h.
Result<CurveServer> controller_keys(const std::filesystem::path& home);
// A node's side, from keys/. Errors: kUnauthorised where a file is missing or not private.
Result<CurveClient> node_keys(const std::filesystem::path& home);

// A node's keys as one piece of text, in which form its ranks inherit them, and back again.
// kInvalid: the text is not two keys.
std::string to_text(const CurveClient& keys);
Result<CurveClient> parse_curve_client(const std::string& text);

}  // namespace tandem::link
