// The first byte of every packet of a link, by which the receiver tells packets of a session
// (session.h) from those by which two ends introduce themselves and stay in touch (link_traffic.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::link {

// All peers of a link have the same Hello::build, which whoever changes these numbers must change
// too. A number that is none of these is counted as malformed.
enum class PacketKind : std::uint8_t {
  kFrames = 1,  // a session's: header and frames (session.cc)
  kFence,       // a session's: a newer incarnation exists
  kHello,       // client: its name and incarnation (wired Introduction)
  kWelcome,     // server: its own, and the session's key (wired Welcome)
  kRefusal,     // server: this incarnation of the client is not let in (wired Error)
  kUnknown,     // server: it knows no session of this sender (wired Epoch, its own)
  kHeartbeat,   // both: the sender runs, and how far its work is (wired Heartbeat)
  kBye,         // both: the sender closes the link, and nothing follows
};

// A packet of this kind. `body` is encoded already; only packets outside sessions are made by this.
inline std::string packet_of(PacketKind kind, std::string_view body = {}) {
  std::string packet(1, static_cast<char>(kind));
  packet.append(body);
  return packet;
}

}  // namespace tandem::link
