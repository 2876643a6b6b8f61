// A small HTTP/1.1 server (Boost.Beast) on threads of its own. A handler answers with a whole
// response, at once or later, or with a stream of lines that the handler's owner writes until it
// closes the stream.
//
// Handlers run on the server's threads, several at once, and may block for up to request_timeout; a
// blocked one occupies one of `threads`. An exception of a handler becomes a response with status
// 500. Not here: TLS, and who may ask (the handler decides).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/http/http.h"
#include "runtime/link/endpoint.h"

namespace tandem::http {

// Beyond a limit: a body is answered with 413, a header with 431; a connection on which a request
// comes too slowly, or one connection too many, is closed.
struct HttpLimits {
  std::size_t body_bytes_max = 1 << 20;
  std::uint32_t header_bytes_max = 16 << 10;
  std::size_t connections_max = 256;
  std::size_t stream_buffer_bytes_max = 4 << 20;        // lines not yet sent; more drops the client
  Duration request_timeout = std::chrono::seconds(10);  // to arrive whole; its answer, to be sent
  Duration idle_timeout = std::chrono::seconds(60);     // between requests of a connection
  unsigned threads = 4;
};

// The writing end of a streaming response. Any thread; it may outlive its connection and the
// server.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // Appends "line\n". False: the client is gone, too slow, or the stream was closed.
  virtual bool write(std::string line) = 0;
  virtual void close() = 0;  // ends the response after the lines that were written
  // Whether write() could still succeed.
  virtual bool open() const = 0;
  // Bytes of lines that were written and that the system has not taken yet for the client.
  virtual std::size_t unsent_bytes() const = 0;
};

// An answer whose body is a stream of lines, with status 200; by default one JSON value per line.
struct HttpStreaming {
  std::string content_type = "application/x-ndjson";
  HttpHeaders headers;
  // Called once, on the connection's thread, as soon as the header is on its way. Whoever keeps the
  // stream may write to it.
  std::function<void(std::shared_ptr<HttpStream>)> start;
};

// A whole response that comes later, without a thread that waits for it. The connection is closed
// after it.
struct HttpLater {
  // Called once, on the connection's thread. `respond` may be called from any thread, and only its
  // first call counts. Whoever keeps `respond` must call it: until then the client waits.
  std::function<void(std::function<void(HttpResponse)> respond)> start;
  HttpHeaders headers;  // added to those of the response
};

// A whole response, a stream, or a response that comes later.
using HttpAnswer = std::variant<HttpResponse, HttpStreaming, HttpLater>;
using HttpHandler = std::function<HttpAnswer(const HttpRequest&)>;

class HttpServer {
 public:
  // `at.host` is an address of this machine, no name; port 0: any free port. Errors: the place is
  // taken or not of this machine.
  static Result<std::unique_ptr<HttpServer>> listen(link::Endpoint at, HttpLimits limits,
                                                    HttpHandler handler);
  // Whatever the handler refers to must outlive the server.
  ~HttpServer();  // drops connections, waits for handlers that run
  link::Endpoint endpoint() const;

 private:
  struct State;
  explicit HttpServer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace tandem::http
