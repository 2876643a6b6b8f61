// A blocking client on top of Boost.Beast, whose deadlines exist for asynchronous operations only.
// So each operation is started on an event loop of the connection's own, which the calling thread
// runs until the operation is done or its deadline has ended it.
//
// Names are the exception: the C library looks them up in a call that cannot be ended. That call
// runs on a thread of its own, which is left to itself when the deadline has passed. An address in
// digits needs no look-up and no thread.
//
// Requests that are answered later share one loop and one thread. A call that is under way owns
// itself through its handlers; the loop is stopped, and with it the handlers are destroyed.
//
// A stream of lines is read in pieces of kReadBytes by HttpLines. Easy to get wrong: a read that
// does not finish within the caller's time stays under way and writes into `chunk` later, so the
// state has a fixed address, and the next call waits for that read instead of starting another.
#include "runtime/http/http_client.h"

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <future>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "runtime/http/http_fields.h"

namespace tandem::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Message = http::request<http::string_body>;

constexpr std::size_t kReadBytes = 64 << 10;
constexpr Duration kConnectAgain = std::chrono::milliseconds(50);

Error error_from(const link::Endpoint& server, const error_code& error) {
  const std::string where = "http://" + to_string(server);
  if (error == beast::error::timeout) {
    return {ErrorCode::kTimedOut, "the server did not answer in time", where};
  }
  const auto is = [&](http::error kind) { return error == make_error_code(kind); };
  if (error == asio::error::eof || is(http::error::end_of_stream) ||
      is(http::error::partial_message))
    return {ErrorCode::kUnreachable, "the server ended the connection before its answer", where};
  // All errors of Beast's HTTP parser share one category.
  const bool is_http = error.category() == make_error_code(http::error::bad_method).category();
  if (is_http) {
    return {ErrorCode::kFailed, "the server did not answer in HTTP: " + error.message(), where};
  }
  return {ErrorCode::kUnreachable, "cannot reach the server: " + error.message(), where};
}

Message message_of(const link::Endpoint& server, http::verb verb, const std::string& target,
                   std::string body, const HttpHeaders& headers) {
  Message message(verb, target, 11);
  message.set(http::field::host, to_string(server));
  for (const auto& [name, value] : headers) message.set(name, value);
  message.keep_alive(false);
  message.body() = std::move(body);
  message.prepare_payload();
  return message;
}

using Addresses = tcp::resolver::results_type;

struct Found {
  error_code error;
  Addresses addresses;
};

// The addresses of a host in digits; nullopt for a name.
std::optional<Addresses> in_digits(const link::Endpoint& server) {
  error_code error;
  const auto address = asio::ip::make_address(server.host, error);
  if (error) return {};
  return Addresses::create(tcp::endpoint(address, server.port), server.host,
                           std::to_string(server.port));
}

// Looks the name up on a thread that is left to itself, which calls `found`.
template <class Call>
void look_up_apart(const link::Endpoint& server, Call found) {
  std::thread([found = std::move(found), host = server.host,
               port = std::to_string(server.port)]() mutable {
    asio::io_context loop;
    Found mine;
    mine.addresses = tcp::resolver(loop).resolve(host, port, mine.error);
    found(std::move(mine));
  }).detach();
}

// The addresses of the server; none and `error` where there are none by `deadline`.
Addresses look_up(const link::Endpoint& server, std::chrono::steady_clock::time_point deadline,
                  error_code& error) {
  if (auto address = in_digits(server)) return *std::move(address);
  std::promise<Found> promise;
  std::future<Found> found = promise.get_future();
  look_up_apart(server, [promise = std::move(promise)](Found mine) mutable {
    promise.set_value(std::move(mine));
  });
  if (found.wait_until(deadline) != std::future_status::ready) {
    error = beast::error::timeout;
    return {};
  }
  Found done = found.get();
  error = done.error;
  return std::move(done.addresses);
}

// One connection and its loop. It is not the actor of that name: here an exchange is a request and
// the response.
class Exchange {
 public:
  explicit Exchange(link::Endpoint server) : server_(std::move(server)), stream_(loop_) {}

