#include "runtime/link/curve.h"

#include <array>
#include <sstream>
#include <zmq.hpp>

#include "runtime/base/file.h"
#include "runtime/base/secret.h"

namespace tandem::link {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeyText = 40;  // Z85: five characters for four of a key's 32 bytes
using KeyText = std::array<char, kKeyText + 1>;

// The key pair whose secret is in the file `path`, which is made where it does not exist.
Result<CurveKeys> kept_keys(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    if (auto made = write_secret(path, make_curve_keys().secret_key + "\n"); !made)
      return made.error();
  }
  const auto secret = read_secret(path);
  if (!secret) return secret.error();
  auto keys = curve_keys_of(*secret);
  if (keys) return keys;
  Error error = keys.error();
  error.where = path.string();
  return error;
}

}  // namespace

CurveKeys make_curve_keys() {
  KeyText public_key, secret_key;
  CHECK(zmq_curve_keypair(public_key.data(), secret_key.data()) == 0);
  return {public_key.data(), secret_key.data()};
}

Result<CurveKeys> curve_keys_of(const std::string& secret_key) {
  KeyText public_key;
  if (secret_key.size() != kKeyText ||
      zmq_curve_public(public_key.data(), secret_key.c_str()) != 0) {
    return Error{ErrorCode::kInvalid, "this is no CURVE key", "",
                 "remove the file and start the controller again; a new one is made"};
  }
  return CurveKeys{public_key.data(), secret_key};
}

Result<CurveServer> controller_keys(const fs::path& home) {
  if (auto made = make_private_directory(home / "keys"); !made) return made.error();
  const auto own = kept_keys(home / "controller.secret");
  if (!own) return own.error();
  const auto node = kept_keys(home / "keys" / "node.secret");
  if (!node) return node.error();
  const fs::path told = home / "keys" / "controller.public";
  const auto before = read_file(told);
  if (!before || *before != own->public_key + "\n") {
    if (auto done = write_file_atomic(told, own->public_key + "\n"); !done) return done.error();
  }
  return CurveServer{own->secret_key, {node->public_key}};
}

Result<CurveClient> node_keys(const fs::path& home) {
  const char* const help = "copy TANDEM_HOME/keys from the controller's host, with its modes";
  const auto server = read_file(home / "keys" / "controller.public");
  const auto secret = read_secret(home / "keys" / "node.secret");
  if (!server || !secret) {
    const Error& why = server ? secret.error() : server.error();
    return Error{ErrorCode::kUnauthorised, "this node has no keys of its cluster: " + why.message,
                 why.where, help};
  }
  auto keys = parse_curve_client(*server + *secret + "\n");
  if (keys) return keys;
  return Error{ErrorCode::kUnauthorised, keys.error().message, (home / "keys").string(), help};
}

std::string to_text(const CurveClient& keys) {
  return keys.server_key + "\n" + keys.own.secret_key + "\n";
}

Result<CurveClient> parse_curve_client(const std::string& text) {
  std::istringstream lines(text);
  CurveClient keys;
  std::string secret;
  lines >> keys.server_key >> secret;
  // Decoding is done only to see whether the server's key is Z85 text.
  std::array<std::uint8_t, 32> raw;
  const auto own = curve_keys_of(secret);
  if (!own || keys.server_key.size() != kKeyText ||
      zmq_z85_decode(raw.data(), keys.server_key.c_str()) == nullptr) {
    return Error{ErrorCode::kInvalid, "these are no keys of a cluster"};
  }
  keys.own = *own;
  return keys;
}

}  // namespace tandem::link
