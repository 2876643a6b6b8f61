// Each subscriber has a queue of requests. The server answers them in order (tcp_messages.h says
// why), as fast as the subscriber's connection takes the answers (ZeroMQ's high-water mark); a slow
// subscriber delays no other. A chunk's bytes are copied by ZeroMQ from the pinned slot when its
// answer is written. Subscribers and pins are touched on the
// IoThread alone.
//
// Peers are not trusted (TW-3): every number of a request is checked against the arena's size, the
// queue of requests is bounded, and a subscriber that breaks the protocol gets no more answers.
#include "runtime/weights/tcp_server.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/link/curve.h"
#include "runtime/link/ticker.h"
#include "runtime/link/zmq_socket.h"
#include "runtime/weights/delta_maker.h"
#include "runtime/weights/shared_pins.h"
#include "runtime/weights/tcp_messages.h"
#include "runtime/wire/codec.h"

namespace tandem::weights {
namespace {

constexpr std::size_t kSubscribersMax = 256;
constexpr int kAnswersQueued = 8;  // in ZeroMQ, per subscriber; so at most 8 MiB of chunks
// An honest subscriber waits for at most kWeightChunksMax chunks, with a probe behind each.
constexpr std::size_t kRequestsMax = 2 * kWeightChunksMax + 2;
constexpr Duration kServerTick = std::chrono::milliseconds(100);
constexpr wire::WireLimits kRequestLimits{.message_bytes_max = kWeightHeadBytesMax,
                                          .decoded_bytes_max = kWeightHeadBytesMax};

struct ServedSubscriber {
  std::uint64_t copy = 0;              // number of the newest copy that it asked for
  WeightOffer wanted;                  // the version of that copy
  std::optional<WeightOffer> base;     // set: it is the delta from this version
  std::optional<std::size_t> slot;     // pinned for that copy
  std::shared_ptr<const Delta> delta;  // likewise
  bool deltas = false;                 // it applies deltas
  std::deque<WeightRequest> waiting;
  std::uint64_t probe = 0;  // the last one that was answered
  bool offers_due = false;
  bool ended = false;  // it broke the protocol: its messages are ignored
  Duration silent{};   // time since its last message
};

}  // namespace

struct WeightServer::State {
  State(const WeightsConfig& weights, Duration patience, SharedPins slots)
      : config(weights), silence_max(patience), pins(std::move(slots)), maker(config, pins) {}

  Result<void> start(const Serving& serving);
  void on_message(const std::string& from, std::span<zmq::message_t> parts);
  ServedSubscriber* admit(const std::string& from);
  bool take(ServedSubscriber& subscriber, const WeightWatch& watch);
  bool take(ServedSubscriber& subscriber, const WeightFetch& fetch);
  void release(ServedSubscriber& subscriber);
  void end(ServedSubscriber& subscriber, const char* why);
  bool flush();
  bool flush(const std::string& to, ServedSubscriber& subscriber);
  link::Wrote answer(const std::string& to, ServedSubscriber& subscriber, const WeightWatch& watch);
  link::Wrote answer(const std::string& to, ServedSubscriber& subscriber, const WeightFetch& fetch);
  link::Wrote send(const std::string& to, WeightReply reply, std::string_view body = {}) {
    return socket->write(to, wire::encode(reply), body);
  }
  void tick(Time now);
  void look_at_versions();
  void make_deltas();

