// The HTTP server and client against each other, and the server against raw bytes.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <string_view>
#include <thread>

#include "runtime/base/guarded.h"
#include "runtime/http/http_client.h"
#include "runtime/http/http_posts.h"
#include "runtime/http/http_server.h"

namespace {

// The name server of this test answers for this name when a test says so.
constexpr std::string_view kSlowName = "slow.test";
std::promise<void> slow_answer, slow_asked;

}  // namespace

// Replaces the C library's look-up in this program.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  if (name != nullptr && name == kSlowName) {
    slow_asked.set_value();
    slow_answer.get_future().wait();
    return EAI_NONAME;
  }
  static const auto look_up =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return look_up(name, service, hints, found);
}

namespace tandem::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kPatience = seconds(100);  // ends a hang; never measured

// A raw client, for bytes that a proper client never sends.
class Raw {
 public:
  explicit Raw(const link::Endpoint& to) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(to.port);
    inet_pton(AF_INET, to.host.c_str(), &address.sin_addr);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~Raw() { ::close(fd_); }
  void send(const std::string& bytes) const {
    (void)::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  std::string receive_until(const std::string& end) {  // or until the server hangs up
    char some[4096];
    while (text_.find(end) == std::string::npos) {
      const ssize_t got = recv(fd_, some, sizeof(some), 0);
      if (got <= 0) break;
      text_.append(some, static_cast<std::size_t>(got));
    }
    return text_;
  }
  bool hung_up() {
    std::string some(1 << 20, '\0');
    while (true) {
      const ssize_t got = recv(fd_, some.data(), some.size(), 0);
      if (got == 0) return true;
      if (got < 0) return errno == ECONNRESET;
    }
  }

 private:
  const int fd_;
  std::string text_;
};

HttpAnswer echo(const HttpRequest& request) {
  std::string text = request.method + "|";
  for (const auto& segment : request.segments) text += segment + "|";
  for (const auto& [key, value] : request.query) text += key + "=" + value + "|";
  return HttpResponse{.content_type = "text/plain", .body = text + request.body};
}

std::unique_ptr<HttpServer> serve(HttpHandler handler, HttpLimits limits = {}) {
  return std::move(HttpServer::listen({}, limits, std::move(handler))).value();
}

TEST(Http, responses_that_come_later_occupy_no_thread) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::function<void(HttpResponse)>> waiting;  // guarded by mutex
  const auto server = serve(
      [&](const HttpRequest& request) -> HttpAnswer {
        if (request.segments.empty()) return echo(request);
        return HttpLater{.start =
                             [&](auto respond) {
                               const std::lock_guard lock(mutex);
                               waiting.push_back(respond);
                               changed.notify_all();
                             },
                         .headers = {{"x-later", "yes"}}};
      },
      {.threads = 1});
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i)
    clients.emplace_back([&] {
      const auto got = http_get(server->endpoint(), "/later", kPatience);
      ASSERT_TRUE(got) << render(got.error());
      EXPECT_EQ(got->body, "at last");
      EXPECT_EQ(got->headers.at("x-later"), "yes");
    });
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, kPatience, [&] { return waiting.size() == 3; }));
  }
  EXPECT_TRUE(http_get(server->endpoint(), "/", kPatience)) << "the only thread is free";
  for (const auto& respond : waiting) {
    respond({.body = "at last"});
    respond({.body = "twice"});  // only the first counts
  }
  for (std::thread& client : clients) client.join();
}

TEST(Http, requests_reach_the_handler_in_parts) {
  const auto server = serve(echo);
  const auto got =
      http_get(server->endpoint(), "/api/v1//jobs/a%2Fb?watch=1&x=%20y&flag", kPatience);
  ASSERT_TRUE(got) << render(got.error());
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->content_type, "text/plain");
  EXPECT_EQ(got->body, "GET|api|v1|jobs|a/b|flag=|watch=1|x= y|");
  const auto posted = http_post(server->endpoint(), "/", "name: x\n", kPatience);
  ASSERT_TRUE(posted);
  EXPECT_EQ(posted->body, "POST|name: x\n");
}