  Result<void> send(const Message& message, Duration timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    stream_.expires_at(deadline);
    error_code error;
    const Addresses to = look_up(server_, deadline, error);
    if (error) return error_from(server_, error);
    stream_.async_connect(to, [&](error_code e, const tcp::endpoint&) { error = e; });
    run();
    if (error) return error_from(server_, error);
    http::async_write(stream_, message, [&](error_code e, std::size_t) { error = e; });
    run();
    if (error) return error_from(server_, error);
    return {};
  }

  template <class Parser>
  Result<void> read(Parser& parser) {
    error_code error;
    http::async_read(stream_, buffer_, parser, [&](error_code e, std::size_t) { error = e; });
    run();
    if (error) return error_from(server_, error);
    return {};
  }

  template <class Parser>
  Result<void> read_header(Parser& parser) {
    error_code error;
    http::async_read_header(stream_, buffer_, parser,
                            [&](error_code e, std::size_t) { error = e; });
    run();
    if (error) return error_from(server_, error);
    return {};
  }

  const link::Endpoint& server() const { return server_; }
  asio::io_context& loop() { return loop_; }
  beast::tcp_stream& stream() { return stream_; }
  beast::flat_buffer& buffer() { return buffer_; }

 private:
  void run() {
    loop_.restart();
    loop_.run();
  }
  const link::Endpoint server_;
  asio::io_context loop_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
};

HttpResponse response_of(http::response<http::string_body> message) {
  return {.status = static_cast<int>(message.result_int()),
          .content_type = std::string(message[http::field::content_type]),
          .body = std::move(message.body()),
          .headers = headers_of(message)};
}

Result<HttpResponse> exchange(const link::Endpoint& server, http::verb verb,
                              const std::string& target, std::string body, Duration timeout,
                              const HttpHeaders& headers) {
  Exchange call(server);
  if (auto sent = call.send(message_of(server, verb, target, std::move(body), headers), timeout);
      !sent) {
    return sent.error();
  }
  http::response_parser<http::string_body> parser;
  parser.body_limit(kHttpResponseBytesMax);
  // The header by itself: where the body begins in the same piece, Beast 1.74 forgets the error of
  // a length that is over the limit.
  if (auto got = call.read_header(parser); !got) return got.error();
  if (auto got = call.read(parser); !got) return got.error();
  return response_of(parser.release());
}

// A request that is answered later. Every handler that is under way holds the call; all run on the
// thread of the loop, which is shared with the thread of a look-up.
class LaterCall : public std::enable_shared_from_this<LaterCall> {
 public:
  LaterCall(const std::shared_ptr<asio::io_context>& loop, link::Endpoint server, Message message,
            std::size_t response_bytes_max, HttpRequests::Done done)
      : loop_(loop),
        server_(std::move(server)),
        message_(std::move(message)),
        stream_(*loop),
        looking_up_(*loop),
        done_(std::move(done)) {
    parser_.body_limit(response_bytes_max);
  }

  void start(Duration timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    stream_.expires_at(deadline);
    if (const auto address = in_digits(server_)) return connect(*address);
    looking_up_.expires_at(deadline);
    looking_up_.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled) self->finish(error_from(self->server_, beast::error::timeout));
    });
    // The thread keeps the loop alive, not the call: a call is destroyed on the loop's thread.
    look_up_apart(server_, [loop = loop_.lock(), call = weak_from_this()](Found found) {
      asio::post(*loop, [call, found = std::move(found)] {
        const auto self = call.lock();
        if (!self || !self->done_) return;
        self->looking_up_.cancel();
        if (found.error) return self->finish(error_from(self->server_, found.error));
        self->connect(found.addresses);
      });
    });
  }

 private:
  void connect(const Addresses& to) {
    stream_.async_connect(to, [self = shared_from_this()](error_code error, const tcp::endpoint&) {
      if (error) return self->finish(error_from(self->server_, error));
      self->write();
    });
  }
  void write() {
    http::async_write(stream_, message_,
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (error) return self->finish(error_from(self->server_, error));
                        self->read();
                      });
  }
  void read() {  // the header by itself, as in exchange()
    http::async_read_header(stream_, buffer_, parser_,
                            [self = shared_from_this()](error_code error, std::size_t) {
                              if (error) return self->finish(error_from(self->server_, error));
                              self->read_body();
                            });
  }
  void read_body() {
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](error_code error, std::size_t) {
                       if (error) return self->finish(error_from(self->server_, error));
                       self->finish(response_of(self->parser_.release()));
                     });
  }
  void finish(Result<HttpResponse> result) {
    if (const auto done = std::exchange(done_, nullptr)) done(std::move(result));
  }

  const std::weak_ptr<asio::io_context> loop_;  // its handlers hold the call
  const link::Endpoint server_;
  Message message_;
  beast::tcp_stream stream_;
  asio::steady_timer looking_up_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
  HttpRequests::Done done_;  // empty once it was called
};

}  // namespace