  const WeightsConfig config;
  const Duration silence_max;
  wire::WeightSource source;
  link::IoThread io{"weights"};
  // These are used only on the IoThread.
  SharedPins pins;
  DeltaMaker maker;
  bool making = false;  // make_deltas() has been posted
  std::unique_ptr<link::ZmqSocket> socket;
  std::optional<link::Ticker> ticker;
  std::map<std::string, ServedSubscriber, std::less<>> subscribers;
  Time ticked = steady_now();
  std::uint64_t turned_away = 0;
  std::uint64_t broke_protocol = 0;
};

Result<void> WeightServer::State::start(const Serving& serving) {
  const link::CurveKeys own = link::make_curve_keys();
  const link::CurveKeys client = link::make_curve_keys();
  socket = std::make_unique<link::ZmqSocket>(
      io, zmq::socket_type::router,
      link::ZmqOptions{.message_bytes_max = kWeightHeadBytesMax, .queue_messages = kAnswersQueued});
  auto bound =
      socket->bind({link::Endpoint{.host = serving.bind},
                    link::CurveServer{.secret_key = own.secret_key, .clients = {client.public_key}},
                    serving.ports});
  if (!bound) {
    socket.reset();
    return bound.error();
  }
  if (!serving.advertise.empty()) bound->host = serving.advertise;
  source = {.host = host_identity(),
            .endpoint = to_string(*bound),
            .server_key = own.public_key,
            .client_key = client.secret_key};
  socket->start([this](std::string_view from,
                       std::span<zmq::message_t> parts) { on_message(std::string(from), parts); },
                [this] { return flush(); });
  ticker.emplace(io, kServerTick, [this](Time now) { tick(now); });
  return {};
}

void WeightServer::State::on_message(const std::string& from, std::span<zmq::message_t> parts) {
  ServedSubscriber* const subscriber = admit(from);
  if (subscriber == nullptr) return;
  subscriber->silent = Duration::zero();
  if (subscriber->ended) return;
  const auto request = decode<WeightRequest>(parts[0].to_string_view(), kRequestLimits);
  if (!request || parts.size() != 1) return end(*subscriber, "it sent something else");
  const bool sound = std::visit([&](const auto& it) { return take(*subscriber, it); }, *request);
  if (!sound) return end(*subscriber, "it asked for what there cannot be");
  if (subscriber->waiting.size() > kRequestsMax)
    end(*subscriber, "it asked for too much at a time");
}

ServedSubscriber* WeightServer::State::admit(const std::string& from) {
  const auto known = subscribers.find(from);
  if (known != subscribers.end()) return &known->second;
  if (subscribers.size() < kSubscribersMax) return &subscribers[from];
  if (log::worth_a_line(++turned_away))
    log::warn("event=weights_subscriber_turned_away weights={} subscribers={} count={}",
              config.name, subscribers.size(), turned_away);
  return nullptr;
}

// When several probes come in a row, only the last one needs an answer, because the answer says
// that all requests before it were answered or lost.
bool WeightServer::State::take(ServedSubscriber& subscriber, const WeightWatch& watch) {
  if (watch.copy != subscriber.copy) release(subscriber);
  subscriber.deltas = watch.deltas;
  auto& waiting = subscriber.waiting;
  if (!waiting.empty() && std::holds_alternative<WeightWatch>(waiting.back())) waiting.pop_back();
  waiting.emplace_back(watch);
  return true;
}

bool WeightServer::State::take(ServedSubscriber& subscriber, const WeightFetch& fetch) {
  const WeightOffer wanted{.version = fetch.version, .checksum = fetch.checksum};
  std::shared_ptr<const Delta> delta;
  if (fetch.base) delta = maker.log().find({.base = *fetch.base, .next = wanted});
  if (subscriber.delta && fetch.copy == subscriber.copy) delta = subscriber.delta;
  const std::uint64_t size = delta ? delta->bytes.size() : config.layout.arena_bytes;
  // Where the delta has gone its size is not known.
  const bool inside = fetch.offset <= size && fetch.bytes <= size - fetch.offset;
  if (fetch.bytes == 0 || fetch.bytes > kWeightChunkBytesMax || (!inside && (delta || !fetch.base)))
    return false;
  // The message is late: its copy is over. It is no fault.
  if (fetch.copy < subscriber.copy) return true;
  if (fetch.copy > subscriber.copy) {
    release(subscriber);
    subscriber.copy = fetch.copy;
    subscriber.wanted = wanted;
    subscriber.base = fetch.base;
    subscriber.delta = std::move(delta);
  } else if (wanted != subscriber.wanted || fetch.base != subscriber.base) {
    return false;
  }
  // Where no slot offers the version, the fetch is queued all the same and is answered by
  // WeightGone.
  if (!subscriber.slot && !fetch.base) subscriber.slot = pins.acquire(wanted);
  subscriber.waiting.emplace_back(fetch);
  return true;
}

// Ends the subscriber's copy: its fetches are dropped, and all probes but the last one.
void WeightServer::State::release(ServedSubscriber& subscriber) {
  std::erase_if(subscriber.waiting, [](const WeightRequest& request) {
    return std::holds_alternative<WeightFetch>(request);
  });
  while (subscriber.waiting.size() > 1) subscriber.waiting.pop_front();
  if (subscriber.slot) pins.release(*subscriber.slot);
  subscriber.slot.reset();
  subscriber.delta.reset();
}

void WeightServer::State::end(ServedSubscriber& subscriber, const char* why) {
  release(subscriber);
  subscriber.waiting.clear();
  subscriber.offers_due = false;
  subscriber.ended = true;
  if (log::worth_a_line(++broke_protocol))
    log::warn("event=weights_subscriber_ended weights={} reason=\"{}\" count={}", config.name, why,
              broke_protocol);
}

bool WeightServer::State::flush() {
  bool wrote = false;
  for (auto& [to, subscriber] : subscribers) wrote |= flush(to, subscriber);
  return wrote;
}

// Answers requests while the connection takes them. Requests of a connection that has gone need no
// answer: the subscriber asks again.
bool WeightServer::State::flush(const std::string& to, ServedSubscriber& subscriber) {
  bool wrote = false;
  link::Wrote last = link::Wrote::kSent;
  while (last == link::Wrote::kSent && !subscriber.waiting.empty()) {
    last = std::visit([&](const auto& request) { return answer(to, subscriber, request); },
                      subscriber.waiting.front());
    if (last == link::Wrote::kSent) subscriber.waiting.pop_front();
    wrote |= last == link::Wrote::kSent;
  }
  if (last == link::Wrote::kSent && subscriber.offers_due) {
    last = answer(to, subscriber, WeightWatch{.probe = subscriber.probe});
    wrote |= last == link::Wrote::kSent;
  }
  if (last == link::Wrote::kUnreachable) {
    subscriber.waiting.clear();
    subscriber.offers_due = false;
  }
  return wrote;
}

link::Wrote WeightServer::State::answer(const std::string& to, ServedSubscriber& subscriber,
                                        const WeightWatch& watch) {
  WeightOffers offers{.probe = watch.probe,
                      .publisher_life = pins.publisher_life(),
                      .arena_bytes = config.layout.arena_bytes,
                      .layout_hash = config.layout.hash};
  look_at_versions();
  offers.versions = maker.offers();
  if (subscriber.deltas) offers.deltas = maker.log().offers();
  const link::Wrote wrote = send(to, std::move(offers));
  if (wrote != link::Wrote::kSent) return wrote;
  subscriber.probe = watch.probe;
  subscriber.offers_due = false;
  return wrote;
}

link::Wrote WeightServer::State::answer(const std::string& to, ServedSubscriber& subscriber,
                                        const WeightFetch& fetch) {
  const auto chunk = [&](std::span<const std::byte> of) {
    const auto bytes = of.subspan(fetch.offset, fetch.bytes);
    return send(to, WeightChunk{.copy = fetch.copy, .offset = fetch.offset},
                {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  if (subscriber.delta) return chunk(subscriber.delta->bytes);
  // Whether the version is offered is asked for each chunk: the version may have been forgotten
  // since the copy began.
  if (!subscriber.slot || !pins.offered(*subscriber.slot))
    return send(to, WeightGone{.copy = fetch.copy});
  return chunk(pins.bytes(*subscriber.slot));
}

// Begins the deltas of versions that are new.
void WeightServer::State::look_at_versions() {
  maker.look(std::ranges::any_of(subscribers, [](const auto& one) { return one.second.deltas; }));
  if (!maker.working() || std::exchange(making, true)) return;
  io.post([this] { make_deltas(); });
}

// Makes a part, and gives other messages their turn.
void WeightServer::State::make_deltas() {
  const std::uint64_t finished = maker.finished();
  making = maker.step();
  if (making) io.post([this] { make_deltas(); });
  if (maker.finished() == finished) return;
  for (auto& [id, subscriber] : subscribers) subscriber.offers_due = !subscriber.ended;
  socket->pump();
}

// Counts each subscriber's silence. A step counts at most two ticks, so that a server that stood
// still itself does not blame its subscribers for it.
void WeightServer::State::tick(Time now) {
  const Duration passed = std::min(now - std::exchange(ticked, now), 2 * kServerTick);
  for (auto it = subscribers.begin(); it != subscribers.end();) {
    ServedSubscriber& subscriber = it->second;
    subscriber.silent += passed;
    if (subscriber.silent <= silence_max) {
      ++it;
      continue;
    }
    if (subscriber.slot)
      log::warn("event=weights_subscriber_silent weights={} version={} seconds={:.1f}", config.name,
                subscriber.wanted.version.value, seconds(subscriber.silent));
    release(subscriber);
    it = subscribers.erase(it);
  }
  socket->pump();
}

WeightServer::WeightServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<WeightServer>> WeightServer::listen(const WeightsConfig& config,
                                                           const Serving& serving) {
  Result<SharedPins> pins = SharedPins::open(config);
  if (!pins) return pins.error();
  auto state = std::make_unique<State>(config, serving.silence_max, *std::move(pins));
  Result<void> started;
  state->io.run([&] { started = state->start(serving); });
  if (!started) return started.error();
  return std::unique_ptr<WeightServer>(new WeightServer(std::move(state)));
}

WeightServer::~WeightServer() {
  state_->io.run([this] {
    for (auto& [id, subscriber] : state_->subscribers) state_->release(subscriber);
    state_->maker.stop();
    state_->ticker.reset();
    state_->socket.reset();
  });
}

const wire::WeightSource& WeightServer::source() const { return state_->source; }

void WeightServer::announce() {
  state_->io.post([state = state_.get()] {
    for (auto& [id, subscriber] : state->subscribers) subscriber.offers_due = !subscriber.ended;
    state->socket->pump();
  });
}

}  // namespace tandem::weights
