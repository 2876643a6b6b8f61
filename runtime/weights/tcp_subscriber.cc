// The subscriber has a thread of its own (WeightLink), which runs the socket and fills the buffer.
// A request is repeated when the answer to a later probe shows that its own answer was lost
// (tcp_messages.h). So a link that was cut, or a publisher that started anew with the same
// versions, costs no more than the chunks that were on their way. The owner's thread
// (TcpSubscriber) never waits for the network; it waits for the link's thread only to change the
// source and to begin or end a copy.
//
// Easy to get wrong: the buffer belongs to the owner again as soon as progress() reports an end, so
// the link's thread writes no byte after it has set the state to complete or failed.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/base/secret.h"
#include "runtime/link/curve.h"
#include "runtime/link/ticker.h"
#include "runtime/link/zmq_socket.h"
#include "runtime/weights/shm_segment.h"
#include "runtime/weights/tcp.h"
#include "runtime/weights/tcp_copy.h"
#include "runtime/weights/tcp_messages.h"
#include "runtime/wire/codec.h"

namespace tandem::weights {
namespace {

constexpr Duration kSubscriberTick = std::chrono::milliseconds(50);
constexpr Duration kWatchEvery = std::chrono::seconds(1);
// After so long a silence, while chunks are due, a probe is sent.
constexpr Duration kProbeAfter = std::chrono::milliseconds(200);
// After so long without a connection the socket is replaced: libzmq does not dial again by itself
// when the other end broke the protocol, as damaged bytes do, or refused the keys.
constexpr Duration kRedialAfter = std::chrono::seconds(3);
constexpr Duration kFarewell = std::chrono::milliseconds(500);  // longest wait for a last message
constexpr Duration kSilenceWorthALine = std::chrono::seconds(10);
constexpr wire::WireLimits kReplyLimits{.message_bytes_max = kWeightHeadBytesMax,
                                        .decoded_bytes_max = kWeightHeadBytesMax};

// Checks a publisher's source before it is dialled: the source is another process's text, and
// libzmq throws at impossible host names and keys.
Result<link::Dial> dial_of(const wire::WeightSource& source) {
  if (source.endpoint.empty())
    return Error{ErrorCode::kInvalid, "the learner serves weights to its own host alone",
                 source.host, "start its node with --bind and an address that this host reaches"};
  const auto to = link::parse_endpoint(source.endpoint);
  if (!to) return to.error();
  if (to->is_local() || !link::is_host(to->host) || to->port == 0)
    return Error{ErrorCode::kInvalid, "weights are not served at '" + source.endpoint + "'"};
  const auto keys = link::parse_curve_client(source.server_key + "\n" + source.client_key + "\n");
  if (!keys) return keys.error();
  return link::Dial{.to = *to, .keys = *keys};
}

std::optional<std::uint64_t> checksum_in(const WeightOffers& offers, PolicyVersion version) {
  const auto found = std::ranges::find(offers.versions, version, &WeightOffer::version);
  if (found == offers.versions.end()) return std::nullopt;
  return found->checksum;
}

enum class CopyState { kUnderWay, kComplete, kFailed };

// The subscriber's thread and the state that it owns.
class WeightLink {
 public:
  explicit WeightLink(const WeightsConfig& config) : config_(config) {}
  ~WeightLink();

  void look_at(const link::Dial& source);
  void begin(PolicyVersion version, std::uint64_t checksum, std::span<std::byte> buffer);
  void cancel() {
    io_.run([this] { end_copy(); });
  }
  // The last offers that arrived, from any publisher. Any thread may call.
  std::optional<WeightOffers> offers() const {
    const std::lock_guard lock(mutex_);
    return offers_;
  }
  // How far the copy is that was begun last. The owner may ask in a tight loop: the call takes no
  // lock that the arrival of a chunk needs.
  Result<UpdateProgress> progress() const;

 private:
  void dial();
  void on_message(std::span<zmq::message_t> parts);
  void take(WeightOffers& offers, std::string_view body);
  void take(const WeightChunk& chunk, std::string_view body);
  void take(const WeightGone& gone, std::string_view body);
  void end_copy();
  void fail(Error error);
  void fail_gone();
  void drop(const char* what);
  bool flush();
  void tick(Time now);
  void tell_progress();
  std::vector<DeltaOffer> offered_deltas() const;
  bool applies_deltas() const {
    return config_.delta != DeltaUse::kNever && !config_.layout.tensors.empty();
  }
  void look_for_silence(Time now);
  Error stalled(Time now) const;
  bool send(WeightRequest request) {
    return socket_->write({}, wire::encode(request)) == link::Wrote::kSent;
  }

