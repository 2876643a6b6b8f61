#include "actors/api/route.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace tandem::api {
namespace {

// A route that answers its id and its path's parameters.
Route echoing(const std::string& method, const std::string& path, const std::string& id) {
  return {.method = method,
          .path = path,
          .id = id,
          .summary = id,
          .answers = {},
          .handler = [id](const Call& call) {
            std::string body = id;
            for (const auto& [name, value] : call.path) body += " " + name + "=" + value;
            return http::HttpResponse{.body = body};
          }};
}

RouteTable small_table() {
  return RouteTable({echoing("GET", "/v1/actors/{actor...}/logs", "logs"),
                     echoing("POST", "/v1/actors/{actor...}/ask", "ask"),
                     echoing("GET", "/v1/actors/{actor...}", "actor"),
                     echoing("GET", "/v1/runs/{run}/logs/{log...}", "run_log"),
                     echoing("GET", "/v1/runs/{run}", "run"),
                     echoing("DELETE", "/v1/runs/{run}", "delete")});
}

http::HttpRequest request_for(const std::string& method, const std::string& target) {
  http::HttpRequest request{.method = method};
  EXPECT_TRUE(http::split_target(target, request)) << target;
  return request;
}

// The answer's body, or its status, or "" where no path fits.
std::string answered(const RouteTable& table, const std::string& method,
                     const std::string& target) {
  const auto answer = table.answer(request_for(method, target));
  if (!answer) return "";
  const auto& response = std::get<http::HttpResponse>(*answer);
  return response.status == 200 ? response.body : std::to_string(response.status);
}

TEST(RouteTable, APathDecidesAndThenTheMethod) {  // HR-1
  const RouteTable table = small_table();
  EXPECT_EQ(answered(table, "GET", "/v1/runs/a-1"), "run run=a-1");
  EXPECT_EQ(answered(table, "DELETE", "/v1/runs/a-1"), "delete run=a-1");
  EXPECT_EQ(answered(table, "GET", "/v1/actors/a/rollout/0"), "actor actor=a/rollout/0");
  EXPECT_EQ(answered(table, "GET", "/v1/actors/a%2Frollout/0/logs"), "logs actor=a/rollout/0");
  EXPECT_EQ(answered(table, "GET", "/v1/actors/logs"), "actor actor=logs");
  EXPECT_EQ(answered(table, "GET", "/v1/runs/a-1/logs/r/0/4"), "run_log log=r/0/4 run=a-1");
  for (const char* const none :
       {"/", "/v1", "/v1/runs", "/v1/actors", "/v1/runs/a/b", "/v1/runs/a-1/logs", "/v2/runs/a-1"})
    EXPECT_EQ(answered(table, "GET", none), "") << none;
}

TEST(RouteTable, AnotherMethodIsRefusedWithThoseThatThereAre) {
  const RouteTable table = small_table();
  EXPECT_EQ(answered(table, "GET", "/v1/actors/a/ask"), "405");
  EXPECT_EQ(answered(table, "POST", "/v1/actors/a/logs"), "405");
  const auto refused =
      std::get<http::HttpResponse>(*table.answer(request_for("PUT", "/v1/runs/a-1")));
  EXPECT_EQ(refused.headers.at("allow"), "DELETE, GET");
  EXPECT_EQ(parse_json(refused.body)["error"]["help"], "this path takes DELETE and GET");
}

TEST(RouteTable, AnUnknownPathIsToldWhatIsNear) {
  const RouteTable table = small_table();
  EXPECT_EQ(table.near(request_for("GET", "/v1/jobs")), "below /v1 there are actors and runs");
  EXPECT_EQ(table.near(request_for("GET", "/v1/runs/a-1/log")),
            "below /v1/runs/a-1 there are logs");
  EXPECT_EQ(table.near(request_for("GET", "/v1/runs/a-1/logs")),
            "below /v1/runs/a-1/logs there are LOG");
}

TEST(RouteTableDeathTest, ARouteThatIsHiddenIsABug) {  // HR-1
  EXPECT_DEATH(RouteTable({echoing("GET", "/v1/{name...}", "all"), echoing("GET", "/v1/a", "a")}),
               "CHECK");
  EXPECT_DEATH(RouteTable({echoing("GET", "/v1/a", "a"), echoing("GET", "/v1/a", "b")}), "CHECK");
}

}  // namespace
}  // namespace tandem::api
