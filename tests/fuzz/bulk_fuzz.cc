// The messages of a client of the bulk socket: each a head, and perhaps a second part. They go to a
// real server over a Unix socket, beside a payload that was stored before. Checked: each answer is
// one of the protocol's; the server still answers after them; and the payload that was stored has
// its bytes.
#include <memory>

#include "runtime/base/check.h"
#include "runtime/base/digest.h"
#include "runtime/payload/bulk_messages.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/raw_peer.h"
#include "tests/runtime/link/bindings.h"

namespace tandem::fuzz {
namespace {

using namespace payload;

constexpr SegmentLimits kLimits{.segment_bytes_max = 1 << 16, .bytes_max = 1 << 20};
constexpr std::size_t kMessagesMax = 16;
constexpr BulkRequest kLast{~std::uint64_t{0}};  // of a get that asks for another node's payload
constexpr std::string_view kKept = "a payload that was here before";

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct Stage {
  Stage() {
    const auto directory = scratch_folder() / "bulk";
    std::filesystem::remove_all(directory);
    store = *open_file_segments(directory, kLimits);
    const std::uint64_t sizes[] = {kKept.size()};
    const Extent at = store->reserve(sizes)->front();
    CHECK(store->write(at, 0, as_bytes(kKept)).has_value());
    kept = {"vm", at.segment, at.offset, at.bytes, checksum64(as_bytes(kKept))};
    store->commit(at, kept.checksum);
    server = *BulkServer::listen({link::here()}, "vm", *store);
    peer = std::make_unique<RawPeer>(server->endpoints().front(), "fuzz");
  }
  std::unique_ptr<SegmentStore> store;
  wire::PayloadRef kept;
  std::unique_ptr<BulkServer> server;
  std::unique_ptr<RawPeer> peer;
};

BulkMessage answer(RawPeer& peer) {
  const std::vector<std::string> parts = peer.receive();
  CHECK(parts.size() <= 2);
  auto message = tandem::wire::decode<BulkMessage>(parts.front());
  CHECK(message.has_value());
  return *std::move(message);
}

}  // namespace

void bulk(std::string_view input) {
  Stage stage;
  Pieces pieces(input);
  for (std::size_t sent = 0; !pieces.empty() && sent < kMessagesMax; ++sent) {
    const std::string_view head = pieces.bytes();
    stage.peer->send(head, pieces.bytes());
  }
  // The server takes the messages of a client in their order, so this answer is the last.
  wire::PayloadRef elsewhere = stage.kept;
  elsewhere.node = "elsewhere";
  stage.peer->send(tandem::wire::encode(BulkMessage(GetOpen{kLast, {elsewhere}})));
  for (;;) {
    const BulkMessage message = answer(*stage.peer);
    const auto* failed = std::get_if<Failed>(&message);
    if (failed && failed->request == kLast) break;
    CHECK(!std::holds_alternative<GetOpen>(message) && !std::holds_alternative<PutOpen>(message));
  }
  CHECK(stage.store->holds(stage.kept));
  std::string kept(kKept.size(), '\0');
  const auto to = std::as_writable_bytes(std::span(kept.data(), kept.size()));
  CHECK(stage.store->read({stage.kept.segment, stage.kept.offset, stage.kept.bytes}, 0, to)
            .has_value());
  CHECK(kept == kKept);
}

}  // namespace tandem::fuzz
