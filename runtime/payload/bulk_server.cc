// The server's end of the bulk socket: one Transfer per client and request, all on one IoThread.
//
// A put reserves room in the store with its first message, writes each chunk where it belongs as it
// comes, reads the whole back to verify the checksums, and only then commits (SS-1). A get reads
// one chunk at a time. Payloads that lie one behind the other in a segment, as those of one put do,
// are written and read together: they are small and many. The window of kBulkChunksInFlight chunks
// bounds the memory of a transfer, kBulkTransfersMax their number, kTransferIdleMax their age
// without a sign of the client.
//
// Each field of a message is a peer's word and is checked before it is used. A ROUTER socket does
// not say when a client goes: a get notices by a send that fails, a put by its silence. Easy to get
// wrong: end() must free the room of a put that did not commit, and must not run after a commit.

#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/digest.h"
#include "runtime/base/log.h"
#include "runtime/link/ticker.h"
#include "runtime/link/zmq_socket.h"
#include "runtime/payload/bulk.h"
#include "runtime/payload/bulk_messages.h"

namespace tandem::payload {
namespace {

constexpr Duration kTransferIdleMax = std::chrono::seconds(60);  // then its client counts as gone

// One request under way. A put fills `extents`, a get reads them; one extent per payload.
struct Transfer {
  StreamCursor stream;
  std::vector<Extent> extents;
  std::vector<std::uint64_t> checksums;  // put
  bool is_put = false;
  std::uint64_t put = 0;      // PutOpen::put
  std::uint32_t unacked = 0;  // get: chunks sent and not acknowledged
  bool started = false;       // get: an empty stream is one empty chunk
  Time active;                // when the client last sent something for it
};

// The answers of the last puts, by PutOpen::put, up to kBulkAnswersMax payloads together.
class StoredPuts {
 public:
  void add(std::uint64_t put, const std::vector<wire::PayloadRef>& refs) {
    if (!answers_.emplace(put, refs).second) return;
    order_.push_back(put);
    payloads_ += refs.size();
    for (; payloads_ > kBulkAnswersMax; order_.pop_front())
      payloads_ -= answers_.extract(order_.front()).mapped().size();
  }
  const std::vector<wire::PayloadRef>* find(std::uint64_t put) const {
    const auto found = answers_.find(put);
    return found == answers_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::uint64_t, std::vector<wire::PayloadRef>> answers_;
  std::deque<std::uint64_t> order_;  // oldest first
  std::size_t payloads_ = 0;
};

// The client's routing id, and the request's number among that client's.
using TransferKey = std::pair<std::string, BulkRequest>;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Makes `run` longer by `next` if that lies behind it; false if it does not.
bool append(Extent& run, const Extent& next) {
  if (run.segment != next.segment || run.offset + run.bytes != next.offset) return false;
  run.bytes += next.bytes;
  return true;
}

// The places of `pieces`, those that lie one behind the other as one.
std::vector<Extent> runs_of(const std::vector<StreamCursor::Piece>& pieces,
                            const std::vector<Extent>& extents) {
  std::vector<Extent> runs;
  for (const StreamCursor::Piece& piece : pieces) {
    const Extent& whole = extents[piece.payload];
    const Extent part{whole.segment, whole.offset + piece.offset, piece.bytes};
    if (runs.empty() || !append(runs.back(), part)) runs.push_back(part);
  }
  return runs;
}

}  // namespace

struct BulkServer::State {
  State(std::string name, SegmentStore& segments)
      : io("bulk"), node(std::move(name)), store(segments) {}

  Result<void> start(const std::vector<link::Binding>& at);
  void on_message(std::string_view from, std::span<zmq::message_t> parts);
  void open_put(const std::string& from, PutOpen open, std::string_view body);
  void open_get(const std::string& from, const GetOpen& open);
  void take_chunk(const TransferKey& key, std::uint64_t offset, std::string_view body);
  void take_ack(const TransferKey& key, std::uint32_t chunks);
  bool send_chunks(const TransferKey& key, Transfer& transfer);
  Result<void> write(Transfer& transfer, std::string_view body);
  Result<std::string> read_chunk(Transfer& transfer, std::uint64_t bytes) const;
  void finish_put(const TransferKey& key, Transfer& transfer);
  Result<void> verify(const Transfer& transfer) const;
  bool answered_before(const TransferKey& key, std::uint64_t put);
  void fail(const TransferKey& key, const Error& error);
  void end(const TransferKey& key);
  bool admit(const TransferKey& key);
  void tick(Time now);
  template <class M>
  link::Wrote reply(const TransferKey& key, M message, std::string_view body = {}) {
    return socket->write(key.first, wire::encode(BulkMessage(std::move(message))), body);
  }
  void count(std::uint64_t BulkCounters::*counter, std::uint64_t by) {
    const std::lock_guard lock(mutex);
    counters.*counter += by;
  }