TEST(Http, names_that_reach_the_handler_are_utf8) {
  HttpRequest request;
  ASSERT_TRUE(split_target("/a%ff/\xc3?k=%e6%97", request));
  EXPECT_EQ(request.segments, (std::vector<std::string>{"a\uFFFD", "\uFFFD"}));
  EXPECT_EQ(request.query.at("k"), "\uFFFD\uFFFD");
  EXPECT_EQ(request.target, "/a%ff/\uFFFD?k=%e6%97");
}

TEST(Http, one_connection_carries_several_requests) {
  const auto server = serve(echo);
  Raw client(server->endpoint());
  client.send("GET /one HTTP/1.1\r\nHost: x\r\n\r\nGET /two HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string text = client.receive_until("GET|two|");
  EXPECT_NE(text.find("GET|one|"), std::string::npos) << text;
  EXPECT_NE(text.find("GET|two|"), std::string::npos) << text;
}

TEST(Http, errors_travel_as_the_contract_says) {
  const Error error{ErrorCode::kNotFound, "no job \"x\"", "place", "see tandem get jobs"};
  const auto server = serve([&](const HttpRequest&) { return error_response(error); });
  const auto got = http_get(server->endpoint(), "/", kPatience);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 404);
  EXPECT_EQ(got->body,
            "{\"error\":{\"code\":\"not_found\",\"help\":\"see tandem get jobs\","
            "\"message\":\"no job \\\"x\\\"\",\"where\":\"place\"}}\n");
  EXPECT_EQ(render(error_of(*got)), render(error));
  const auto lines = HttpLines::open(server->endpoint(), "/", kPatience);
  ASSERT_FALSE(lines);
  EXPECT_EQ(render(lines.error()), render(error));
  EXPECT_EQ(error_of({.status = 503, .body = "<html>"}).code, ErrorCode::kUnreachable);
}

TEST(Http, several_errors_travel_in_one_answer) {
  Error error{ErrorCode::kInvalid, "a is wrong", "job.yaml:3:9", "write 1"};
  error.further = {{"b is wrong", "job.yaml:4:9", ""}, {"c is missing", "", "add it"}};
  error.further_left_out = 7;
  const HttpResponse sent = error_response(error);
  EXPECT_EQ(sent.body,
            "{\"error\":{\"code\":\"invalid\",\"errors\":["
            "{\"help\":\"\",\"message\":\"b is wrong\",\"where\":\"job.yaml:4:9\"},"
            "{\"help\":\"add it\",\"message\":\"c is missing\"}],\"errors_left_out\":7,"
            "\"help\":\"write 1\",\"message\":\"a is wrong\",\"where\":\"job.yaml:3:9\"}}\n");
  EXPECT_EQ(render(error_of(sent)), render(error));
}

// Another server, or one of a later version, may send anything.
TEST(Http, a_list_of_errors_is_bounded_and_checked) {
  const auto read = [](const std::string& more) {
    return error_of({.status = 400, .body = R"({"error": {"message": "a", )" + more + "}}"});
  };
  for (const char* none : {R"("errors": 3)", R"("errors": {"message": "b"})", R"("errors": [])",
                           R"("errors_left_out": -1)", R"("errors_left_out": "9")"}) {
    EXPECT_EQ(render(read(none)), "error[invalid]: a") << none;
  }
  const Error some = read(R"("errors": [7, {"message": 1}, {}, {"message": "b", "where": []}])");
  ASSERT_EQ(some.further.size(), 1u);
  EXPECT_EQ(some.further[0].message, "b");
  EXPECT_EQ(some.further[0].where, "");
  EXPECT_EQ(some.further_left_out, 3u) << "those that cannot be shown";
  std::string many;
  for (int i = 0; i < 1000; ++i) many += R"({"message": "b"},)";
  const Error most = read("\"errors\": [" + many + R"({}], "errors_left_out": 9)");
  EXPECT_EQ(most.further.size(), kErrorsToldMax - 1);
  EXPECT_EQ(most.further_left_out, 1001 - (kErrorsToldMax - 1) + 9);
  EXPECT_EQ(read(R"("errors": [{}], "errors_left_out": 18446744073709551615)").further_left_out,
            4294967295u);
}

