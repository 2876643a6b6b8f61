// An HTTP server: an acceptor, and one Connection per client on a strand, so that its handlers
// never overlap although several threads run the loop, and its fields need no lock.
//
// A connection goes round: wait (idle_timeout), read (request_timeout), answer, respond, wait. A
// streaming answer leaves the circle: the header, then a chunk whenever the Stream has lines, until
// the stream is closed or the client hangs up.
//
// Ownership: a pending operation keeps its connection alive; a connection without one ends. The
// Stream belongs to its writers and may outlive the connection, so it has a mutex and a pointer
// back, which the connection clears when it ends. A writer must never own a connection, not even
// for a moment: it could be the last owner, and would run the destructor, which waits for that
// mutex. So writers post with weak pointers, and the server parts all streams from their
// connections before it destroys the loop, to which no writer may post after that.
#include "runtime/http/http_server.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/guarded.h"
#include "runtime/base/log.h"
#include "runtime/http/http_fields.h"

namespace tandem::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kReadBytes = 4096;
constexpr Duration kAcceptAgainAfter = std::chrono::milliseconds(100);  // out of descriptors

class Connection;

// The writing end and its buffer. It may outlive the connection, and even the server.
class Stream final : public HttpStream {
 public:
  Stream(Connection* connection, std::size_t bytes_max)
      : bytes_max_(bytes_max), connection_(connection) {}
  bool write(std::string line) override;
  void close() override;
  bool open() const override {
    const std::lock_guard lock(mutex_);
    return connection_ != nullptr && !closed_;
  }
  std::size_t unsent_bytes() const override {
    const std::lock_guard lock(mutex_);
    return buffer_.size() + taken_bytes_;
  }

  // The connection's side.
  std::string take(bool& last);
  void detach() {
    const std::lock_guard lock(mutex_);
    connection_ = nullptr;
  }

 private:
  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  Connection* connection_;  // guarded by mutex_, as are the others; null: it has ended
  std::string buffer_;
  std::size_t taken_bytes_ = 0;  // by the connection at the last take(), until the next one
  bool closed_ = false;
};

// The place for a response that comes later. Its giver may outlive the connection, and must never
// own it: it could be the last owner, on a thread of its own.
class Later final {
 public:
  explicit Later(Connection* connection) : connection_(connection) {}
  void respond(HttpResponse response);  // any thread; the first call counts

  // The connection's side.
  HttpResponse take() {
    const std::lock_guard lock(mutex_);
    return std::move(*response_);
  }
  void detach() {
    const std::lock_guard lock(mutex_);
    connection_ = nullptr;
  }

 private:
  std::mutex mutex_;
  Connection* connection_;  // guarded by mutex_, as is the other; null: it has ended
  std::optional<HttpResponse> response_;
};

struct Shared {
  Shared(HttpLimits l, HttpHandler h) : limits(l), handler(std::move(h)) {}
  const HttpLimits limits;
  const HttpHandler handler;
  Guarded<std::set<Connection*>> connections;  // all that exist
};

// One client, on a strand of its own: read a request, answer it, again.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, std::shared_ptr<Shared> shared)
      : stream_(std::move(socket)), shared_(std::move(shared)) {
    shared_->connections.with([this](auto& all) { all.insert(this); });
  }
  ~Connection() {
    shared_->connections.with([this](auto& all) { all.erase(this); });
    part_from_givers();
  }

  void start() {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->wait(); });
  }
  // Called by the Stream or the Later, with its mutex held, on any thread; without effect in a
  // connection whose destructor waits for that mutex.
  void stream_changed() { post(&Connection::write_lines); }
  void response_came() { post(&Connection::respond_now); }
  void drop_soon() { post(&Connection::drop); }
  // After this call no writer of a stream and no giver of a response reaches the connection.
  void part_from_givers() {
    if (lines_) lines_->detach();
    if (later_) later_->detach();
  }

 private:
  void wait();
  void read();
  void on_read(error_code error);
  HttpAnswer answer(const http::request<http::string_body>& message);
  void respond(HttpResponse response, bool keep_alive, bool head_only);
  void begin_stream(HttpStreaming streaming);
  void respond_later(const HttpLater& later);
  void respond_now() { respond(later_->take(), false, false); }
  void watch_client();
  void write_lines();
  void post(void (Connection::*call)()) {
    asio::post(stream_.get_executor(), [weak = weak_from_this(), call] {
      if (const auto self = weak.lock()) (self.get()->*call)();
    });
  }
  void drop() {
    part_from_givers();
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
  }

  beast::tcp_stream stream_;
  const std::shared_ptr<Shared> shared_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> response_;

  std::shared_ptr<Later> later_;  // while a response is to come

  // Set while the connection streams.
  std::shared_ptr<Stream> lines_;
  std::optional<http::response<http::empty_body>> header_;
  std::optional<http::response_serializer<http::empty_body>> serializer_;
  std::string sending_;
  bool writing_ = false;
  char ignored_ = 0;
};