  const WeightsConfig& config_;

  mutable std::mutex mutex_;
  std::optional<WeightOffers> offers_;  // guarded by mutex_
  std::optional<Error> failure_;        // guarded by mutex_

  // Written by the IoThread, read by the owner.
  std::atomic<CopyState> state_ = CopyState::kUnderWay;  // kFailed: failure_ says why
  struct {
    std::atomic<std::uint64_t> done = 0, total = 0;
  } bytes_;

  link::IoThread io_{"weights"};
  // These are used only on the IoThread.
  std::unique_ptr<link::ZmqSocket> socket_;
  std::optional<link::Ticker> ticker_;
  link::Dial source_;
  std::string endpoint_;
  std::optional<TcpCopy> copy_;
  Time advanced_;  // when its last chunk arrived
  // Of the copies before: how many there were, and the version that the last one's buffer holds.
  struct {
    std::uint64_t count = 0;
    const std::byte* buffer = nullptr;
    std::optional<WeightOffer> held;
  } copies_;
  std::uint64_t probe_ = 0;  // number of the last probe that was sent
  bool watch_due_ = false;
  Time probed_;
  Time heard_;
  bool silence_told_ = false;
  std::uint64_t dropped_ = 0;
};

void WeightLink::look_at(const link::Dial& source) {
  io_.run([&] {
    source_ = source;
    endpoint_ = to_string(source.to);
    heard_ = steady_now();
    silence_told_ = false;
    advanced_ = heard_;
    dial();
    if (!ticker_) ticker_.emplace(io_, kSubscriberTick, [this](Time now) { tick(now); });
  });
}

void WeightLink::dial() {
  socket_.reset();
  socket_ = std::make_unique<link::ZmqSocket>(
      io_, zmq::socket_type::dealer,
      link::ZmqOptions{.message_bytes_max = kWeightChunkBytesMax + kWeightHeadBytesMax,
                       .queue_messages = 2 * static_cast<int>(kWeightChunksMax)});
  // A new name each time: the publisher's server then sees a new subscriber, and requests of the
  // former socket do not count against this one.
  socket_->connect(source_, random_secret());
  probed_ = steady_now();
  watch_due_ = true;
  if (copy_) copy_->lose_all();
  socket_->start([this](std::string_view, std::span<zmq::message_t> parts) { on_message(parts); },
                 [this] { return flush(); });
}

// A copy that is under way ends first, and the publisher is told so, which lets it replace the
// version at once.
WeightLink::~WeightLink() {
  io_.run([this] {
    end_copy();
    ticker_.reset();
    if (socket_) socket_->close(kFarewell);
    socket_.reset();
  });
}

void WeightLink::begin(PolicyVersion version, std::uint64_t checksum, std::span<std::byte> buffer) {
  io_.run([&] {
    const WeightOffer wanted{.version = version, .checksum = checksum};
    if (copies_.buffer != buffer.data() || !applies_deltas()) copies_.held.reset();
    copies_.buffer = buffer.data();
    std::vector<DeltaOffer> changes;
    if (copies_.held && copies_.held != wanted)
      changes = changes_between(offered_deltas(), *copies_.held, wanted, delta_bytes_end(config_));
    copy_.emplace(config_, wanted, buffer, copies_.held, std::move(changes), copies_.count);
    advanced_ = steady_now();
    tell_progress();
    state_ = copy_->complete() ? CopyState::kComplete : CopyState::kUnderWay;
    socket_->pump();
  });
}

// Ends the copy on this side; the next watch tells the publisher.
void WeightLink::end_copy() {
  if (!copy_) return;
  copies_.held = copy_->held();
  copy_.reset();
  watch_due_ = true;
  if (!socket_->pumping()) socket_->pump();
}

void WeightLink::fail(Error error) {
  {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(error);
  }
  // state_ is set after failure_: the owner reads failure_ once it sees kFailed.
  state_ = CopyState::kFailed;
  end_copy();
}

void WeightLink::fail_gone() {
  fail({.code = ErrorCode::kNotFound,
        .message = "policy version " + std::to_string(copy_->wanted().version.value) + " of " +
                   config_.name + " is not offered any more",
        .where = endpoint_});
}

void WeightLink::drop(const char* what) {
  if (log::worth_a_line(++dropped_))
    log::warn("event=weights_answer_dropped weights={} from={} reason=\"{}\" count={}",
              config_.name, endpoint_, what, dropped_);
}

void WeightLink::on_message(std::span<zmq::message_t> parts) {
  auto reply = decode<WeightReply>(parts[0].to_string_view(), kReplyLimits);
  if (!reply) return drop("it is none of the protocol's");
  const std::string_view body = parts.size() > 1 ? parts[1].to_string_view() : std::string_view();
  heard_ = steady_now();
  if (std::exchange(silence_told_, false))
    log::info("event=weights_publisher_heard weights={} from={}", config_.name, endpoint_);
  std::visit([&](auto& it) { take(it, body); }, *reply);
}

void WeightLink::take(WeightOffers& offers, std::string_view body) {
  if (offers.versions.size() > kSlotsMax || offers.deltas.size() > kDeltasMax || !body.empty())
    return drop("these are no offers");
  // Offers that lack the version, or have it with another checksum, end its copy: it was withdrawn,
  // or the publisher is another one.
  if (copy_ && (offers.layout_hash != config_.layout.hash ||
                checksum_in(offers, copy_->wanted().version) != copy_->wanted().checksum)) {
    fail_gone();
  }
  if (copy_) copy_->answered(offers.probe);
  const std::lock_guard lock(mutex_);
  offers_ = std::move(offers);
}

void WeightLink::take(const WeightChunk& chunk, std::string_view body) {
  if (!copy_ || chunk.copy != copy_->number()) return;  // the copy was cancelled
  const auto taken = copy_->take(chunk.offset, std::as_bytes(std::span(body)));
  if (!taken) return fail(taken.error());
  if (!*taken) return drop("a chunk was not due");
  advanced_ = heard_;
  tell_progress();
  // The copy is not ended here, so the publisher still keeps the version: one that is withdrawn
  // before the owner has seen the completion is not installed.
  if (copy_->complete()) state_ = CopyState::kComplete;
}

void WeightLink::tell_progress() {
  const UpdateProgress progress = copy_->progress();
  bytes_.total = progress.bytes_total;
  bytes_.done = progress.bytes_done;
}

std::vector<DeltaOffer> WeightLink::offered_deltas() const {
  const std::lock_guard lock(mutex_);
  return offers_ ? offers_->deltas : std::vector<DeltaOffer>();
}

Result<UpdateProgress> WeightLink::progress() const {
  const CopyState state = state_;
  if (state != CopyState::kFailed) {
    return UpdateProgress{.bytes_done = bytes_.done,
                          .bytes_total = bytes_.total,
                          .complete = state == CopyState::kComplete,
                          .arrives_by_itself = true};
  }
  const std::lock_guard lock(mutex_);
  return *failure_;
}

void WeightLink::take(const WeightGone& gone, std::string_view) {
  if (!copy_ || gone.copy != copy_->number() || copy_->complete() || copy_->gone()) return;
  fail_gone();
}

bool WeightLink::flush() {
  bool wrote = false;
  if (watch_due_) {
    if (!send(WeightWatch{.probe = probe_ + 1,
                          .copy = copy_ ? copy_->number() : 0,
                          .deltas = applies_deltas()})) {
      return false;
    }
    ++probe_;
    probed_ = steady_now();
    watch_due_ = false;
    wrote = true;
  }
  while (copy_) {
    const auto fetch = copy_->next();
    if (!fetch || !send(*fetch)) return wrote;
    copy_->asked(probe_);
    wrote = true;
  }
  return wrote;
}

void WeightLink::tick(Time now) {
  if (copy_ && !copy_->complete() && now - advanced_ > config_.stall_max) fail(stalled(now));
  const bool chunks_due = copy_ && copy_->waits();
  if (now - probed_ > kWatchEvery ||
      (chunks_due && now - std::max(heard_, probed_) > kProbeAfter)) {
    watch_due_ = true;
  }
  look_for_silence(now);
  socket_->pump();
  if (watch_due_ && now - probed_ > kRedialAfter) dial();
}

void WeightLink::look_for_silence(Time now) {
  if (silence_told_ || now - heard_ < kSilenceWorthALine) return;
  silence_told_ = true;
  log::warn("event=weights_publisher_silent weights={} from={} seconds={:.0f}", config_.name,
            endpoint_, seconds(now - heard_));
}

Error WeightLink::stalled(Time now) const {
  const UpdateProgress progress = copy_->progress();
  return {
      .code = ErrorCode::kTimedOut,
      .message = fmt::format("policy version {} of {} has made no progress for {:.1f} s: {} of "
                             "{} bytes are here, and the publisher was last heard {:.1f} s ago",
                             copy_->wanted().version.value, config_.name, seconds(now - advanced_),
                             progress.bytes_done, progress.bytes_total, seconds(now - heard_)),
      .where = endpoint_};
}

class TcpSubscriber final : public WeightSubscriber {
 public:
  explicit TcpSubscriber(const WeightsConfig& config) : config_(config) {}