Result<Url> parse_url(std::string_view text) {
  const auto wrong = [&](const char* message, const char* help) {
    return Error{ErrorCode::kInvalid, message, std::string(text), help};
  };
  constexpr std::string_view kScheme = "http://";
  if (text.starts_with("https://"))
    return wrong("https is not in this version",
                 "give the server's http address, or that of a proxy on this machine");
  if (!text.starts_with(kScheme))
    return wrong("an address begins with http://", "as in http://127.0.0.1:8000/score");
  const std::string_view rest = text.substr(kScheme.size());
  const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
  std::string server(rest.substr(0, end));
  std::string target(rest.substr(end));
  if (server.find('@') != server.npos)
    return wrong("an address has no user and no password", "send a header instead");
  const bool odd = std::ranges::any_of(target, [](char c) { return c <= ' ' || c > '~'; });
  if (odd || server.empty() || target.find('#') != target.npos)
    return wrong("this is no address of a server", "as in http://127.0.0.1:8000/score");
  if (!target.starts_with('/')) target.insert(0, 1, '/');
  const std::size_t bracket = server.rfind(']');  // colons before it are those of an IPv6 address
  const bool has_port = server.find(':', bracket == server.npos ? 0 : bracket) != server.npos;
  if (!has_port) server += ":80";
  auto endpoint = link::parse_endpoint(server);
  if (!endpoint) return endpoint.error();
  return Url{*std::move(endpoint), std::move(target)};
}

std::string openai_url(std::string url, std::string_view route) {
  const std::size_t scheme = url.find("://");
  if (scheme == url.npos) return url;
  const std::size_t path = url.find_first_of("/?", scheme + 3);
  while (path != url.npos && url.ends_with('/')) url.pop_back();
  if (path >= url.size()) return url + "/v1" + std::string(route);
  return url.ends_with("/v1") ? url + std::string(route) : url;
}

struct HttpRequests::State {
  std::shared_ptr<asio::io_context> loop = std::make_shared<asio::io_context>(1);
  asio::executor_work_guard<asio::io_context::executor_type> works = make_work_guard(*loop);
  std::thread thread = std::thread([loop = loop] { loop->run(); });

  void start(const Url& url, Message message, Duration timeout, std::size_t response_bytes_max,
             Done done);
};

void HttpRequests::State::start(const Url& url, Message message, Duration timeout,
                                std::size_t response_bytes_max, Done done) {
  auto call = std::make_shared<LaterCall>(loop, url.server, std::move(message), response_bytes_max,
                                          std::move(done));
  asio::post(*loop, [call = std::move(call), timeout] { call->start(timeout); });
}

HttpRequests::HttpRequests() : state_(std::make_unique<State>()) {}

HttpRequests::~HttpRequests() {
  state_->loop->stop();
  state_->thread.join();
}

void HttpRequests::post(const Url& url, std::string body, Duration timeout,
                        const HttpHeaders& headers, std::size_t response_bytes_max, Done done) {
  state_->start(url, message_of(url.server, http::verb::post, url.target, std::move(body), headers),
                timeout, response_bytes_max, std::move(done));
}

void HttpRequests::get(const Url& url, Duration timeout, const HttpHeaders& headers,
                       std::size_t response_bytes_max, Done done) {
  state_->start(url, message_of(url.server, http::verb::get, url.target, "", headers), timeout,
                response_bytes_max, std::move(done));
}

Result<HttpResponse> http_get(const link::Endpoint& server, const std::string& target,
                              Duration timeout, const HttpHeaders& headers) {
  return exchange(server, http::verb::get, target, "", timeout, headers);
}

Result<HttpResponse> http_post(const link::Endpoint& server, const std::string& target,
                               std::string body, Duration timeout, const HttpHeaders& headers) {
  return exchange(server, http::verb::post, target, std::move(body), timeout, headers);
}

Result<HttpResponse> http_delete(const link::Endpoint& server, const std::string& target,
                                 Duration timeout, const HttpHeaders& headers) {
  return exchange(server, http::verb::delete_, target, "", timeout, headers);
}

