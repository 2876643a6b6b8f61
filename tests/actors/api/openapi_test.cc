// The document of routes that the test makes; that of the real API is in http_api_test.cc.
#include "actors/api/openapi.h"

#include <gtest/gtest.h>

#include "actors/api/schema.h"

namespace tandem::api {
namespace {

using nlohmann::json;

constexpr const char* kColours[] = {"red", "blue"};

Route described_route() {
  return {
      .method = "GET",
      .path = "/api/v1/actors/{actor...}/logs",
      .id = "paint",
      .summary = "Paints",
      .query = {{.name = "n", .kind = QueryKind::kNumber, .bounds = {1, 9}, .usual = 3},
                {.name = "keys", .kind = QueryKind::kWords, .words_max = 4},
                {.name = "now", .kind = QueryKind::kFlag},
                {.name = "colour",
                 .kind = QueryKind::kChoice,
                 .usual_choice = "red",
                 .choices = kColours}},
      .answers = {json_body(schema::ref("Job"), "A job."), json_lines_body(schema::ref("Job"), "")},
      .errors = {{404, "No paint."}},
      .handler = {}};
}

json parameter(const json& operation, const std::string& name) {
  for (const json& one : operation["parameters"])
    if (one["name"] == name) return one;
  return json();
}

TEST(OpenApi, ARouteIsDescribedWithAllThatItTakesAndAnswers) {
  const Route route = described_route();
  const json document = openapi_document(std::span(&route, 1), "1.2");
  EXPECT_EQ(document["openapi"], "3.1.0");
  EXPECT_EQ(document["info"]["version"], "1.2");
  const json& operation = document["paths"]["/api/v1/actors/{actor}/logs"]["get"];
  EXPECT_EQ(operation["operationId"], "paint");
  EXPECT_EQ(operation["tags"], json::array({"actors"}));
  EXPECT_EQ(parameter(operation, "actor")["in"], "path");
  EXPECT_EQ(parameter(operation, "actor")["required"], true);
  EXPECT_EQ(parameter(operation, "n")["schema"].dump(),
            R"({"default":3,"maximum":9,"minimum":1,"type":"integer"})");
  EXPECT_EQ(parameter(operation, "keys")["explode"], false);
  EXPECT_EQ(parameter(operation, "keys")["schema"].dump(),
            R"({"items":{"type":"string"},"maxItems":4,"type":"array"})");
  EXPECT_EQ(parameter(operation, "now")["schema"]["enum"], json::array({0, 1}));
  EXPECT_EQ(parameter(operation, "colour")["schema"].dump(),
            R"({"default":"red","enum":["red","blue"],"type":"string"})");
  const json& answers = operation["responses"];
  EXPECT_EQ(answers["200"]["description"], "A job.");
  EXPECT_EQ(answers["200"]["content"].size(), 2u) << "whole, and as lines";
  EXPECT_EQ(answers["404"]["description"], "No paint.");
  for (const char* const common : {"401", "403", "421", "500", "503", "504"})
    EXPECT_EQ(answers[common]["content"]["application/json"]["schema"]["$ref"],
              "#/components/schemas/Error")
        << common;
  EXPECT_FALSE(answers.contains("413")) << "it takes no body";
  EXPECT_FALSE(operation.contains("security")) << "it needs the token, as the document says";
}

TEST(OpenApi, AnOpenRouteNeedsNoToken) {
  Route route = described_route();
  route.open = true;
  route.body = Body{"application/yaml", schema::text(), "A file."};
  const json document = openapi_document(std::span(&route, 1), "");
  const json& operation = document["paths"].front()["get"];
  EXPECT_EQ(operation["security"], json::array());
  EXPECT_FALSE(operation["responses"].contains("401"));
  EXPECT_TRUE(operation["responses"].contains("413"));
  EXPECT_EQ(operation["requestBody"]["content"]["application/yaml"]["schema"]["type"], "string");
  EXPECT_EQ(document["security"].dump(), R"([{"token":[]}])");
  EXPECT_EQ(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
}

}  // namespace
}  // namespace tandem::api
