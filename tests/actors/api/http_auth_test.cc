// Which requests HttpAuth lets pass, and which it refuses.
#include "actors/api/http_auth.h"

#include <gtest/gtest.h>

namespace tandem::api {
namespace {

using http::HttpRequest;
using http::HttpResponse;

constexpr Time kStart{1'000'000'000};
constexpr const char* kHost = "127.0.0.1:7422";

class HttpAuthTest : public testing::Test {
 protected:
  HttpRequest request(const std::string& method, const std::string& target,
                      const http::HttpHeaders& headers = {}) const {
    HttpRequest made{.method = method, .headers = {{"host", kHost}}};
    EXPECT_TRUE(http::split_target(target, made));
    for (const auto& [name, value] : headers) made.headers[name] = value;
    return made;
  }
  int status(const HttpRequest& asked) const {
    const auto refused = auth_.refuse(asked);
    return refused ? refused->status : 200;
  }
  // The cookie that the browser sends back after it opened the page with a key.
  std::string cookie() {
    const HttpResponse opened = auth_.open_page(auth_.make_page_key(kStart), kStart);
    EXPECT_EQ(opened.status, 303);
    const std::string set = opened.headers.at("set-cookie");
    EXPECT_NE(set.find("HttpOnly"), std::string::npos);
    EXPECT_NE(set.find("SameSite=Strict"), std::string::npos);
    return set.substr(0, set.find(';'));
  }

  HttpAuth auth_{{.token = "the-token", .nonce = "a nonce", .hosts = {"cluster.example"}}};
  const http::HttpHeaders bearer_{{"authorization", "Bearer the-token"}};
};

TEST_F(HttpAuthTest, HA1WithoutTheTokenOnlyHealthIsAnswered) {
  for (const char* target : {"/api/v1/jobs", "/metrics", "/", "/api/v1/events?watch=1", "/x"}) {
    EXPECT_EQ(status(request("GET", target)), 401) << target;
    EXPECT_EQ(status(request("GET", target, bearer_)), 200) << target;
  }
  EXPECT_EQ(status(request("POST", "/api/v1/jobs/a/scale")), 401);
  EXPECT_EQ(status(request("POST", "/api/v1/jobs/a/scale", bearer_)), 200);
  EXPECT_EQ(status(request("GET", "/healthz")), 200);
  EXPECT_EQ(status(request("GET", "/readyz")), 200);
}

TEST_F(HttpAuthTest, HA3ProbesAreAnsweredHealthAlone) {
  const http::HttpHandler probed =
      for_probes([](const HttpRequest&) { return HttpResponse{.body = "all"}; });
  const auto answer = [&](HttpRequest asked, const std::string& host) {
    asked.headers["host"] = host;  // a probe calls the pod by its address
    return std::get<HttpResponse>(probed(asked));
  };
  for (const char* target : {"/healthz", "/readyz", "/readyz?verbose"})
    EXPECT_EQ(answer(request("GET", target), "10.1.2.3:7430").body, "all") << target;
  for (const char* target : {"/api/v1/jobs", "/metrics", "/", "/healthz/../metrics", "//healthz"})
    EXPECT_EQ(answer(request("GET", target, bearer_), "127.0.0.1").status, 404) << target;
  EXPECT_EQ(answer(request("POST", "/healthz", bearer_), "127.0.0.1").status, 404);
  EXPECT_TRUE(answer(request("GET", "/x"), "a").headers.contains("content-security-policy"));
}

TEST_F(HttpAuthTest, ATokenThatIsAlmostRightIsWrong) {
  for (const char* value : {"Bearer the-toke", "Bearer the-tokenx", "Bearer ", "Bearer",
                            "the-token", "bearer the-token", "Basic the-token", ""})
    EXPECT_EQ(status(request("GET", "/api/v1/jobs", {{"authorization", value}})), 401) << value;
}

TEST_F(HttpAuthTest, OnlyNamesOfThisMachineAreServed) {
  for (const char* host : {"127.0.0.1:7422", "localhost:9000", "LOCALHOST", "[::1]:7422",
                           "cluster.example:80", "127.0.0.1"}) {
    HttpRequest asked = request("GET", "/api/v1/jobs", bearer_);
    asked.headers["host"] = host;
    EXPECT_EQ(status(asked), 200) << host;
  }
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:7422",
                           "", "evil.example:7422, 127.0.0.1:7422", "0.0.0.0:7422"}) {
    HttpRequest asked = request("GET", "/api/v1/jobs", bearer_);
    asked.headers["host"] = host;
    EXPECT_EQ(status(asked), 421) << host;
  }
}

TEST_F(HttpAuthTest, APageOfAnotherOriginIsRefusedEvenWithTheToken) {
  for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1:7422",
                             "http://127.0.0.1:7423", "http://127.0.0.1"}) {
    http::HttpHeaders headers = bearer_;
    headers["origin"] = origin;
    EXPECT_EQ(status(request("GET", "/api/v1/jobs", headers)), 403) << origin;
    EXPECT_EQ(status(request("POST", "/api/v1/jobs", headers)), 403) << origin;
  }
}