  void look_at(const wire::WeightSource& source) override;
  Result<std::optional<PolicyVersion>> newest() override;
  bool available(PolicyVersion version) override;
  Result<void> begin(PolicyVersion version, std::span<std::byte> buffer) override;
  Result<UpdateProgress> progress(std::uint64_t bytes_max) override;
  void cancel() override;
  std::optional<Installed> installed() const override { return installed_; }
  std::optional<std::uint64_t> checksum_of(PolicyVersion version) override;
  std::uint64_t publisher_life() override;

 private:
  Result<WeightOffers> offers() const;

  const WeightsConfig config_;
  std::optional<wire::WeightSource> source_;
  std::optional<Error> bad_source_;   // why the last source cannot be dialled
  std::optional<Installed> copying_;  // begun, and not yet complete, failed or cancelled
  std::optional<Installed> installed_;
  std::unique_ptr<WeightLink> link_;  // made when the publisher is first known
};

// A source that cannot be dialled is remembered as an error and leaves the link as it is.
void TcpSubscriber::look_at(const wire::WeightSource& source) {
  if (source_ == source) return;
  source_ = source;
  bad_source_.reset();
  const Result<link::Dial> dial = dial_of(source);
  if (!dial) {
    bad_source_ = dial.error();
    return;
  }
  if (!link_) link_ = std::make_unique<WeightLink>(config_);
  link_->look_at(*dial);
}

// The last offers stay valid while the link is cut, because the link may heal; if it does not, a
// copy fails by stall_max.
Result<WeightOffers> TcpSubscriber::offers() const {
  if (bad_source_) return *bad_source_;
  std::optional<WeightOffers> last;
  if (link_) last = link_->offers();
  if (!last) return WeightOffers{};
  if (last->layout_hash == config_.layout.hash && last->arena_bytes == config_.layout.arena_bytes)
    return *std::move(last);
  return Error{.code = ErrorCode::kInvalid,
               .message = "the published weights have another layout than this process expects",
               .where = source_->endpoint};
}

Result<std::optional<PolicyVersion>> TcpSubscriber::newest() {
  const Result<WeightOffers> now = offers();
  if (!now) return now.error();
  std::optional<PolicyVersion> newest;
  for (const WeightOffer& offer : now->versions) newest = std::max(newest, {offer.version});
  return newest;
}

bool TcpSubscriber::available(PolicyVersion version) { return checksum_of(version).has_value(); }

std::optional<std::uint64_t> TcpSubscriber::checksum_of(PolicyVersion version) {
  const Result<WeightOffers> now = offers();
  return now ? checksum_in(*now, version) : std::nullopt;
}

Result<void> TcpSubscriber::begin(PolicyVersion version, std::span<std::byte> buffer) {
  CHECK(buffer.size() == config_.layout.arena_bytes);
  cancel();
  const Result<WeightOffers> now = offers();
  if (!now) return now.error();
  const std::optional<std::uint64_t> checksum = checksum_in(*now, version);
  if (!checksum) {
    return Error{.code = ErrorCode::kNotFound,
                 .message = "policy version " + std::to_string(version.value) + " of " +
                            config_.name + " is not offered" +
                            (source_ ? "" : ": where its publisher is has not been said yet")};
  }
  link_->begin(version, *checksum, buffer);
  copying_ = Installed{.version = version, .checksum = *checksum};
  return {};
}

Result<UpdateProgress> TcpSubscriber::progress(std::uint64_t) {
  CHECK(copying_.has_value());
  Result<UpdateProgress> now = link_->progress();
  if (!now) {
    copying_.reset();
  } else if (now->complete) {
    installed_ = copying_;
    installed_->bytes = now->bytes_total;
    cancel();
  }
  return now;
}

void TcpSubscriber::cancel() {
  if (!copying_) return;
  copying_.reset();
  link_->cancel();
}

std::uint64_t TcpSubscriber::publisher_life() {
  const Result<WeightOffers> now = offers();
  return now ? now->publisher_life : 0;
}

}  // namespace

std::unique_ptr<WeightSubscriber> make_tcp_subscriber(const WeightsConfig& config) {
  return std::make_unique<TcpSubscriber>(config);
}

}  // namespace tandem::weights
