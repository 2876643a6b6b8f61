// The packets of a peer of a link: its introduction, its frames, and the parcels within them, whose
// messages go to a port. The first byte chooses: packets to a real server over a Unix socket,
// packets to one end of a session, or a parcel to a directory. Checked: the server lets an honest
// peer in after them; of a peer it hears nothing before on_up and nothing after on_down (LK-1); a
// session delivers no more frames than it granted, and its other end goes on (SE-5); a parcel ends
// as it should, whatever it holds (RM-1).
#include <memory>
#include <set>

#include "runtime/base/check.h"
#include "runtime/link/link_traffic.h"
#include "runtime/link/remote.h"
#include "runtime/wire/codec.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/raw_peer.h"
#include "tests/runtime/link/bindings.h"

namespace fuzz_example {

struct Note {
  std::string text;
};
TANDEM_WIRE(Note, text)

struct Halve {
  using Reply = Note;
  std::int32_t number = 0;
};
TANDEM_WIRE(Halve, number)

using Inbox = std::variant<Note, tandem::actor::Ask<Halve>>;

}  // namespace fuzz_example

namespace tandem::fuzz {
namespace {

using namespace tandem::link;

constexpr std::size_t kPacketsMax = 16;
constexpr const char* kBuild = "b";
constexpr Epoch kEpoch{7};

Hello hello_of(const std::string& name) {
  return {.name = name, .incarnation = {1}, .pid = 1, .build = kBuild};
}

// Takes every message, and answers no ask.
class Port final : public actor::Target<fuzz_example::Inbox> {
 public:
  actor::Delivery post(fuzz_example::Inbox) override { return actor::Delivery::kAccepted; }
};

void give_parcel(std::string_view frame) {
  Directory directory;
  const auto port = std::make_shared<Port>();
  const actor::Ref<fuzz_example::Inbox> ref({"port", {1}}, port);
  directory.expose("port", ref);
  directory.expose("guarded", ref, Door<fuzz_example::Inbox>([](const ActorId&, const auto&) {
                     return Result<void>(Error{ErrorCode::kUnauthorised, "no"});
                   }));
  const ParcelSender back = [](std::string answer) {
    tandem::wire::WireReader in(answer, {});
    ParcelHead head;
    CHECK(decode_from(in, head) && head.answers != 0);
    return Sent::kAccepted;
  };
  CHECK(directory.deliver(frame, back, {"fuzz", {1}}) != Offer::kLater);
}

void give_session(Pieces& pieces) {
  const SessionKey key{kEpoch, {1}, 1};
  SessionLimits limits;
  limits.window_frames_max = 4;
  Session session(key, limits);
  Time now{};
  std::size_t delivered_frames = 0, released = 0;
  for (std::size_t given = 0; !pieces.empty() && given < kPacketsMax; ++given) {
    const std::uint8_t turn = pieces.byte();
    if (turn & 1) (void)session.send(std::string(turn, 'f'));
    if (turn & 2) session.reconnected();
    now.ns += std::int64_t{turn} << 24;
    std::vector<std::string> delivered;
    std::optional<std::string> answer;
    const Received received = session.receive(pieces.bytes(), now, delivered, answer);
    CHECK(delivered.empty() || received == Received::kAccepted);
    CHECK(answer.has_value() == (received == Received::kStale));
    if (answer) CHECK(Session::fence_key(*answer) == key);
    delivered_frames += delivered.size();
    CHECK(delivered_frames - released <= limits.window_frames_max);
    if (turn & 4) session.release(static_cast<std::uint32_t>(delivered_frames - released), now);
    if (turn & 4) released = delivered_frames;
    // What it sends, an honest other end takes as a packet.
    Session other(key, limits);
    if (const auto packet = session.next_packet(now))
      CHECK(other.receive(*packet, now, delivered, answer) != Received::kStale);
  }
}

// LK-1. Its callbacks come on the thread of the IoThread.
struct Witness {
  LinkCallbacks callbacks() {
    return {.on_parcel =
                [this](const ActorId& peer, std::string& frame) {
                  CHECK(up.contains(peer));
                  return frame.starts_with("refuse") ? Offer::kRefused : Offer::kTaken;
                },
            .on_up = [this](const ActorId& peer, const Hello&) { CHECK(up.insert(peer).second); },
            .on_down = [this](const ActorId& peer, const Down&) { CHECK(up.erase(peer) == 1); }};
  }
  std::set<ActorId> up;
};

void ask_server(Pieces& pieces) {
  static IoThread io;
  Witness witness;
  const auto server = *LinkServer::listen(
      io, {here()}, {.name = "server", .incarnation = {kEpoch.value}, .build = kBuild}, {},
      witness.callbacks());
  server->start();
  {
    RawPeer peer(server->endpoint(), "peer#1~n");
    RawPeer honest(server->endpoint(), "honest#1~n");
    for (std::size_t sent = 0; !pieces.empty() && sent < kPacketsMax; ++sent)
      peer.send(pieces.bytes());
    honest.send(
        packet_of(PacketKind::kHello, tandem::wire::encode(Introduction{hello_of("honest"), 1})));
    const std::string welcome = honest.receive().front();
    CHECK(welcome.front() == static_cast<char>(PacketKind::kWelcome));
    const auto body = tandem::wire::decode<Welcome>(std::string_view(welcome).substr(1));
    CHECK(body.has_value() && body->hello.name == "server");
  }
}

}  // namespace

void link(std::string_view input) {
  Pieces pieces(input);
  switch (pieces.byte() % 3) {
    case 0:
      return ask_server(pieces);
    case 1:
      return give_session(pieces);
    case 2:
      return give_parcel(pieces.rest());
  }
}

}  // namespace tandem::fuzz