TEST_F(HttpAuthTest, HA2AKeyOpensThePageOnceAndInTime) {
  const std::string key = auth_.make_page_key(kStart);
  EXPECT_EQ(auth_.open_page(key, kStart).status, 303);
  EXPECT_EQ(auth_.open_page(key, kStart).status, 401);
  EXPECT_EQ(auth_.open_page("guess", kStart).status, 401);
  const std::string late = auth_.make_page_key(kStart);
  EXPECT_EQ(auth_.open_page(late, kStart + kPageKeyLifetime).status, 401);
  std::string oldest = auth_.make_page_key(kStart);
  for (std::size_t i = 0; i < kPageKeysMax; ++i)
    (void)auth_.make_page_key(kStart + std::chrono::seconds(1));
  EXPECT_EQ(auth_.open_page(oldest, kStart).status, 401);
}

TEST_F(HttpAuthTest, ACookieReadsAndChangesOnlyWithItsOwnOrigin) {
  const std::string jar = "other=1; " + cookie() + "; more=2";
  EXPECT_EQ(status(request("GET", "/", {{"cookie", jar}})), 200);
  EXPECT_EQ(status(request("GET", "/api/v1/jobs", {{"cookie", jar}})), 200);
  EXPECT_EQ(status(request("POST", "/api/v1/jobs/a/cancel", {{"cookie", jar}})), 403);
  EXPECT_EQ(status(request("POST", "/api/v1/jobs/a/cancel",
                           {{"cookie", jar}, {"origin", "http://127.0.0.1:7422"}})),
            200);
  EXPECT_EQ(status(request("POST", "/api/v1/jobs/a/cancel",
                           {{"cookie", jar}, {"origin", "http://evil.example"}})),
            403);
  EXPECT_EQ(status(request("GET", "/api/v1/jobs", {{"cookie", auth_.cookie_name() + "=guess"}})),
            401);
  EXPECT_EQ(status(request("GET", "/api/v1/jobs", {{"cookie", auth_.cookie_name() + "="}})), 401);
}

// A controller that is started again has the nonce of the one before it.
TEST_F(HttpAuthTest, ACookieIsGoodAsLongAsTheNonce) {
  const auto refused_by = [this](const std::string& nonce) {
    const HttpAuth next({.token = "the-token", .nonce = nonce});
    EXPECT_EQ(next.cookie_name(), auth_.cookie_name());
    return next.refuse(request("GET", "/api/v1/jobs", {{"cookie", cookie()}})).has_value();
  };
  EXPECT_FALSE(refused_by("a nonce"));
  EXPECT_TRUE(refused_by("another"));
  EXPECT_TRUE(refused_by(""));
}

TEST_F(HttpAuthTest, ACookieOfAnotherClusterIsNone) {
  const HttpAuth other({.token = "another-token"});
  EXPECT_NE(other.cookie_name(), auth_.cookie_name());
  EXPECT_TRUE(other.refuse(request("GET", "/api/v1/jobs", {{"cookie", cookie()}})));
}

TEST_F(HttpAuthTest, MetricsAreOpenOnlyByName) {
  const HttpAuth open({.token = "the-token", .metrics_without_token = true});
  EXPECT_FALSE(open.refuse(request("GET", "/metrics")));
  EXPECT_TRUE(open.refuse(request("GET", "/api/v1/jobs")));
  EXPECT_TRUE(open.refuse(request("GET", "/metrics/../api/v1/jobs")));
}

TEST_F(HttpAuthTest, EveryResponseForbidsForeignScripts) {
  const auto handler = guarded_by(auth_, [](const HttpRequest&) { return HttpResponse{}; });
  for (const auto& asked : {request("GET", "/api/v1/jobs", bearer_), request("GET", "/"),
                            request("GET", "/?key=guess"), request("GET", "/healthz")}) {
    const auto answer = std::get<HttpResponse>(handler(asked));
    EXPECT_NE(answer.headers.at("content-security-policy").find("script-src 'self'"),
              std::string::npos);
    EXPECT_EQ(answer.headers.at("x-content-type-options"), "nosniff");
  }
}

}  // namespace
}  // namespace tandem::api