bool Stream::write(std::string line) {
  const std::lock_guard lock(mutex_);
  if (!connection_ || closed_) return false;
  if (buffer_.size() + line.size() + 1 > bytes_max_) {
    std::exchange(connection_, nullptr)->drop_soon();
    return false;
  }
  // While the buffer has lines the connection knows of them already.
  const bool idle = buffer_.empty();
  buffer_ += line;
  buffer_ += '\n';
  if (idle) connection_->stream_changed();
  return true;
}

void Later::respond(HttpResponse response) {
  const std::lock_guard lock(mutex_);
  if (!connection_ || response_) return;
  response_ = std::move(response);
  connection_->response_came();
}

void Stream::close() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(closed_, true) || !connection_) return;
  connection_->stream_changed();
}

std::string Stream::take(bool& last) {
  const std::lock_guard lock(mutex_);
  last = closed_;
  taken_bytes_ = buffer_.size();
  return std::exchange(buffer_, std::string());
}

// Between requests a connection may idle; once a request has begun it must arrive in time.
void Connection::wait() {
  // The client has sent its next request behind the last one.
  if (buffer_.size() > 0) return read();
  stream_.expires_after(shared_->limits.idle_timeout);
  stream_.async_read_some(buffer_.prepare(kReadBytes),
                          [self = shared_from_this()](error_code error, std::size_t bytes) {
                            if (error) return self->drop();
                            self->buffer_.commit(bytes);
                            self->read();
                          });
}

void Connection::read() {
  parser_.emplace();
  parser_->header_limit(shared_->limits.header_bytes_max);
  parser_->body_limit(shared_->limits.body_bytes_max);
  stream_.expires_after(shared_->limits.request_timeout);
  http::async_read(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](error_code error, std::size_t) { self->on_read(error); });
}

void Connection::on_read(error_code error) {
  // After such an error the rest of the request is not read, so the connection cannot go on.
  const auto refuse = [this](int status, std::string why) {
    respond(error_response(status, {ErrorCode::kInvalid, std::move(why)}), false, false);
  };
  if (error == http::error::body_limit) {
    return refuse(413, "the body is over the limit of " +
                           std::to_string(shared_->limits.body_bytes_max) + " bytes");
  }
  if (error == http::error::header_limit) return refuse(431, "the header is over its limit");
  if (error == beast::error::timeout) return refuse(408, "the request did not arrive in time");
  const bool is_http = error.category() == make_error_code(http::error::bad_method).category();
  if (error && is_http && error != http::error::end_of_stream &&
      error != http::error::partial_message) {
    return refuse(400, "not an HTTP request: " + error.message());
  }
  if (error) return drop();

  const auto& message = parser_->get();
  HttpAnswer result = answer(message);
  if (auto* streaming = std::get_if<HttpStreaming>(&result)) {
    return begin_stream(std::move(*streaming));
  }
  if (const auto* later = std::get_if<HttpLater>(&result)) return respond_later(*later);
  respond(std::get<HttpResponse>(std::move(result)), message.keep_alive(),
          message.method() == http::verb::head);
}

HttpAnswer Connection::answer(const http::request<http::string_body>& message) {
  HttpRequest request{.method = std::string(message.method_string()),
                      .headers = headers_of(message),
                      .body = message.body()};
  const auto target = message.target();
  try {
    if (auto split = split_target({target.data(), target.size()}, request); !split) {
      return error_response(split.error());
    }
    if (message.method() == http::verb::head) request.method = "GET";
    return shared_->handler(request);
  } catch (const std::exception& e) {  // a library's; ours do not throw
    log::error("http handler failed target={} what=\"{}\"", request.target, e.what());
    return error_response({ErrorCode::kFailed, "the request failed: " + std::string(e.what())});
  }
}

void Connection::respond(HttpResponse response, bool keep_alive, bool head_only) {
  response_.emplace(static_cast<http::status>(response.status), 11);
  response_->set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) response_->set(name, value);
  response_->keep_alive(keep_alive);
  response_->body() = std::move(response.body);
  response_->prepare_payload();
  if (head_only) response_->body().clear();  // the length in the header stays that of the body
  stream_.expires_after(shared_->limits.request_timeout);
  http::async_write(stream_, *response_,
                    [self = shared_from_this(), keep_alive](error_code error, std::size_t) {
                      if (error || !keep_alive) return self->drop();
                      self->wait();
                    });
}

