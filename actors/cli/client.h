// The surroundings of a command that talks to the controller's HTTP API: the connection, and the
// streams that the command writes to. Data goes to `out`, chatter to `err`, so that a pipe gets
// data alone.
#pragma once

#include <functional>
#include <iosfwd>

#include "actors/cli/api_client.h"

namespace tandem::cli {

// The connection and the streams of one command. The references outlive the command.
struct Client {
  ApiClient& api;
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;       // `out` is a terminal: watching redraws, tables fit its width
  std::function<int()> width;  // columns of `out` now, kUnlimitedWidth off a terminal
};

}  // namespace tandem::cli
