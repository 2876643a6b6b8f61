// The client's end of the bulk socket. A request waits for its turn, then moves as a stream of
// chunks (bulk_messages.h); at most kOpenMax requests move at the same time.
//
// All state belongs to the IoThread. A public call makes the Request on its caller's thread,
// checksums included, so that hashing does not hold the loop up, and posts it. The socket calls
// flush() when it has room: flush() opens requests and sends the chunks that each window allows.
// on_message() takes answers, and tick() ends the requests whose deadline has passed.
//
// Easy to get wrong: a request leaves `open` or `waiting` before its callback runs, so that it ends
// once; and a chunk that the socket did not take leaves the stream where it was.
#include <algorithm>
#include <deque>
#include <future>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/digest.h"
#include "runtime/base/secret.h"
#include "runtime/link/ticker.h"
#include "runtime/link/zmq_socket.h"
#include "runtime/payload/bulk.h"
#include "runtime/payload/bulk_messages.h"

namespace tandem::payload {
namespace {

constexpr std::size_t kOpenMax = 16;        // requests that travel at the same time
constexpr std::size_t kWaitingMax = 4'096;  // requests that wait for their turn

std::uint64_t checksum_of(const std::string& payload) {
  return checksum64(std::as_bytes(std::span(payload.data(), payload.size())));
}

// One request; a put has payloads and checksums, a get has refs.
struct Request {
  StreamCursor stream;  // at the first byte that was not sent (put) or not received (get)
  std::vector<std::string> payloads;  // put: to send; get: filled as chunks come
  std::vector<std::uint64_t> checksums;
  std::vector<wire::PayloadRef> refs;
  bool is_put = false;
  Time deadline;
  std::uint64_t put = 0;      // PutOpen::put
  bool opened = false;        // its first message was taken by the socket
  Time heard;                 // opened: when the server last said something of it, or was asked
  std::uint32_t unacked = 0;  // put: chunks sent and not acknowledged
  WriteDone put_done;
  ReadDone get_done;

  void fail(const Error& error) {
    if (is_put) {
      put_done(error);
    } else {
      get_done(error);
    }
  }
};

}  // namespace

struct BulkClient::State {
  State(link::IoThread& thread, link::Dial address) : io(thread), dial(std::move(address)) {}

  void start();
  void submit(Request request);
  void open_waiting();
  bool flush();
  bool send_some(BulkRequest id, Request& request);
  bool send_open(BulkRequest id, Request& request);
  void on_message(std::span<zmq::message_t> parts);
  void take_chunk(const Chunk& chunk, std::string_view body);
  void finish_get(BulkRequest id);
  void finish_put(Stored done);
  void fail(BulkRequest id, const Error& error);
  void tick(Time now);
  void ask_for_silent(Time now);
  void begin_again(BulkRequest id);
  void send_anew();
  void close();
  std::string next_chunk(Request& request);
  link::Wrote send(BulkMessage message, std::string_view body = {}) {
    return socket->write({}, wire::encode(message), body);
  }