void Connection::begin_stream(HttpStreaming streaming) {
  lines_ = std::make_shared<Stream>(this, shared_->limits.stream_buffer_bytes_max);
  header_.emplace(http::status::ok, 11);
  header_->set(http::field::content_type, streaming.content_type);
  for (const auto& [name, value] : streaming.headers) header_->set(name, value);
  header_->keep_alive(false);
  header_->chunked(true);
  serializer_.emplace(*header_);
  // Lines that come before the header is out wait in the Stream.
  writing_ = true;
  stream_.expires_after(shared_->limits.request_timeout);
  http::async_write_header(stream_, *serializer_,
                           [self = shared_from_this()](error_code error, std::size_t) {
                             if (error) return self->drop();
                             self->watch_client();
                             self->writing_ = false;
                             self->write_lines();
                           });
  try {
    streaming.start(lines_);
  } catch (const std::exception& e) {  // a library's; the header is on its way, so the stream ends
    log::error("http stream failed what=\"{}\"", e.what());
    lines_->close();
  }
}

// The pending read of watch_client() keeps the connection until the response, or the client's end.
void Connection::respond_later(const HttpLater& later) {
  later_ = std::make_shared<Later>(this);
  watch_client();
  later.start([place = later_, headers = later.headers](HttpResponse response) {
    response.headers.insert(headers.begin(), headers.end());
    place->respond(std::move(response));
  });
}

// Reads and drops whatever the client sends, so that a client that hangs up is noticed although
// nothing is being written.
void Connection::watch_client() {
  stream_.expires_never();
  stream_.async_read_some(asio::buffer(&ignored_, 1),
                          [self = shared_from_this()](error_code error, std::size_t) {
                            if (error) return self->drop();
                            self->watch_client();
                          });
}

void Connection::write_lines() {
  if (writing_) return;
  bool last = false;
  sending_ = lines_->take(last);
  if (sending_.empty() && !last) return;
  writing_ = true;
  stream_.expires_after(shared_->limits.request_timeout);  // limits this write; the read goes on
  const auto done = [self = shared_from_this(), end = sending_.empty()](error_code error,
                                                                        std::size_t) {
    self->writing_ = false;
    if (error || end) return self->drop();
    self->write_lines();
  };
  if (sending_.empty()) {
    asio::async_write(stream_, http::make_chunk_last(), done);
  } else {
    asio::async_write(stream_, http::make_chunk(asio::buffer(sending_)), done);
  }
}

}  // namespace

struct HttpServer::State {
  State(HttpLimits limits, HttpHandler handler)
      : shared(std::make_shared<Shared>(limits, std::move(handler))),
        loop(static_cast<int>(limits.threads)),
        acceptor(loop),
        again(loop) {}

  error_code open(const link::Endpoint& at);
  void accept();

  const std::shared_ptr<Shared> shared;
  asio::io_context loop;
  tcp::acceptor acceptor;
  asio::steady_timer again;
  link::Endpoint bound;
  std::vector<std::thread> threads;
};

error_code HttpServer::State::open(const link::Endpoint& at) {
  error_code error;
  const auto address = asio::ip::make_address(at.host, error);
  if (error) return error;
  const tcp::endpoint endpoint(address, at.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (!error) bound = {at.host, acceptor.local_endpoint().port()};
  return error;
}

void HttpServer::State::accept() {
  acceptor.async_accept(asio::make_strand(loop), [this](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) {
      log::warn("http accept failed reason=\"{}\"", error.message());
      again.expires_after(kAcceptAgainAfter);
      again.async_wait([this](error_code stopped) {
        if (!stopped) accept();
      });
      return;
    }
    // Otherwise the socket's destructor closes the connection at once.
    const std::size_t open = shared->connections.with([](const auto& all) { return all.size(); });
    if (open < shared->limits.connections_max) {
      socket.set_option(tcp::no_delay(true), error);
      std::make_shared<Connection>(std::move(socket), shared)->start();
    }
    accept();
  });
}

HttpServer::HttpServer(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(link::Endpoint at, HttpLimits limits,
                                                       HttpHandler handler) {
  CHECK(limits.threads > 0);
  auto state = std::make_shared<State>(limits, std::move(handler));
  if (const error_code error = state->open(at)) return listen_error(at, error.value());
  state->accept();
  for (unsigned i = 0; i < limits.threads; ++i) {
    state->threads.emplace_back([s = state.get()] { s->loop.run(); });
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

HttpServer::~HttpServer() {
  // Pending operations do not end by themselves; they are destroyed with the loop, after its
  // threads.
  state_->loop.stop();
  for (std::thread& thread : state_->threads) thread.join();
  // Without threads no connection begins or ends here.
  const auto open = state_->shared->connections.with([](const auto& all) { return all; });
  for (Connection* connection : open) connection->part_from_givers();
}

link::Endpoint HttpServer::endpoint() const { return state_->bound; }

}  // namespace tandem::http
