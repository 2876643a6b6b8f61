// Three verifiers are functions of the completion and the answer and judge at once; the others ask
// a program (command_verifier.h) or a server (http_verifier.h).
#include "actors/reward/make_verifier.h"

#include "actors/reward/code_verifier.h"
#include "actors/reward/command_verifier.h"
#include "actors/reward/pattern.h"
#include "runtime/base/text.h"
#include "runtime/http/http_client.h"
#include "runtime/node/last_lines.h"

namespace tandem::reward {
namespace {

constexpr std::size_t kShownWordBytesMax = 200;  // per word of a command in the log
// An import that fails does so again.
constexpr int kPythonStartsUnanswered = 3;

// A verifier that answers at once, by functions of the item.
class DirectVerifier final : public Verifier {
 public:
  using Judge = std::function<messages::TrajectoryScore(const ScoreItem& item)>;
  using Find = std::function<std::optional<std::string>(const ScoreItem& item)>;
  DirectVerifier(Judge judge, Find find) : judge_(std::move(judge)), find_(std::move(find)) {}
  void score(actor::Context& cx, ScoreItem item, Done done) override { done(cx, judge_(item)); }
  std::optional<std::string> found(const ScoreItem& item) const override { return find_(item); }

 private:
  const Judge judge_;
  const Find find_;
};

// What a comparison of a completion with the answer finds.
struct Compared {
  bool equal = false;
  std::optional<std::string> vote;  // the completion's answer, as it counts in a vote
};
// The judge of a verifier that compares with the answer: 1 where the two are equal, else 0.
template <class Compare>
DirectVerifier::Judge by_comparison(Compare compare) {
  return [compare](const ScoreItem& item) -> messages::TrajectoryScore {
    const Result<std::string> answer = answer_text(item.answer);
    if (!answer) return messages::ScoreFailed{answer.error().message};
    const Compared compared = compare(*answer, item);
    messages::Scored scored{.value = compared.equal ? 1.0 : 0.0};
    if (compared.vote) scored.vote = messages::vote_of(*compared.vote);
    return scored;
  };
}

// The whole of a completion, as `exact` sees it.
std::string exact_text(const ScoreItem& item) {
  return trimmed(item.special_text.value_or(item.completion));
}

// 1 where the expression is found, and its first group, where it has one, is the answer; else 0.
messages::TrajectoryScore judge_pattern(const Pattern& pattern, const ScoreItem& item) {
  const Pattern::Match match = pattern.first(item.completion);
  if (const auto fault = match.fault()) return messages::ScoreFailed{*fault};
  if (!match.found()) return messages::Scored{0.0};
  if (!pattern.has_group()) return messages::Scored{1.0};
  const Result<std::string> answer = answer_text(item.answer);
  if (!answer) return messages::ScoreFailed{answer.error().message};
  messages::Scored scored{.value = match.group == *answer ? 1.0 : 0.0};
  if (match.group) scored.vote = messages::vote_of(*match.group);
  return scored;
}

std::string shown_word(const std::string& text) {
  return nlohmann::json(node::one_line(text, kShownWordBytesMax)).dump();
}

// Time, tries and limits of a verifier that asks a program or a server.
std::string describe_asking(const VerifierConfig& config) {
  return " timeout_s=" + nlohmann::json(seconds(config.timeout)).dump() +
         " retries=" + std::to_string(config.retries);
}

std::string describe_limits(const node::ChildLimits& limits) {
  const auto shown = [](const auto& limit) {
    return limit ? nlohmann::json(*limit).dump() : std::string("none");
  };
  return " open_files=" + shown(limits.open_files) + " file_bytes=" + shown(limits.file_bytes) +
         " cpu_seconds_per_line=" + shown(limits.cpu_seconds_per_line) +
         " memory_bytes=" + shown(limits.memory_bytes);
}

std::string describe_sandbox(const VerifierConfig& config) {
  if (!config.program.sandbox) return "";
  return " sandbox=" + shown_word(text(config.program.sandbox->plan));
}

}  // namespace

std::string describe(const VerifierConfig& config) {
  const std::string type = "type=" + std::string(spelling(config.type));
  switch (config.type) {
    case VerifierType::kExact:
      return type;
    case VerifierType::kMath:
      return type + " percent=" + std::string(spelling(config.percent));
    case VerifierType::kRegex:
      return type + " pattern=" + nlohmann::json(valid_utf8(config.pattern)).dump();
    case VerifierType::kHttp:
      return type + " url=" + shown_word(config.http.url) + describe_asking(config);
    case VerifierType::kJudge:
      return type + " url=" + shown_word(config.http.url) +
             " model=" + shown_word(config.judge.model.value_or("the server's")) +
             describe_asking(config);
    case VerifierType::kPython:
      return type + " function=" + shown_word(config.python.function) +
             " python=" + shown_word(config.python.interpreter) + describe_asking(config) +
             describe_limits(config.program.limits) + describe_sandbox(config);
    case VerifierType::kCode:
      return type + " language=" + std::string(spelling(config.code.language)) +
             " score=" + std::string(spelling(config.code.score)) +
             " case_timeout_s=" + nlohmann::json(seconds(config.code.case_timeout)).dump() +
             " python=" + shown_word(config.python.interpreter) + describe_sandbox(config);
    case VerifierType::kCommand:
      break;
  }
  std::string command;
  for (const std::string& word : config.program.argv)
    command += (command.empty() ? "" : " ") + node::one_line(word, kShownWordBytesMax);
  return type + " command=" + nlohmann::json(command).dump() + describe_asking(config) +
         describe_limits(config.program.limits) + describe_sandbox(config);
}

std::string describe(const RewardParts& reward) {
  std::string text;
  for (std::size_t i = 0; i < reward.parts.size(); ++i) {
    const std::string& name = reward.parts[i].name;
    text += (i == 0 ? "" : " ") + (name.empty() ? "" : "part=" + name + " ") +
            describe(reward.verifiers[i]);
  }
  return text;
}

Result<std::string> answer_text(const nlohmann::json& answer) {
  if (answer.is_string()) return trimmed(answer.get_ref<const std::string&>());
  if (answer.is_number()) return answer.dump();
  return Error{ErrorCode::kInvalid, answer.is_null()
                                        ? std::string("the record has no answer")
                                        : "the answer is neither a string nor a number: " +
                                              std::string(answer.type_name())};
}

Result<void> check_pattern(const std::string& pattern) {
  const auto compiled = Pattern::compile(pattern);
  return compiled ? Result<void>() : compiled.error();
}

bool needs_answer(VerifierType type, const std::string& pattern) {
  const bool compares = type == VerifierType::kExact || type == VerifierType::kMath;
  if (type != VerifierType::kRegex) return compares;
  const auto compiled = Pattern::compile(pattern);
  return !compiled || compiled->has_group();
}

namespace {

// The verifier of a program, with the settings that all programs share.
std::unique_ptr<Verifier> program_verifier(CommandVerifier::Config program,
                                           const VerifierConfig& config,
                                           node::LineChildSpawner spawn) {
  CHECK(config.sandbox == sandbox::SandboxMode::kOff || config.program.sandbox);
  program.timeout = config.timeout;
  program.retries = config.retries;
  program.log = config.log;
  return std::make_unique<CommandVerifier>(std::move(program), std::move(spawn));
}

Result<std::unique_ptr<Verifier>> asking_verifier(const VerifierConfig& config, HttpReward server,
                                                  HttpForm form) {
  auto post = http_post_to(server, config.timeout);
  if (!post) return post.error();
  return std::unique_ptr<Verifier>(
      std::make_unique<HttpVerifier>(HttpVerifier::Config{.url = std::move(server.url),
                                                          .batch_size = server.batch_size,
                                                          .concurrency = server.concurrency,
                                                          .retries = config.retries},
                                     std::move(form), *std::move(post)));
}

}  // namespace

Result<std::unique_ptr<Verifier>> make_verifier(const VerifierConfig& config,
                                                node::LineChildSpawner spawn) {
  const auto direct = [](DirectVerifier::Judge judge,
                         DirectVerifier::Find find) -> std::unique_ptr<Verifier> {
    return std::make_unique<DirectVerifier>(std::move(judge), std::move(find));
  };
  switch (config.type) {
    case VerifierType::kExact:
      return direct(by_comparison([](const std::string& answer, const ScoreItem& item) {
                      std::string text = exact_text(item);
                      return Compared{text == answer, std::move(text)};
                    }),
                    [](const ScoreItem& item) { return std::optional(exact_text(item)); });
    case VerifierType::kMath:
      return direct(by_comparison([percent = config.percent](const std::string& answer,
                                                             const ScoreItem& item) {
                      MathVerdict verdict = judge_math(answer, item.completion, percent);
                      return Compared{verdict.right, std::move(verdict.vote)};
                    }),
                    [](const ScoreItem& item) { return final_answer(item.completion); });
    case VerifierType::kRegex: {
      Result<Pattern> pattern = Pattern::compile(config.pattern);
      if (!pattern) return pattern.error();
      auto shared = std::make_shared<const Pattern>(*std::move(pattern));
      return direct(
          [shared](const ScoreItem& item) { return judge_pattern(*shared, item); },
          [shared](const ScoreItem& item) { return shared->first(item.completion).group; });
    }
    case VerifierType::kCommand:
      if (config.program.argv.empty())
        return Error{ErrorCode::kInvalid, "the command is empty", "reward.command"};
      return program_verifier({.program = config.program}, config, std::move(spawn));
    case VerifierType::kPython: {
      CommandVerifier::Config program{.program = config.program,
                                      .greeting = greeting_of(config.python),
                                      .start_timeout = config.python.start_timeout,
                                      .starts_max = kPythonStartsUnanswered,
                                      .key = "reward.function"};
      program.program.argv = argv_of(config.python);
      return program_verifier(std::move(program), config, std::move(spawn));
    }
    case VerifierType::kCode:
      CHECK(config.sandbox == sandbox::SandboxMode::kOff || config.program.sandbox);
      return make_code_verifier(config.code, config.program, config.python.interpreter,
                                config.retries, config.threads);
    case VerifierType::kHttp:
      return asking_verifier(config, config.http, openrlhf_form());
    case VerifierType::kJudge: {
      auto form = judge_form(config.judge);
      if (!form) return form.error();
      HttpReward server = config.http;
      server.url = http::openai_url(server.url, "/chat/completions");
      server.batch_size = 1;
      return asking_verifier(config, std::move(server), *std::move(form));
    }
  }
  CHECK(false && "a verifier of no type");
  return Error{};
}

Result<std::unique_ptr<Verifier>> make_reward(const RewardParts& reward,
                                              const node::LineChildSpawner& spawn) {
  CHECK(!reward.parts.empty() && reward.parts.size() == reward.verifiers.size());
  std::vector<std::unique_ptr<Verifier>> verifiers;
  for (const VerifierConfig& config : reward.verifiers) {
    auto made = make_verifier(config, spawn);
    if (!made) return made.error();
    verifiers.push_back(*std::move(made));
  }
  const RewardPart& first = reward.parts.front();
  const bool as_scored = first.name.empty() && first.sources.empty() &&
                         first.payment == Payment{} && reward.whole == Payment{};
  if (as_scored) return std::move(verifiers.front());
  return std::unique_ptr<Verifier>(
      std::make_unique<SumVerifier>(reward.parts, reward.whole, std::move(verifiers)));
}

}  // namespace tandem::reward
