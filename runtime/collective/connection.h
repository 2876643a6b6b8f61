// Stream sockets (Unix or TCP) as the socket collective uses them: frames over non-blocking
// sockets, each wait with a deadline. Internal to runtime/collective. Both ends are one binary on
// one kind of machine, so a frame's header travels as it is in memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/collective/call.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/gang_spec.h"
#include "runtime/collective/stream.h"
#include "runtime/link/endpoint.h"
#include "runtime/link/port_range.h"

namespace tandem::collective {

// kData: part of a call. kAbort: why the sender gives up; the last frame. kWelcome: rank 0 accepts
// a rank. kHeartbeat: rank 0's progress.
enum class FrameKind : std::uint32_t { kData = 1, kAbort, kWelcome, kHeartbeat };

struct FrameHeader {
  std::uint32_t magic = 0;
  FrameKind kind = FrameKind::kData;
  Call call;                   // kData
  std::uint64_t sequence = 0;  // kData: which call of this gang, from 1
  // The size of the payload that follows; the payload of an abort is its text.
  std::uint32_t bytes = 0;
  std::uint32_t error_code = 0;  // kAbort: an ErrorCode
};

static_assert(sizeof(FrameHeader) == 40);  // no padding

inline constexpr std::uint32_t kFrameMagic = 0x54474e34;  // another one with each change of frames
inline constexpr std::size_t kFrameBytesMax = std::size_t{256} << 10;
inline constexpr std::size_t kAbortTextBytesMax = 4096;
static_assert(kFrameBytesMax % sizeof(float) == 0 && kFrameBytesMax >= kBlobBytesMax);

// The payload of a kHeartbeat: the progress of rank 0's process (a ProgressReport of runtime/link).
// Such a frame may come between any two others.
struct Heartbeat {
  std::uint64_t counter = 0;
  char phase[24] = {};  // cut to fit; ends with a zero
  bool operator==(const Heartbeat&) const = default;
};
static_assert(sizeof(Heartbeat) == 32);  // no padding

Heartbeat make_heartbeat(std::uint64_t counter, std::string_view phase);
std::string_view phase_of(const Heartbeat& heartbeat);  // safe on whatever a peer has sent
std::string frame_of(const Heartbeat& heartbeat);       // with its header

// A block of bytes travels as frames of kFrameBytesMax and a rest; an empty block as one empty
// frame, so that both sides always learn of each other's call.
std::size_t frames_of(std::size_t bytes);

template <class Byte>
std::span<Byte> frame_part(std::span<Byte> block, std::size_t frame) {
  const std::size_t offset = frame * kFrameBytesMax;
  return block.subspan(offset, std::min(kFrameBytesMax, block.size() - offset));
}

// The handshake by which two ranks prove to each other that they know the gang's secret, which
// itself does not travel. Rank 0 sends a Challenge; the other rank answers with a Hello, whose
// proof covers both nonces; and rank 0's welcome frame carries a proof of its own. A proof is an
// HMAC. A nonce is used once, so a proof that was overheard is of no use.
inline constexpr std::size_t kNonceBytes = 64;  // a random_secret()
inline constexpr std::size_t kProofBytes = 64;  // an hmac_hex()

// Rank 0 sends it to a dialler before anything else.
struct Challenge {
  std::uint32_t magic = kFrameMagic;
  char nonce[kNonceBytes] = {};
};

// A rank's claim to a place in the gang.
struct Hello {
  std::uint32_t magic = kFrameMagic;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  char nonce[kNonceBytes] = {};
  char proof[kProofBytes] = {};
};

Challenge make_challenge();
// The answer of rank `rank` of `size` to a challenge.
Hello hello_of(int rank, int size, std::string_view secret, const Challenge& challenge);
bool proves(const Hello& hello, std::string_view secret, const Challenge& challenge);
// The proof in rank 0's welcome to a hello that it accepts.
std::string welcome_proof(std::string_view secret, const Hello& hello, const Challenge& challenge);
// The secret of all these proofs. Ranks that were told different things of the gang's privacy have
// different ones, and do not meet.
std::string meeting_secret(const GangSpec& spec);
// Seals what follows the welcome, where the gang's privacy asks for it. The keys are new for each
// connection, by both nonces. `leads`: this is rank 0's end.
void seal(Stream& stream, bool leads, const GangSpec& spec, const Hello& hello,
          const Challenge& challenge);

// Listens at `at`; `bound` gets the address, in which a port 0 is replaced by the one of `ports`
// that was chosen. Errors: kUnreachable, with the address, as of dial_stream().
Result<OwnedFd> listen_stream(const link::Endpoint& at, const link::PortRange& ports,
                              link::Endpoint* bound);
Result<OwnedFd> dial_stream(const link::Endpoint& to, Time deadline);
void prepare_stream(int fd);  // sets up an accepted socket: no delay, where it is TCP

std::span<std::byte> bytes_of(FrameHeader& header);
std::span<const std::byte> bytes_of(const FrameHeader& header);

// Sends an abort frame with the error, as far as the socket takes it without waiting, and ends
// sending.
void send_abort(Stream& stream, const Error& error);

// Whether a header is one of this protocol and within the limits. Its other fields are a peer's
// word, and are compared with the call under way before they are used.
bool plausible(const FrameHeader& header);
Error no_frame_of_ours(int rank);  // the rank sent something that is not plausible here

// The error that an abort frame carries. Its header has been received; the text is received here,
// and replaced by a general one if it does not come by the deadline.
Error receive_abort(Stream& stream, const FrameHeader& header, Time deadline);

}  // namespace tandem::collective
