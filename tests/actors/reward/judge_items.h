// Judges completions by a reward in an actor of its own, with real programs, and reads the scores.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/reward/make_verifier.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/guarded.h"

namespace tandem::reward {

// Judges items by a reward, and answers when all have their score.
struct JudgeItems {
  using Reply = std::vector<messages::TrajectoryScore>;
  std::vector<ScoreItem> items;
};
struct Judges {
  using Inbox = std::variant<actor::Ask<JudgeItems>>;
  std::unique_ptr<Verifier> verifier;
  void handle(actor::Context& cx, actor::Ask<JudgeItems> ask) {
    auto scores = std::make_shared<JudgeItems::Reply>(ask.question.items.size());
    auto left = std::make_shared<std::size_t>(scores->size());
    for (std::size_t i = 0; i < scores->size(); ++i)
      verifier->score(cx, ask.question.items[i],
                      [=, reply = ask.reply](actor::Context&, messages::TrajectoryScore score) {
                        (*scores)[i] = std::move(score);
                        if (--*left == 0) reply(*scores);
                      });
  }
};

// The scores, or the error with which the verifier gave up.
inline Result<JudgeItems::Reply> judge(const RewardParts& reward, std::vector<ScoreItem> items) {
  link::IoThread io("test");
  Guarded<std::optional<Error>> gave_up;
  actor::ThreadedExecutor executor(1, 1);
  actor::System system(
      executor, [&](auto&, const Error& why) { gave_up.with([&](auto& error) { error = why; }); });
  auto made = make_reward(reward, node::process_spawner(io));
  if (!made) return made.error();
  auto kept = std::make_shared<std::unique_ptr<Verifier>>(*std::move(made));
  const auto ref = system.spawn<Judges>(
      "judge", [kept] { return std::make_unique<Judges>(Judges{std::move(*kept)}); });
  auto judged = ask_and_wait(ref, JudgeItems{std::move(items)}, std::chrono::seconds(60));
  executor.stop();
  if (const auto why = gave_up.with([](auto& error) { return error; })) return *why;
  return judged;
}

inline ScoreItem item(const std::string& completion, const nlohmann::json& answer = "a",
                      nlohmann::json data = {}) {
  if (data.is_null()) data = nlohmann::json::object();
  return {.prompt = "p:", .completion = completion, .answer = answer, .data = std::move(data)};
}

inline RewardParts one(VerifierConfig config) { return {{{}}, {std::move(config)}, {}}; }

inline std::string reason(const messages::TrajectoryScore& score) {
  const auto* failed = std::get_if<messages::ScoreFailed>(&score);
  return failed ? failed->reason : "scored";
}
inline double value(const messages::TrajectoryScore& score) {
  const auto* scored = std::get_if<messages::Scored>(&score);
  EXPECT_TRUE(scored) << reason(score);
  return scored ? scored->value : -1e9;
}
inline nlohmann::json extra(const messages::TrajectoryScore& score) {
  return parse_json(std::get<messages::Scored>(score).extra);
}

inline void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

}  // namespace tandem::reward