TEST(Http, a_handler_that_throws_is_a_500) {
  const auto server =
      serve([](const HttpRequest&) -> HttpAnswer { throw std::runtime_error("a library did"); });
  const auto got = http_get(server->endpoint(), "/", kPatience);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 500);
  EXPECT_NE(got->body.find("a library did"), std::string::npos);
}

TEST(Http, malformed_requests_get_a_status_and_harm_nobody) {
  HttpLimits limits;
  limits.body_bytes_max = 1000;
  limits.header_bytes_max = 2000;
  const auto server = serve(echo, limits);
  const std::pair<std::string, std::string> cases[] = {
      {"\x16\x03\x01\x02 hello\r\n\r\n", " 400 "},
      {"GET\r\n\r\n", " 400 "},
      {"GET / HTTP/9.9\r\n\r\n", " 400 "},
      {"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", " 400 "},
      {"GET relative HTTP/1.1\r\nHost: x\r\n\r\n", " 400 "},
      {"POST / HTTP/1.1\r\nContent-Length: nine\r\n\r\n", " 400 "},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n", " 413 "},
      {"GET / HTTP/1.1\r\nHost: " + std::string(3000, 'x') + "\r\n\r\n", " 431 "}};
  for (const auto& [bytes, status] : cases) {
    Raw client(server->endpoint());
    client.send(bytes);
    const std::string text = client.receive_until("}}\n");
    EXPECT_EQ(text.find(status), 8u) << bytes.substr(0, 60) << "\n" << text;
    EXPECT_NE(text.find("{\"error\":{\"code\":\"invalid\""), std::string::npos) << text;
  }
  EXPECT_TRUE(http_post(server->endpoint(), "/", std::string(1000, 'x'), kPatience));
}

TEST(Http, a_request_that_never_ends_is_dropped) {
  HttpLimits limits;
  limits.request_timeout = milliseconds(50);
  const auto server = serve(echo, limits);
  Raw client(server->endpoint());
  client.send("GET / HTTP/1.1\r\nHost:");
  EXPECT_TRUE(client.hung_up());
}

TEST(Http, HEAD_has_the_header_and_no_body) {
  const auto server = serve(echo);
  Raw client(server->endpoint());
  client.send("HEAD /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string text = client.receive_until("never");
  EXPECT_NE(text.find("Content-Length: 6"), std::string::npos) << text;
  EXPECT_EQ(text.substr(text.size() - 4), "\r\n\r\n");
}

TEST(Http, connections_beyond_the_limit_are_closed) {
  HttpLimits limits;
  limits.connections_max = 1;
  const auto server = serve(echo, limits);
  Raw first(server->endpoint());
  first.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  first.receive_until("GET|a|");
  Raw second(server->endpoint());
  EXPECT_TRUE(second.hung_up());
}

// Hands the stream of the last request to the test.
class Streams {
 public:
  HttpHandler handler() {
    return [this](const HttpRequest&) -> HttpAnswer {
      return HttpStreaming{.start = [this](std::shared_ptr<HttpStream> stream) {
        const std::lock_guard lock(mutex_);
        stream_ = std::move(stream);
        changed_.notify_all();
      }};
    };
  }
  std::shared_ptr<HttpStream> wait() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return stream_ != nullptr; }));
    return stream_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<HttpStream> stream_;
};