bool await_server(const link::Endpoint& server, Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  asio::io_context loop;
  for (;;) {
    asio::steady_timer next_look(loop, kConnectAgain);
    if (next_look.expiry() >= deadline) return false;
    next_look.wait();
    error_code error;
    beast::tcp_stream stream(loop);
    stream.expires_at(deadline);
    const Addresses to = look_up(server, deadline, error);
    if (!error) stream.async_connect(to, [&](error_code e, const tcp::endpoint&) { error = e; });
    loop.restart();
    loop.run();
    if (!error) return true;
  }
}

struct HttpLines::State {
  explicit State(link::Endpoint server) : call(std::move(server)) {
    parser.body_limit(std::numeric_limits<std::uint64_t>::max());  // a stream has no end
  }

  // Whether a read finished within the time. A read that did not stays under way for the next call.
  bool read_some(Duration timeout);
  std::optional<std::string> next_line();

  Exchange call;
  http::response_parser<http::buffer_body> parser;
  std::array<char, kReadBytes> chunk;
  std::string pending;  // received, from `taken` on not yet handed out
  std::size_t taken = 0;
  std::size_t searched = 0;  // no line ends before this
  bool reading = false;
  error_code error;
};

bool HttpLines::State::read_some(Duration timeout) {
  if (!reading) {
    reading = true;
    parser.get().body() = {.data = chunk.data(), .size = chunk.size(), .more = true};
    http::async_read_some(call.stream(), call.buffer(), parser, [this](error_code e, std::size_t) {
      reading = false;
      // need_buffer says that `chunk` is full, which is how a piece of a body ends.
      error = e == http::error::need_buffer ? error_code() : e;
    });
  }
  call.loop().restart();
  call.loop().run_for(timeout);
  if (reading) return false;
  // Beast has moved `size` on to the part of `chunk` that is still free.
  pending.append(chunk.data(), chunk.size() - parser.get().body().size);
  return true;
}

std::optional<std::string> HttpLines::State::next_line() {
  const std::size_t end = pending.find('\n', searched);
  if (end == std::string::npos) {
    // Lines that were handed out are erased only here, once per read, and not once per line.
    pending.erase(0, std::exchange(taken, 0));
    searched = pending.size();
    return std::nullopt;
  }
  std::string line = pending.substr(taken, end - taken);
  taken = searched = end + 1;
  return line;
}

HttpLines::HttpLines(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpLines::HttpLines(HttpLines&&) noexcept = default;
HttpLines::~HttpLines() = default;

Result<HttpLines> HttpLines::open(const link::Endpoint& server, const std::string& target,
                                  Duration timeout, const HttpHeaders& headers) {
  auto state = std::make_unique<State>(server);
  Exchange& call = state->call;
  if (auto sent = call.send(message_of(server, http::verb::get, target, "", headers), timeout);
      !sent) {
    return sent.error();
  }
  if (auto got = call.read_header(state->parser); !got) return got.error();
  // From here on each next() has a time of its own.
  call.stream().expires_never();
  const int status = static_cast<int>(state->parser.get().result_int());
  if (status / 100 == 2) return HttpLines(std::move(state));
  HttpResponse response{.status = status};
  while (!state->parser.is_done() && !state->error && state->read_some(timeout)) continue;
  response.body = std::move(state->pending);
  return error_of(response);
}

std::string HttpLines::header(const std::string& name) const {
  return std::string(state_->parser.get()[name]);
}

Result<std::optional<std::string>> HttpLines::next(Duration timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  State& state = *state_;
  while (true) {
    if (auto line = state.next_line()) return line;
    if (state.parser.is_done()) return std::optional<std::string>();
    if (state.error) return error_from(state.call.server(), state.error);
    if (state.pending.size() > kHttpLineBytesMax) {
      return Error{ErrorCode::kFailed, "a streamed line is too long",
                   to_string(state.call.server())};
    }
    // Zero still runs what is ready, so a line that has come is found even with no time left.
    const auto left = std::max<Duration>(end - std::chrono::steady_clock::now(), Duration::zero());
    if (!state.read_some(left)) {
      return Error{ErrorCode::kTimedOut, "no line came in time", to_string(state.call.server())};
    }
  }
}

}  // namespace tandem::http
