// A small HTTP/1.1 server (Boost.Beast) on threads of its own. A handler answers with a whole
// response, or with a stream of lines that somebody writes to until it is closed.
//
// Handlers run on the server's threads, several at once, and may block up to request_timeout (a
// blocked one occupies one of `threads`). Not here: TLS, and who may ask (the handler's business).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/net/endpoint.h"
#include "runtime/net/http.h"

namespace tandem::runtime {

struct HttpLimits {
  std::size_t body_bytes_max = 1 << 20;
  std::uint32_t header_bytes_max = 16 << 10;
  std::size_t connections_max = 256;
  std::size_t stream_buffer_bytes_max = 4 << 20;  // not yet taken by the client; more drops it
  Duration request_timeout = std::chrono::seconds(10);  // to arrive whole, and to be taken whole
  Duration idle_timeout = std::chrono::seconds(60);     // between requests of a connection
  unsigned threads = 4;
};

// The writing end of a streaming response. Any thread.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // Appends "line\n". False: the client is gone, too slow, or the stream was closed.
  virtual bool write(std::string line) = 0;
  virtual void close() = 0;  // what was written still arrives
  virtual bool open() const = 0;
};

struct HttpStreaming {
  std::string content_type = "application/x-ndjson";
  HttpHeaders headers;
  std::function<void(std::shared_ptr<HttpStream>)> start;  // called once; keep the stream to write
};

using HttpAnswer = std::variant<HttpResponse, HttpStreaming>;
using HttpHandler = std::function<HttpAnswer(const HttpRequest&)>;

class HttpServer {
 public:
  // Port 0: any. Errors: the port is busy.
  static Result<std::unique_ptr<HttpServer>> listen(Endpoint at, HttpLimits limits,
                                                    HttpHandler handler);
  ~HttpServer();  // drops connections, waits for handlers that run
  Endpoint endpoint() const;

 private:
  struct State;
  explicit HttpServer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace tandem::runtime