TEST(HttpStreaming, lines_arrive_while_the_stream_is_open) {
  Streams streams;
  const auto server = serve(streams.handler());
  auto lines = HttpLines::open(server->endpoint(), "/events?watch=1", kPatience);
  ASSERT_TRUE(lines) << render(lines.error());
  const auto stream = streams.wait();
  ASSERT_TRUE(stream->write("{\"seq\":1}"));
  EXPECT_EQ(lines->next(kPatience).value(), "{\"seq\":1}");
  EXPECT_EQ(lines->next(milliseconds(1)).error().code, ErrorCode::kTimedOut);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(stream->write(std::to_string(i)));
  ASSERT_TRUE(stream->write(""));
  ASSERT_TRUE(stream->write(std::string(300'000, 'x')));
  stream->close();
  EXPECT_FALSE(stream->write("too late"));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(lines->next(kPatience).value(), std::to_string(i));
  EXPECT_EQ(lines->next(kPatience).value(), "");
  EXPECT_EQ(lines->next(kPatience).value()->size(), 300'000u);
  EXPECT_EQ(lines->next(kPatience).value(), std::nullopt);
}

TEST(HttpStreaming, a_start_that_throws_ends_its_connection_alone) {
  const auto server = serve([](const HttpRequest& request) -> HttpAnswer {
    if (request.segments.empty()) return echo(request);
    return HttpStreaming{.start = [](const std::shared_ptr<HttpStream>&) {
      throw std::runtime_error("a library did");
    }};
  });
  auto lines = HttpLines::open(server->endpoint(), "/events", kPatience);
  ASSERT_TRUE(lines) << render(lines.error());
  EXPECT_EQ(lines->next(kPatience).value(), std::nullopt);
  const auto got = http_get(server->endpoint(), "/", kPatience);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->body, "GET|");
}

TEST(HttpStreaming, a_client_that_leaves_closes_the_stream) {
  Streams streams;
  const auto server = serve(streams.handler());
  { auto lines = HttpLines::open(server->endpoint(), "/", kPatience); }
  const auto stream = streams.wait();
  const Time end = steady_now() + kPatience;
  while (stream->open() && steady_now() < end) std::this_thread::yield();
  EXPECT_FALSE(stream->open());
  EXPECT_FALSE(stream->write("x"));
}

TEST(HttpStreaming, a_slow_client_is_dropped) {
  HttpLimits limits;
  limits.stream_buffer_bytes_max = 100'000;
  Streams streams;
  const auto server = serve(streams.handler(), limits);
  Raw client(server->endpoint());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto stream = streams.wait();
  std::size_t written = 0;
  while (stream->write(std::string(999, 'x')) && written < (1u << 30)) written += 1000;
  EXPECT_LT(written, 1u << 30);
  EXPECT_GT(stream->unsent_bytes(), 90'000u) << "lines wait that were not taken";
  EXPECT_FALSE(stream->open());
  EXPECT_TRUE(client.hung_up());
}

TEST(HttpStreaming, a_stream_may_outlive_its_server) {
  Streams streams;
  auto server = serve(streams.handler());
  auto lines = HttpLines::open(server->endpoint(), "/", kPatience);
  ASSERT_TRUE(lines);
  const auto stream = streams.wait();
  server.reset();
  EXPECT_FALSE(stream->write("x"));
  stream->close();
  const auto line = lines->next(kPatience);
  EXPECT_FALSE(line) << "the stream broke off, it did not end";
}

TEST(HttpStreaming, a_server_may_end_while_lines_are_written) {
  for (int round = 0; round < 200; ++round) {
    Streams streams;
    auto server = serve(streams.handler());
    Raw client(server->endpoint());
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    std::promise<void> written;
    std::thread writer([stream = streams.wait(), &written] {
      stream->write("");
      written.set_value();
      while (stream->write("")) continue;
    });
    written.get_future().wait();
    server.reset();
    writer.join();
  }
}

TEST(Http, a_busy_port_is_an_error_with_its_address) {
  const auto server = serve(echo);
  const auto second = HttpServer::listen(server->endpoint(), {}, echo);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().where, to_string(server->endpoint()));
  EXPECT_NE(second.error().message.find("in use"), std::string::npos) << second.error().message;
}

TEST(Http, the_client_says_why_there_is_no_answer) {
  const auto refused = http_get(link::Endpoint{.port = 1}, "/", kPatience);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnreachable);

  std::mutex gate;
  std::unique_lock closed(gate);
  const auto slow = serve([&](const HttpRequest& request) {
    const std::lock_guard wait(gate);
    return echo(request);
  });
  const auto late = http_get(slow->endpoint(), "/", milliseconds(50));
  closed.unlock();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kTimedOut);
}

TEST(Http, the_look_up_of_a_name_ends_by_the_deadline) {
  const auto known = http_get(link::Endpoint{.host = "localhost", .port = 1}, "/", kPatience);
  ASSERT_FALSE(known);
  EXPECT_EQ(known.error().code, ErrorCode::kUnreachable);

  auto late = std::async(std::launch::async, [] {
    return http_get(link::Endpoint{.host = std::string(kSlowName), .port = 1}, "/",
                    milliseconds(50));
  });
  slow_asked.get_future().wait();
  EXPECT_EQ(late.wait_for(kPatience), std::future_status::ready);
  slow_answer.set_value();
  const auto answer = late.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kTimedOut) << render(answer.error());
}