  link::IoThread io;
  const std::string node;
  SegmentStore& store;
  std::vector<link::Endpoint> bound;
  // These are used only on the IoThread.
  std::unique_ptr<link::ZmqSocket> socket;
  std::optional<link::Ticker> ticker;
  std::map<TransferKey, Transfer> transfers;
  StoredPuts stored;

  mutable std::mutex mutex;
  BulkCounters counters;  // guarded by mutex
};

Result<void> BulkServer::State::start(const std::vector<link::Binding>& at) {
  CHECK(!at.empty());
  socket = std::make_unique<link::ZmqSocket>(
      io, zmq::socket_type::router,
      link::ZmqOptions{.message_bytes_max = kBulkMessageBytesMax, .queue_messages = 64});
  for (const link::Binding& binding : at) {
    auto endpoint = socket->bind(binding);
    if (!endpoint) {
      socket.reset();
      return endpoint.error();
    }
    bound.push_back(std::move(*endpoint));
  }
  socket->start(
      [this](std::string_view from, std::span<zmq::message_t> parts) { on_message(from, parts); },
      [] { return false; });
  ticker.emplace(io, kBulkTick, [this](Time now) { tick(now); });
  return {};
}

void BulkServer::State::on_message(std::string_view from, std::span<zmq::message_t> parts) {
  auto message = wire::decode<BulkMessage>(parts[0].to_string_view());
  if (!message) return count(&BulkCounters::messages_malformed, 1);
  const std::string client(from);
  const std::string_view body = parts.size() > 1 ? parts[1].to_string_view() : std::string_view();
  if (auto* put = std::get_if<PutOpen>(&*message)) {
    open_put(client, std::move(*put), body);
  } else if (const auto* get = std::get_if<GetOpen>(&*message)) {
    open_get(client, *get);
  } else if (const auto* chunk = std::get_if<Chunk>(&*message)) {
    take_chunk({client, chunk->request}, chunk->offset, body);
  } else if (const auto* ack = std::get_if<Ack>(&*message)) {
    take_ack({client, ack->request}, ack->chunks);
  } else if (const auto* ask = std::get_if<Ask>(&*message)) {
    if (const TransferKey key{client, ask->request}; !transfers.contains(key))
      reply(key, Unknown{ask->request});
  } else if (const auto* abort = std::get_if<Abort>(&*message)) {
    end({client, abort->request});
  } else {
    count(&BulkCounters::messages_malformed, 1);
  }
}

bool BulkServer::State::admit(const TransferKey& key) {
  if (transfers.size() < kBulkTransfersMax && !transfers.contains(key)) return true;
  // fail() also ends a transfer of this number that is under way: its client has lost track of it.
  fail(key, {ErrorCode::kFailed,
             "the bulk server has " + std::to_string(transfers.size()) + " transfers open",
             to_string(bound.front()), "try again later"});
  return false;
}

void BulkServer::State::open_put(const std::string& from, PutOpen open, std::string_view body) {
  const TransferKey key{from, open.request};
  if (!admit(key)) return;
  auto fits = check_bulk_sizes(open.sizes);
  if (fits && open.checksums.size() != open.sizes.size()) {
    fits = Error{ErrorCode::kInvalid, "a put has another number of checksums than of payloads"};
  }
  if (!fits) return fail(key, fits.error());
  if (answered_before(key, open.put)) return;
  auto extents = store.reserve(open.sizes);
  if (!extents) return fail(key, extents.error());
  transfers.emplace(key, Transfer{.stream = StreamCursor(std::move(open.sizes)),
                                  .extents = std::move(*extents),
                                  .checksums = std::move(open.checksums),
                                  .is_put = true,
                                  .put = open.put,
                                  .active = steady_now()});
  // The first chunk came along; an empty put completes with it.
  take_chunk(key, 0, body);
}

// Answers a put that is stored already. Ends an attempt of it that is under way, whose connection
// has broken.
bool BulkServer::State::answered_before(const TransferKey& key, std::uint64_t put) {
  if (const auto* refs = stored.find(put)) {
    reply(key, Stored{key.second, *refs});
    return true;
  }
  for (const auto& [other, transfer] : transfers)
    if (transfer.is_put && transfer.put == put) {
      end(other);
      break;
    }
  return false;
}

void BulkServer::State::take_chunk(const TransferKey& key, std::uint64_t offset,
                                   std::string_view body) {
  const auto found = transfers.find(key);
  if (found == transfers.end() || !found->second.is_put) {
    reply(key, Unknown{key.second});
    return;
  }
  Transfer& put = found->second;
  if (offset != put.stream.position() || body.size() > put.stream.left()) {
    // The socket keeps order, so a gap means that messages were lost with a connection.
    return fail(key, {ErrorCode::kInvalid, "a chunk of a put does not follow the one before"});
  }
  put.active = steady_now();
  if (auto written = write(put, body); !written) return fail(key, written.error());
  if (put.stream.left() == 0) return finish_put(key, put);
  reply(key, Ack{key.second, 1});
}

Result<void> BulkServer::State::write(Transfer& put, std::string_view body) {
  for (const Extent& run : runs_of(put.stream.take(body.size()), put.extents)) {
    if (auto written = store.write(run, 0, bytes_of(body.substr(0, run.bytes))); !written)
      return written;
    body.remove_prefix(run.bytes);
  }
  return {};
}

// Reads the payloads back from the store: this finds damage on the way and in the store alike.
Result<void> BulkServer::State::verify(const Transfer& put) const {
  std::string bytes;
  for (std::size_t begin = 0, end = 0; begin < put.extents.size(); begin = end) {
    Extent run = put.extents[begin];
    for (end = begin + 1; end < put.extents.size(); ++end)
      if (run.bytes + put.extents[end].bytes > kBulkChunkBytesMax || !append(run, put.extents[end]))
        break;
    bytes.resize(run.bytes);
    const auto to = std::as_writable_bytes(std::span(bytes.data(), bytes.size()));
    if (auto got = store.read(run, 0, to); !got) return got;
    std::string_view rest = bytes;
    for (std::size_t i = begin; i < end; rest.remove_prefix(put.extents[i++].bytes))
      if (checksum64(bytes_of(rest.substr(0, put.extents[i].bytes))) != put.checksums[i])
        return Error{ErrorCode::kFailed, "the checksum of payload " + std::to_string(i) +
                                             " of a put is wrong: it was damaged on its way"};
  }
  return {};
}

void BulkServer::State::finish_put(const TransferKey& key, Transfer& put) {
  if (auto good = verify(put); !good) return fail(key, good.error());
  Stored done{.request = key.second};
  for (std::size_t i = 0; i < put.extents.size(); ++i) {
    const Extent& extent = put.extents[i];
    store.commit(extent, put.checksums[i]);
    done.refs.push_back({node, extent.segment, extent.offset, extent.bytes, put.checksums[i]});
  }
  count(&BulkCounters::payloads_put, put.extents.size());
  count(&BulkCounters::bytes_put, put.stream.total());
  stored.add(put.put, done.refs);
  // Erased without end(), which would give up the room that has just been committed.
  transfers.erase(key);
  reply(key, std::move(done));
}

void BulkServer::State::open_get(const std::string& from, const GetOpen& open) {
  const TransferKey key{from, open.request};
  if (!admit(key)) return;
  if (auto fits = check_bulk_sizes(sizes_of(open.refs)); !fits) return fail(key, fits.error());
  Transfer get{.stream = StreamCursor(sizes_of(open.refs)), .active = steady_now()};
  for (const wire::PayloadRef& ref : open.refs) {
    // The store itself refuses an extent that it does not hold (kNotFound).
    if (ref.node != node) {
      return fail(key, {ErrorCode::kNotFound, to_string(ref) + " is not of this node, " + node});
    }
    get.extents.push_back({ref.segment, ref.offset, ref.bytes});
  }
  Transfer& begun = transfers.emplace(key, std::move(get)).first->second;
  if (!send_chunks(key, begun)) end(key);
}

Result<std::string> BulkServer::State::read_chunk(Transfer& get, std::uint64_t bytes) const {
  std::string chunk(bytes, '\0');
  std::span<std::byte> rest = std::as_writable_bytes(std::span(chunk.data(), chunk.size()));
  for (const Extent& run : runs_of(get.stream.take(bytes), get.extents)) {
    if (auto got = store.read(run, 0, rest.first(run.bytes)); !got) return got.error();
    rest = rest.subspan(run.bytes);
  }
  return chunk;
}

// Sends as many chunks as may be in flight. False: the caller is to end the transfer, because all
// was sent or its client is gone. True: it goes on, or fail() has ended it already.
bool BulkServer::State::send_chunks(const TransferKey& key, Transfer& get) {
  while (get.unacked < kBulkChunksInFlight && (get.stream.left() > 0 || !get.started)) {
    const StreamCursor before = get.stream;
    const auto chunk = read_chunk(get, get.stream.next_chunk_bytes());
    if (!chunk) {
      fail(key, chunk.error());
      return true;  // `get` no longer exists
    }
    const link::Wrote wrote = reply(key, Chunk{key.second, before.position()}, *chunk);
    if (wrote == link::Wrote::kUnreachable) return false;
    if (wrote == link::Wrote::kBusy) {  // the next tick, or an Ack, tries again
      get.stream = before;
      return true;
    }
    get.started = true;
    ++get.unacked;
  }
  if (get.stream.left() > 0) return true;
  count(&BulkCounters::payloads_got, get.extents.size());
  count(&BulkCounters::bytes_got, get.stream.total());
  return false;
}

void BulkServer::State::take_ack(const TransferKey& key, std::uint32_t chunks) {
  const auto found = transfers.find(key);
  if (found == transfers.end() || found->second.is_put) return;  // the get is over
  Transfer& get = found->second;
  // The minimum, since the number is the peer's word and must not wrap around.
  get.unacked -= std::min(get.unacked, chunks);
  get.active = steady_now();
  if (!send_chunks(key, get)) end(key);
}

void BulkServer::State::fail(const TransferKey& key, const Error& error) {
  log::warn("bulk request failed node={} request={} reason=\"{}\"", node, key.second.value,
            error.message);
  // The room is freed before the client hears of it, so that it may try again at once.
  count(&BulkCounters::requests_failed, 1);
  end(key);
  reply(key, Failed{key.second, error});
}

void BulkServer::State::end(const TransferKey& key) {
  const auto found = transfers.find(key);
  if (found == transfers.end()) return;
  if (found->second.is_put) {
    for (const Extent& extent : found->second.extents) store.abandon(extent);
  }
  transfers.erase(found);
}

void BulkServer::State::tick(Time now) {
  // Keys are collected first, because ending a transfer changes the map.
  std::vector<TransferKey> over;
  std::vector<TransferKey> gets;
  for (const auto& [key, transfer] : transfers) {
    if (now - transfer.active > kTransferIdleMax) {
      over.push_back(key);
    } else if (!transfer.is_put && transfer.unacked < kBulkChunksInFlight) {
      gets.push_back(key);
    }
  }
  for (const TransferKey& key : over) end(key);
  for (const TransferKey& key : gets) {
    if (!send_chunks(key, transfers.at(key))) end(key);
  }
  socket->pump();
}

BulkServer::BulkServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<BulkServer>> BulkServer::listen(const std::vector<link::Binding>& at,
                                                       std::string node, SegmentStore& store) {
  auto state = std::make_unique<State>(std::move(node), store);
  Result<void> started;
  state->io.run([&] { started = state->start(at); });
  if (!started) return started.error();
  return std::unique_ptr<BulkServer>(new BulkServer(std::move(state)));
}

BulkServer::~BulkServer() {
  state_->io.run([this] {
    // Frees the room of unfinished puts: the store outlives this server.
    while (!state_->transfers.empty()) state_->end(state_->transfers.begin()->first);
    state_->ticker.reset();
    state_->socket.reset();
  });
}

const std::vector<link::Endpoint>& BulkServer::endpoints() const { return state_->bound; }

BulkCounters BulkServer::counters() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counters;
}

}  // namespace tandem::payload