  link::IoThread& io;
  const link::Dial dial;
  // These are used only on the IoThread.
  std::unique_ptr<link::ZmqSocket> socket;
  std::optional<link::Ticker> ticker;
  std::map<BulkRequest, Request> open;
  std::deque<Request> waiting;
  std::uint64_t last_request = 0;
  std::uint64_t last_put = checksum_of(random_secret());  // no other client's are near it
};

void BulkClient::State::start() {
  socket = std::make_unique<link::ZmqSocket>(
      io, zmq::socket_type::dealer,
      link::ZmqOptions{.message_bytes_max = kBulkMessageBytesMax, .queue_messages = 64});
  socket->connect(dial, "");
  socket->start([this](std::string_view, std::span<zmq::message_t> parts) { on_message(parts); },
                [this] { return flush(); });
  ticker.emplace(io, kBulkTick, [this](Time now) { tick(now); });
}

void BulkClient::State::submit(Request request) {
  // A destructor that runs on the IoThread comes before submits that were posted earlier.
  if (!socket) return request.fail({ErrorCode::kUnreachable, "the bulk client is closed"});
  if (auto fits = check_bulk_sizes(request.stream.sizes()); !fits) {
    return request.fail(fits.error());
  }
  if (waiting.size() >= kWaitingMax) {
    return request.fail({ErrorCode::kFailed, "too many bulk requests wait already",
                         to_string(dial.to), "try again later"});
  }
  request.put = ++last_put;
  waiting.push_back(std::move(request));
  open_waiting();
  socket->pump();
}

void BulkClient::State::open_waiting() {
  while (!waiting.empty() && open.size() < kOpenMax) {
    open.emplace(BulkRequest{++last_request}, std::move(waiting.front()));
    waiting.pop_front();
  }
}

bool BulkClient::State::flush() {
  open_waiting();
  bool wrote = false;
  for (auto& [id, request] : open) wrote |= send_some(id, request);
  return wrote;
}

bool BulkClient::State::send_some(BulkRequest id, Request& request) {
  if (!request.opened) return send_open(id, request);
  bool wrote = false;
  while (request.is_put && request.stream.left() > 0 && request.unacked < kBulkChunksInFlight) {
    const StreamCursor before = request.stream;
    const std::string chunk = next_chunk(request);
    if (send(Chunk{id, before.position()}, chunk) != link::Wrote::kSent) {
      request.stream = before;
      return wrote;
    }
    ++request.unacked;
    wrote = true;
  }
  return wrote;
}

bool BulkClient::State::send_open(BulkRequest id, Request& request) {
  if (request.is_put) {
    const StreamCursor before = request.stream;
    PutOpen put{id, before.sizes(), request.checksums, request.put};
    const std::string chunk = next_chunk(request);
    request.opened = send(std::move(put), chunk) == link::Wrote::kSent;
    if (request.opened) {
      request.unacked = 1;
    } else {
      request.stream = before;
    }
  } else {
    request.opened = send(GetOpen{id, request.refs}) == link::Wrote::kSent;
    // Room for the answer is made only when the request travels: requests that wait hold none.
    for (const wire::PayloadRef& ref : request.refs) {
      if (request.opened) request.payloads.emplace_back(ref.bytes, '\0');
    }
  }
  request.heard = steady_now();
  return request.opened;
}

std::string BulkClient::State::next_chunk(Request& request) {
  std::string chunk;
  chunk.reserve(request.stream.next_chunk_bytes());
  for (const auto& piece : request.stream.take(request.stream.next_chunk_bytes())) {
    chunk.append(request.payloads[piece.payload], piece.offset, piece.bytes);
  }
  return chunk;
}

void BulkClient::State::on_message(std::span<zmq::message_t> parts) {
  auto message = wire::decode<BulkMessage>(parts[0].to_string_view());
  if (!message) return;  // not of a server of ours; the request ends by its deadline
  const std::string_view body = parts.size() > 1 ? parts[1].to_string_view() : std::string_view();
  if (const auto* chunk = std::get_if<Chunk>(&*message)) {
    take_chunk(*chunk, body);
  } else if (auto* done = std::get_if<Stored>(&*message)) {
    finish_put(std::move(*done));
  } else if (const auto* failed = std::get_if<Failed>(&*message)) {
    fail(failed->request, failed->error);
  } else if (const auto* unknown = std::get_if<Unknown>(&*message)) {
    begin_again(unknown->request);
  } else if (const auto* ack = std::get_if<Ack>(&*message)) {
    const auto found = open.find(ack->request);
    if (found != open.end()) {
      // The minimum, since the number is the peer's word and must not wrap around.
      found->second.unacked -= std::min(found->second.unacked, ack->chunks);
      found->second.heard = steady_now();
    }
  }
}

void BulkClient::State::take_chunk(const Chunk& chunk, std::string_view body) {
  const auto found = open.find(chunk.request);
  if (found == open.end() || found->second.is_put) return;  // the request has ended here
  Request& get = found->second;
  if (chunk.offset != get.stream.position() || body.size() > get.stream.left()) {
    return fail(chunk.request,
                {ErrorCode::kFailed, "chunks of a get came in another order", to_string(dial.to)});
  }
  for (const auto& piece : get.stream.take(body.size())) {
    body.copy(get.payloads[piece.payload].data() + piece.offset, piece.bytes);
    body.remove_prefix(piece.bytes);
  }
  if (get.stream.left() == 0) return finish_get(chunk.request);
  get.heard = steady_now();
  send(Ack{chunk.request, 1});
}

void BulkClient::State::finish_get(BulkRequest id) {
  Request& get = open.at(id);
  for (std::size_t i = 0; i < get.refs.size(); ++i) {
    if (checksum_of(get.payloads[i]) == get.refs[i].checksum) continue;
    return fail(id, {ErrorCode::kFailed,
                     "the checksum of payload " + to_string(get.refs[i]) +
                         " is wrong: its bytes were damaged",
                     to_string(dial.to)});
  }
  Request done = std::move(open.extract(id).mapped());
  done.get_done(std::move(done.payloads));
}

void BulkClient::State::finish_put(Stored done) {
  const auto found = open.find(done.request);
  if (found == open.end() || !found->second.is_put) return;
  Request put = std::move(open.extract(found).mapped());
  put.put_done(std::move(done.refs));
}

void BulkClient::State::fail(BulkRequest id, const Error& error) {
  const auto found = open.find(id);
  if (found == open.end()) return;
  Request request = std::move(open.extract(found).mapped());
  request.fail(error);
}

void BulkClient::State::tick(Time now) {
  // The numbers are collected first, because fail() takes entries out of `open`.
  std::vector<BulkRequest> late;
  for (const auto& [id, request] : open) {
    if (now >= request.deadline) late.push_back(id);
  }
  for (const BulkRequest id : late) {
    if (open.at(id).opened) {
      send(Abort{id});
      fail(id,
           {ErrorCode::kTimedOut, "a bulk request was not answered in time", to_string(dial.to)});
    } else {
      fail(id, {ErrorCode::kUnreachable, "no bulk server was reached in time", to_string(dial.to)});
    }
  }
  // Requests wait in the order of their calls, whose timeouts differ: each is looked at.
  const auto expired = std::stable_partition(waiting.begin(), waiting.end(),
                                             [now](const Request& r) { return now < r.deadline; });
  std::vector<Request> expired_requests(std::make_move_iterator(expired),
                                        std::make_move_iterator(waiting.end()));
  waiting.erase(expired, waiting.end());
  for (Request& request : expired_requests) {
    request.fail({ErrorCode::kTimedOut, "a bulk request waited for its turn until its deadline",
                  to_string(dial.to)});
  }
  ask_for_silent(now);
  open_waiting();
  if (socket) socket->pump();
}

// A connection may have broken, and taken messages with it (bulk_messages.h).
void BulkClient::State::ask_for_silent(Time now) {
  for (auto& [id, request] : open) {
    if (!request.opened || now - request.heard < kBulkAskEvery) continue;
    request.heard = now;
    send(Ask{id});
  }
}

// Under another number, because messages of its first attempt may still be on their way.
void BulkClient::State::begin_again(BulkRequest id) {
  const auto found = open.find(id);
  if (found == open.end() || !found->second.opened) return;
  Request request = std::move(open.extract(found).mapped());
  request.stream = StreamCursor(request.stream.sizes());
  request.opened = false;
  request.unacked = 0;
  if (!request.is_put) request.payloads.clear();
  open.emplace(BulkRequest{++last_request}, std::move(request));
}

void BulkClient::State::send_anew() {
  if (!socket) return;
  std::vector<BulkRequest> ids;
  for (const auto& [id, request] : open) ids.push_back(id);
  for (const BulkRequest id : ids) begin_again(id);
  socket->pump();
}

void BulkClient::State::close() {
  ticker.reset();
  socket.reset();
  // Requests end after the socket is gone, so that a callback that asks again is refused at once.
  const Error closed{ErrorCode::kUnreachable, "the bulk client was closed", to_string(dial.to)};
  while (!open.empty()) fail(open.begin()->first, closed);
  while (!waiting.empty()) {
    Request request = std::move(waiting.front());
    waiting.pop_front();
    request.fail(closed);
  }
}

void BulkClient::send_anew() {
  state_->io.post([state = state_] { state->send_anew(); });
}

BulkClient::BulkClient(link::IoThread& io, link::Dial server)
    : state_(std::make_shared<State>(io, std::move(server))) {
  io.run([this] { state_->start(); });
}

// Waits for close(), which ends every request.
BulkClient::~BulkClient() {
  state_->io.run([this] { state_->close(); });
}

void BulkClient::put_many(std::vector<std::string> payloads, Duration timeout, WriteDone done) {
  std::vector<std::uint64_t> sizes, checksums;
  for (const std::string& payload : payloads) {
    sizes.push_back(payload.size());
    checksums.push_back(checksum_of(payload));
  }
  // The request is in a shared_ptr because a std::function must be copyable and a Request is
  // expensive to copy.
  auto put = std::make_shared<Request>(Request{.stream = StreamCursor(std::move(sizes)),
                                               .payloads = std::move(payloads),
                                               .checksums = std::move(checksums),
                                               .is_put = true,
                                               .deadline = steady_now() + timeout,
                                               .put_done = std::move(done)});
  state_->io.post([state = state_, put] { state->submit(std::move(*put)); });
}

void BulkClient::get_many(std::vector<wire::PayloadRef> refs, Duration timeout, ReadDone done) {
  auto get = std::make_shared<Request>(Request{.stream = StreamCursor(sizes_of(refs)),
                                               .refs = std::move(refs),
                                               .deadline = steady_now() + timeout,
                                               .get_done = std::move(done)});
  state_->io.post([state = state_, get] { state->submit(std::move(*get)); });
}

Result<std::vector<wire::PayloadRef>> BulkClient::put_many(std::vector<std::string> payloads,
                                                           Duration timeout) {
  CHECK(!state_->io.on_this_thread());
  std::promise<Result<std::vector<wire::PayloadRef>>> answer;
  put_many(std::move(payloads), timeout, [&](auto result) { answer.set_value(std::move(result)); });
  return answer.get_future().get();
}

Result<std::vector<std::string>> BulkClient::get_many(std::vector<wire::PayloadRef> refs,
                                                      Duration timeout) {
  CHECK(!state_->io.on_this_thread());
  std::promise<Result<std::vector<std::string>>> answer;
  get_many(std::move(refs), timeout, [&](auto result) { answer.set_value(std::move(result)); });
  return answer.get_future().get();
}

Result<wire::PayloadRef> BulkClient::put(std::string payload, Duration timeout) {
  std::vector<std::string> one;
  one.push_back(std::move(payload));
  auto refs = put_many(std::move(one), timeout);
  if (!refs) return refs.error();
  return std::move(refs->front());
}

Result<std::string> BulkClient::get(wire::PayloadRef ref, Duration timeout) {
  auto payloads = get_many({std::move(ref)}, timeout);
  if (!payloads) return payloads.error();
  return std::move(payloads->front());
}

}  // namespace tandem::payload
