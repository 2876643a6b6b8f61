// The first byte of everything that travels on a link.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::runtime {

enum class PacketKind : std::uint8_t {
  kFrames = 1,  // a session's: header and frames (session.cc)
  kFence,       // a session's: a newer life exists
  kHello,       // client: who I am (wired Introduction)
  kWelcome,     // server: who I am, and the session's key (wired Welcome)
  kRefusal,     // server: never come back as you are (wired Error)
  kUnknown,     // server: introduce yourself first
  kHeartbeat,   // both: alive, and how the work goes (wired Heartbeat)
  kBye,         // both: closing, nothing more will come
};

inline std::string packet_of(PacketKind kind, std::string_view body = {}) {
  std::string packet(1, static_cast<char>(kind));
  packet.append(body);
  return packet;
}

}  // namespace tandem::runtime
