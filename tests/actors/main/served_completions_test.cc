// Completions of a server for `tandem eval --url`: what is asked, what is read, and what is no
// answer. The server is in this process.
//
// Tests actors/main/served_completions.h.
#include "actors/main/served_completions.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/base/guarded.h"
#include "runtime/base/json.h"
#include "runtime/http/http_server.h"

namespace tandem::app {
namespace {

using nlohmann::json;

class CompletionsOfAServer : public testing::Test {
 protected:
  using Answer = std::function<http::HttpResponse(const json& body, int call)>;
  Result<std::vector<messages::EvaluationText>> ask(const Answer& answer) {
    int calls = 0;
    const auto server = *http::HttpServer::listen({}, {}, [&](const http::HttpRequest& request) {
      EXPECT_EQ(request.target, "/v1/completions");
      const json body = parse_json(request.body);
      return bodies.with([&](auto& all) {
        all.push_back(body);
        return http::HttpAnswer(answer(body, ++calls));
      });
    });
    return completions_from({.url = "http://" + to_string(server->endpoint()),
                             .model = "m",
                             .pause = std::chrono::milliseconds(1)},
                            plan, config, {{0, {5, 6}}, {2, {7}}});
  }
  static http::HttpResponse said(const json& text, const char* reason = "stop") {
    return {.body = dump_json({{"choices", {{{"text", text}, {"finish_reason", reason}}}}})};
  }

  exchange::EvaluationPlan plan{
      .prompts = 3,
      .sampling = {.n = 2, .temperature = 0.5F, .top_p = 0.9F, .top_k = 7, .greedy = true},
      .seed = 4,
      .sources = {}};
  rollout::EngineConfig config{.sampling = {.stop = {"\n"}, .stop_token_ids = {3}},
                               .max_prompt_length = 8,
                               .max_response_length = 12};
  Guarded<std::vector<json>> bodies;
};

TEST_F(CompletionsOfAServer, AreThoseOfEachPromptAndSample) {
  const auto texts = ask([](const json& body, int) {
    return said(body["prompt"].dump() + (body["temperature"] == 0.0 ? " greedy" : ""),
                body["prompt"].size() == 1 ? "length" : "stop");
  });
  ASSERT_TRUE(texts) << render(texts.error());
  ASSERT_EQ(texts->size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ((*texts)[i].index, i < 3 ? 0 : 2);
    EXPECT_EQ((*texts)[i].sample, static_cast<int>(i % 3));
    EXPECT_EQ((*texts)[i].text,
              std::string(i < 3 ? "[5,6]" : "[7]") + (i % 3 == 2 ? " greedy" : ""));
    EXPECT_EQ((*texts)[i].truncated, i >= 3);
  }
  bodies.with([](const auto& all) {
    std::set<std::uint64_t> seeds;
    for (const json& body : all) {
      EXPECT_EQ(body["max_tokens"], 12);
      EXPECT_EQ(body["model"], "m");
      EXPECT_EQ(body["stop"], json({"\n"}));
      EXPECT_EQ(body["stop_token_ids"], json({3}));
      const bool greedy = body["temperature"] == 0.0;
      EXPECT_EQ(body["top_k"], greedy ? -1 : 7);
      EXPECT_EQ(body["min_p"], 0.0);
      seeds.insert(body["seed"].get<std::uint64_t>());
      EXPECT_LT(*seeds.rbegin(), 1u << 31);
    }
    EXPECT_EQ(seeds.size(), 6u);
  });
}

TEST_F(CompletionsOfAServer, AreAskedForAgainWhereThatMayHelp) {
  const auto texts = ask([](const json&, int call) {
    return call <= 2 ? http::HttpResponse{.status = call == 1 ? 503 : 429} : said("x");
  });
  EXPECT_TRUE(texts) << render(texts.error());
  bodies.with([](const auto& all) { EXPECT_EQ(all.size(), 8u); });
}

TEST_F(CompletionsOfAServer, WithoutOneTheCommandFailsByName) {
  const auto why = [&](const http::HttpResponse& response) {
    const auto texts = ask([&](const json&, int) { return response; });
    return texts ? "it answered" : texts.error().message;
  };
  EXPECT_EQ(why({.status = 404, .body = "no such model"}),
            "the server answered 404: no such model");
  EXPECT_EQ(why(said(7)).substr(0, 36), "the server's answer is no completion");
  EXPECT_EQ(why(said("x", "abort")).substr(0, 36), "the server's answer is no completion");
  EXPECT_EQ(why({.body = "{}"}), "the server's answer is no completion: {}");
  const auto gone =
      completions_from({.url = "http://127.0.0.1:1", .pause = std::chrono::milliseconds(1)}, plan,
                       config, {{0, {5}}});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kUnreachable) << render(gone.error());
}

}  // namespace
}  // namespace tandem::app
