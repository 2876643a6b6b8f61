// The text that both ends of a link must have in common: the version of the link's own protocol,
// and the schema of all messages that controllers, agents, ranks and users' programs send each
// other. Two binaries with the same text understand each other, whoever built them; a link refuses
// others.
#pragma once

#include <string>

namespace tandem::messages {

// Raised by whoever changes the packets of links, the heads of parcels or the codec itself, and by
// whoever changes bytes that processes of a job exchange beside links: payloads, weights over TCP,
// the collectives of a gang. Changes of messages change the hash instead.
inline constexpr int kWireProtocol = 2;

// "tandem-wire 2/9f86d081884c7d65".
std::string wire_build();

}  // namespace tandem::messages