TEST(HttpRequests, are_answered_later_each_once) {
  const auto server = serve(echo);
  link::Endpoint by_name = server->endpoint();
  by_name.host = "localhost";
  std::promise<void> all;
  std::atomic<int> answers = 0;
  HttpRequests requests;
  for (int i = 0; i < 40; ++i)
    requests.post({i % 2 ? by_name : server->endpoint(), "/x"}, "body", kPatience, {}, 1 << 20,
                  [&](const Result<HttpResponse>& response) {
                    EXPECT_TRUE(response && response->status == 200);
                    if (++answers == 40) all.set_value();
                  });
  EXPECT_EQ(all.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST(HttpRequests, end_with_their_owner_and_by_the_deadline) {
  std::promise<void> asked;
  std::function<void(HttpResponse)> respond;
  const auto silent = serve([&](const HttpRequest&) {
    return HttpLater{.start =
                         [&](auto later) {
                           respond = later;
                           asked.set_value();
                         },
                     .headers = {}};
  });
  {
    HttpRequests requests;
    requests.post({silent->endpoint(), "/"}, "", kPatience, {}, 100,
                  [](const auto&) { ADD_FAILURE() << "the owner is gone"; });
    asked.get_future().wait();
  }
  respond({});
  asked = {};
  std::promise<Error> late;
  HttpRequests requests;
  requests.post({silent->endpoint(), "/"}, "", milliseconds(20), {}, 100,
                [&](const auto& response) { late.set_value(response.error()); });
  EXPECT_EQ(late.get_future().get().code, ErrorCode::kTimedOut);
  asked.get_future().wait();
  respond({});
}

// The server answers once three requests wait for it, so that more would be seen.
TEST(PostEach, PostsSomeAtATimeAndAsksAgain) {
  constexpr std::size_t kAtOnce = 3, kAll = 44;
  struct Held {
    std::vector<std::function<void()>> answers;
    std::size_t most = 0, calls = 0;
  };
  Guarded<Held> held;
  const auto server = serve([&](const HttpRequest& request) {
    return HttpLater{.start =
                         [&, body = request.body](auto respond) {
                           std::vector<std::function<void()>> now;
                           held.with([&](Held& all) {
                             all.answers.push_back([=] { respond({.body = body}); });
                             all.most = std::max(all.most, all.answers.size());
                             // The last ones come when the others have been answered.
                             if (++all.calls > kAll - kAtOnce || all.answers.size() == kAtOnce)
                               now = std::exchange(all.answers, {});
                           });
                           for (const auto& answer : now) answer();
                         },
                     .headers = {}};
  });
  std::vector<std::string> bodies(40);
  std::size_t again = 0;
  const PostEach posts{.count = bodies.size(),
                       .concurrency = static_cast<int>(kAtOnce),
                       .timeout = kPatience,
                       .pause = milliseconds(1),
                       .body = [](std::size_t i) { return std::to_string(i); },
                       .take =
                           [&](std::size_t i, const Result<HttpResponse>& response) {
                             if (i % 10 == 0 && ++again <= kAll - 40) return AfterPost::kAgain;
                             bodies[i] = response.value().body;
                             return AfterPost::kGoOn;
                           }};
  post_each({server->endpoint(), "/x"}, posts);
  for (std::size_t i = 0; i < bodies.size(); ++i) EXPECT_EQ(bodies[i], std::to_string(i));
  held.with([&](const Held& all) {
    EXPECT_EQ(all.calls, kAll);
    EXPECT_EQ(all.most, kAtOnce);
  });
}

// With one request in all nothing is under way during its pause, which ends at any moment.
TEST(PostEach, GoesOnWheneverAPauseEnds) {
  const auto server = serve(echo);
  for (int i = 0; i < 1000; ++i) {
    int taken = 0;
    post_each({server->endpoint(), "/"}, {.count = 1,
                                          .timeout = kPatience,
                                          .pause = std::chrono::nanoseconds(i / 2),
                                          .body = [](std::size_t) { return std::string(); },
                                          .take =
                                              [&](std::size_t, const Result<HttpResponse>&) {
                                                return ++taken < 3 ? AfterPost::kAgain
                                                                   : AfterPost::kGoOn;
                                              }});
    EXPECT_EQ(taken, 3);
  }
}

TEST(PostEach, EndsWhenItIsToldTo) {
  std::atomic<int> calls = 0;
  const auto server = serve([&](const HttpRequest& request) {
    ++calls;
    return echo(request);
  });
  int taken = 0;
  const PostEach posts{.count = 40,
                       .concurrency = 4,
                       .timeout = kPatience,
                       .body = [](std::size_t) { return std::string(); },
                       .take =
                           [&](std::size_t, const Result<HttpResponse>&) {
                             return ++taken < 5 ? AfterPost::kGoOn : AfterPost::kStop;
                           }};
  post_each({server->endpoint(), "/"}, posts);
  EXPECT_EQ(taken, 5);
  EXPECT_LE(calls, 8) << "of which four were under way";
}

TEST(Urls, ThoseOfAnOpenAiApiGetTheirRoute) {
  for (const char* url : {"http://a:1", "http://a:1/", "http://a:1/v1", "http://a:1/v1/"})
    EXPECT_EQ(openai_url(url, "/models"), "http://a:1/v1/models") << url;
  EXPECT_EQ(openai_url("http://a/proxy/v1", "/models"), "http://a/proxy/v1/models");
  for (const char* url : {"http://a/proxy/v1/models", "http://a/x?k=1", "nothing"})
    EXPECT_EQ(openai_url(url, "/models"), url);
}

TEST(Urls, parse) {
  const Url url = parse_url("http://host:81/a?b=c").value();
  EXPECT_EQ(url.server, (link::Endpoint{"host", 81}));
  EXPECT_EQ(url.target, "/a?b=c");
  EXPECT_EQ(parse_url("http://host").value().server.port, 80);
  EXPECT_EQ(parse_url("http://[::1]:81/a").value().server, (link::Endpoint{"::1", 81}));
  EXPECT_EQ(parse_url("http://[::1]/a").value().server, (link::Endpoint{"::1", 80}));
  EXPECT_EQ(parse_url("http://host?x").value().target, "/?x");
  for (const char* bad : {"", "host", "http://", "http://h:x/", "https://h/", "http://u@h/",
                          "http://h/a b", "http://h/#part", "http://[::1/", "http://::1/"})
    EXPECT_FALSE(parse_url(bad)) << bad;
}

TEST(Endpoints, parse_and_print) {
  EXPECT_EQ(link::parse_endpoint("http://localhost:80/").value(),
            (link::Endpoint{"localhost", 80}));
  EXPECT_EQ(to_string(link::parse_endpoint("127.0.0.1:7420").value()), "127.0.0.1:7420");
  for (const char* bad : {"", "host", ":80", "host:", "host:99999", "host:8x"}) {
    EXPECT_FALSE(link::parse_endpoint(bad)) << bad;
  }
}

}  // namespace
}  // namespace tandem::http
