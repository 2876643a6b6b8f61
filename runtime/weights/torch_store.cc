// A session per client, on the thread of the listener. A session reads one request at a
// time; one that waits for keys is asked again whenever a key is set.
#include "runtime/weights/torch_store.h"

#include <bit>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "runtime/weights/loop_listener.h"

namespace tandem::weights {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kStoreMagic = 0x3C85F7CE;

enum class StoreRequest : std::uint8_t {
  kValidate = 0,
  kSet = 1,
  kGet = 3,
  kAdd = 4,
  kCheck = 5,
  kWait = 6,
  kPing = 13,
};

template <class T>
std::string bytes_of_value(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string text_with_length(const std::string& text) {
  return bytes_of_value(static_cast<std::uint64_t>(text.size())) + text;
}

class StoreSession;
struct Store {
  std::map<std::string, std::string> values;
  std::size_t bytes = 0;  // of these
  std::vector<std::weak_ptr<StoreSession>> sessions;

  bool has(const std::vector<std::string>& keys) const {
    for (const std::string& key : keys)
      if (!values.contains(key)) return false;
    return true;
  }
  bool set(const std::string& key, std::string value);  // false: there is no room for the key
};

class StoreSession : public std::enable_shared_from_this<StoreSession> {
 public:
  StoreSession(tcp::socket socket, Store& store) : socket_(std::move(socket)), store_(&store) {}

  void start() { next_request(); }
  // A key was set.
  void look() {
    if (waits_for_.empty() || !store_->has(waits_for_)) return;
    const std::vector<std::string> keys = std::exchange(waits_for_, {});
    ++waits_;  // what is read from here on is a request
    answer(request_ == StoreRequest::kGet ? text_with_length(store_->values[keys.front()])
                                          : std::string(1, '\0'));
  }

 private:
  void next_request() {
    read(1, [](StoreSession& self) {
      self.request_ = static_cast<StoreRequest>(self.heard_.front());
      self.texts_.clear();
      self.text_bytes_ = 0;
      if (self.knows_us_ || self.request_ == StoreRequest::kValidate) self.dispatch();
    });
  }
  // Whatever the client does wrong ends its session: nothing holds it any more.
  void dispatch() {
    switch (request_) {
      case StoreRequest::kValidate:
        return read(4, [](StoreSession& self) {
          self.knows_us_ = self.number<std::uint32_t>() == kStoreMagic;
          if (self.knows_us_) self.next_request();
        });
      case StoreRequest::kPing:
        return read(4, [](StoreSession& self) { self.answer(self.heard_); });
      case StoreRequest::kGet:
      case StoreRequest::kSet:
      case StoreRequest::kAdd:
        return read_texts(request_ == StoreRequest::kSet ? 2 : 1);
      case StoreRequest::kCheck:
      case StoreRequest::kWait:
        return read(8, [](StoreSession& self) {
          const auto count = self.number<std::uint64_t>();
          if (count > 0 && count <= kTorchStoreKeysMax) self.read_texts(count);
        });
    }
  }
  void read_texts(std::uint64_t count) {
    if (texts_.size() == count) return perform();
    read(8, [count](StoreSession& self) {
      const auto size = self.number<std::uint64_t>();
      if (size > kTorchStoreTextMax || (self.text_bytes_ += size) > kTorchStoreRequestMax) return;
      self.read(size, [count](StoreSession& of) {
        of.texts_.push_back(of.heard_);
        of.read_texts(count);
      });
    });
  }
  void perform() {
    switch (request_) {
      case StoreRequest::kSet:
        if (store_->set(texts_[0], texts_[1])) next_request();
        return;
      case StoreRequest::kAdd:
        return read(8, [](StoreSession& self) { self.add(self.number<std::int64_t>()); });
      case StoreRequest::kCheck:
        return answer(std::string(1, store_->has(texts_) ? '\0' : '\1'));
      default:
        waits_for_ = texts_;
        look();
        if (!waits_for_.empty()) watch_for_the_end(++waits_);
        return;
    }
  }
  // While a client waits it says nothing: what can be read is the end of its connection. The
  // handler is also what holds the session meanwhile.
  void watch_for_the_end(std::uint64_t wait) {
    socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this(), wait](error_code error) {
      if (error || wait == self->waits_) self->waits_for_.clear();
    });
  }
  void add(std::int64_t more) {
    std::int64_t sum = 0;
    if (const auto before = store_->values.find(texts_[0]); before != store_->values.end())
      std::from_chars(before->second.data(), before->second.data() + before->second.size(), sum);
    sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                    static_cast<std::uint64_t>(more));
    if (store_->set(texts_[0], std::to_string(sum))) answer(bytes_of_value(sum));
  }

  template <class T>
  T number() const {
    T value{};
    std::memcpy(&value, heard_.data(), sizeof value);
    return value;
  }
  template <class Then>
  void read(std::size_t bytes, Then then) {
    heard_.resize(bytes);
    asio::async_read(socket_, asio::buffer(heard_),
                     [self = shared_from_this(), then](error_code error, std::size_t) {
                       if (!error) then(*self);
                     });
  }
  void answer(std::string text) {
    said_ = std::move(text);
    asio::async_write(socket_, asio::buffer(said_),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (!error) self->next_request();
                      });
  }

  tcp::socket socket_;
  Store* const store_;
  StoreRequest request_ = StoreRequest::kValidate;
  std::string heard_, said_;
  bool knows_us_ = false;               // it has said VALIDATE
  std::size_t text_bytes_ = 0;          // of texts_
  std::vector<std::string> texts_;      // the request's, so far
  std::vector<std::string> waits_for_;  // empty: it waits for no key
  std::uint64_t waits_ = 0;             // which wait this is
};

bool Store::set(const std::string& key, std::string value) {
  const auto before = values.find(key);
  const std::size_t freed = before == values.end() ? 0 : key.size() + before->second.size();
  const std::size_t after = bytes - freed + key.size() + value.size();
  if (after > kTorchStoreBytesMax || (freed == 0 && values.size() >= kTorchStoreKeysMax))
    return false;
  bytes = after;
  values[key] = std::move(value);
  for (const auto& session : std::vector(sessions))
    if (const auto alive = session.lock()) alive->look();
  return true;
}

}  // namespace

struct TorchStore::State {
  Store store;
  std::unique_ptr<LoopListener> listener;  // last: its thread uses the store

  void take(tcp::socket socket) {
    std::erase_if(store.sessions, [](const auto& session) { return session.expired(); });
    if (store.sessions.size() >= kTorchStoreClientsMax) return;
    auto session = std::make_shared<StoreSession>(std::move(socket), store);
    store.sessions.push_back(session);
    session->start();
  }
};

Result<std::unique_ptr<TorchStore>> TorchStore::listen(const std::string& host,
                                                       const link::PortRange& ports) {
  auto state = std::make_unique<State>();
  auto listener = LoopListener::listen(
      host, ports, [of = state.get()](tcp::socket socket) { of->take(std::move(socket)); });
  if (!listener) return listener.error();
  state->listener = *std::move(listener);
  return std::unique_ptr<TorchStore>(new TorchStore(std::move(state)));
}

TorchStore::TorchStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
TorchStore::~TorchStore() = default;

const link::Endpoint& TorchStore::endpoint() const { return state_->listener->endpoint(); }

void TorchStore::set(const std::string& key, const std::string& value) {
  state_->listener->perform([&] { state_->store.set(key, value); });
}

}  // namespace tandem::weights
