// The requests of a subscriber that fetches weights, which go to a real publisher's server over
// TCP, and the heads of the answers of a publisher. The first byte chooses. Checked: a head that
// decodes, encodes to bytes that decode to the same; every answer is one of the protocol's, and a
// chunk lies inside the arena and has its bytes; another subscriber is served meanwhile (TW-3).
#include <memory>

#include "runtime/base/check.h"
#include "runtime/weights/tcp_messages.h"
#include "runtime/weights/weight_family.h"
#include "runtime/wire/codec.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/raw_peer.h"

namespace tandem::fuzz {
namespace {

using namespace tandem::weights;

constexpr std::uint64_t kArenaBytes = 4096;
constexpr std::size_t kMessagesMax = 8;
constexpr int kInputsPerServer = 100;  // each is two subscribers of the 256 that a server has
constexpr tandem::wire::WireLimits kLimits{.message_bytes_max = kWeightHeadBytesMax,
                                           .decoded_bytes_max = kWeightHeadBytesMax};

std::byte byte_at(std::uint64_t offset) { return static_cast<std::byte>(offset * 7); }

template <class T>
void round_trip(std::string_view bytes) {
  const auto value = tandem::wire::decode<T>(bytes, kLimits);
  if (!value) return;
  const std::string encoded = tandem::wire::encode(*value);
  const auto again = tandem::wire::decode<T>(encoded, kLimits);
  CHECK(again.has_value() && tandem::wire::encode(*again) == encoded);
}

struct Server {
  Server() {
    config = {.type = WeightsType::kTcp,
              .name = weights_name("fuzz", scratch_folder()),
              .layout = {.arena_bytes = kArenaBytes, .hash = 17, .manifest_json = "{}\n"},
              .serving = Serving{}};
    publisher = *make_publisher(config);
    std::vector<std::byte> arena(kArenaBytes);
    for (std::size_t i = 0; i < arena.size(); ++i) arena[i] = byte_at(i);
    CHECK(publisher->publish({3}, arena, std::chrono::seconds(8)).has_value());
    const auto source = publisher->source().value();
    endpoint = *link::parse_endpoint(source.endpoint);
    keys = *link::parse_curve_client(source.server_key + "\n" + source.client_key + "\n");
  }
  ~Server() {
    publisher.reset();
    CHECK(remove_weights(config).has_value());
  }
  WeightsConfig config;
  std::unique_ptr<WeightPublisher> publisher;
  link::Endpoint endpoint;
  link::CurveClient keys;
  int inputs = 0;
};

void check_answer(const std::vector<std::string>& parts) {
  const auto reply = tandem::wire::decode<WeightReply>(parts.front(), kLimits);
  CHECK(reply.has_value());
  const auto* chunk = std::get_if<WeightChunk>(&*reply);
  CHECK(parts.size() == (chunk ? 2u : 1u));
  if (!chunk) return;
  CHECK(chunk->offset <= kArenaBytes && parts[1].size() <= kArenaBytes - chunk->offset);
  for (std::size_t i = 0; i < parts[1].size(); ++i)
    CHECK(static_cast<std::byte>(parts[1][i]) == byte_at(chunk->offset + i));
}

void ask_server(Pieces& pieces) {
  static std::unique_ptr<Server> server;
  if (!server || ++server->inputs > kInputsPerServer) {
    server.reset();
    server = std::make_unique<Server>();
  }
  RawPeer peer(server->endpoint, "fuzz" + std::to_string(server->inputs), server->keys);
  RawPeer witness(server->endpoint, "witness" + std::to_string(server->inputs), server->keys);
  std::uint64_t probe = 0;
  for (std::size_t sent = 0; !pieces.empty() && sent < kMessagesMax; ++sent) {
    const std::string_view head = pieces.bytes();
    peer.send(head, pieces.bytes());
    witness.send(tandem::wire::encode(WeightRequest(WeightWatch{.probe = ++probe})));
    check_answer(witness.receive());
  }
  // A subscriber that broke the protocol gets no answer; what has come by now is looked at.
  while (const auto parts = peer.receive_now()) check_answer(*parts);
}

}  // namespace

void weights(std::string_view input) {
  Pieces pieces(input);
  switch (pieces.byte() % 3) {
    case 0:
      return ask_server(pieces);
    case 1:
      return round_trip<WeightRequest>(pieces.rest());
    case 2:
      return round_trip<WeightReply>(pieces.rest());
  }
}

}  // namespace tandem::fuzz
