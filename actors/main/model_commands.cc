#include "actors/main/model_commands.h"

#include <algorithm>
#include <charconv>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <utility>

#include "actors/main/cli/views.h"
#include "actors/main/job/dataset.h"
#include "actors/main/job/load_job.h"
#include "actors/main/role_config.h"
#include "actors/model/chat_template.h"
#include "actors/model/checkpoint.h"
#include "actors/reward/verifier.h"
#include "actors/rollout/native_engine.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/guarded.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/net/io_thread.h"

namespace tandem::cli {
namespace {

constexpr PolicyVersion kOnlyVersion{0};
constexpr Duration kEvaluationTimeout = std::chrono::hours(24);

// An engine that holds the weights of `directory`.
Result<std::unique_ptr<actors::NativeEngine>> load_engine(const std::filesystem::path& directory,
                                                          const actors::EngineConfig& config) {
  auto model = actors::load_model(directory, {});
  if (!model) return model.error();
  auto tokenizer = std::make_shared<const actors::Tokenizer>(std::move(model->tokenizer));
  auto engine = actors::NativeEngine::make({model->config, std::move(tokenizer)}, config, {});
  if (!engine) return engine.error();
  (*engine)->begin_update(kOnlyVersion);
  CHECK((*engine)->may_finish_update());
  (*engine)->finish_update(model->weights.bytes());
  return engine;
}

std::vector<actors::EngineEvent> run_dry(actors::NativeEngine& engine) {
  std::vector<actors::EngineEvent> all;
  while (engine.can_step()) {
    engine.step();
    for (actors::EngineEvent& event : engine.poll()) all.push_back(std::move(event));
  }
  for (actors::EngineEvent& event : engine.poll()) all.push_back(std::move(event));
  return all;
}

struct Judged {
  double sum = 0;  // of the scores
  std::int64_t failed = 0;
  std::string failure;  // why the first failed one has no score
};

// Judges texts by the job's verifier, which works in an actor's turn.
struct Judge {
  using Reply = Judged;
  std::vector<actors::ScoreItem> items;
};
class Judging {
 public:
  using Inbox = std::variant<runtime::Ask<Judge>>;
  explicit Judging(std::unique_ptr<actors::Verifier> verifier) : verifier_(std::move(verifier)) {}

  void handle(runtime::Context& cx, runtime::Ask<Judge> ask) {
    struct Open {
      std::size_t left = 0;
      std::vector<double> values;  // summed in their order: the mean repeats bit for bit
      Judged judged;
    };
    auto open = std::make_shared<Open>();
    open->left = ask.question.items.size();
    open->values.resize(open->left);
    for (std::size_t i = 0; i < ask.question.items.size(); ++i)
      verifier_->score(
          cx, std::move(ask.question.items[i]),
          [open, i, reply = ask.reply](runtime::Context&, actors::TrajectoryScore score) {
            if (const auto* value = std::get_if<actors::Scored>(&score))
              open->values[i] = value->value;
            else if (open->judged.failed++ == 0)
              open->judged.failure = std::get<actors::ScoreFailed>(score).reason;
            if (--open->left > 0) return;
            for (const double v : open->values) open->judged.sum += v;
            reply(open->judged);
          });
  }

 private:
  std::unique_ptr<actors::Verifier> verifier_;
};
static_assert(runtime::Actor<Judging>);

// All of the items; the error is the verifier's where it gave up.
Result<Judged> judge_all(std::unique_ptr<actors::Verifier> verifier, Judge judge) {
  if (judge.items.empty()) return Judged{};
  Guarded<std::optional<Error>> gave_up;
  runtime::ThreadedExecutor executor(1, 0);
  runtime::System system(executor, [&](const runtime::Address&, const Error& why) {
    gave_up.with([&](std::optional<Error>& error) { error = why; });
  });
  auto kept = std::make_shared<std::unique_ptr<actors::Verifier>>(std::move(verifier));
  const auto judging = system.spawn<Judging>(
      "judge", [kept] { return std::make_unique<Judging>(std::move(*kept)); });
  auto judged = ask_and_wait(judging, std::move(judge), kEvaluationTimeout);
  executor.stop();
  const std::optional<Error> why = gave_up.with([](auto& error) { return error; });
  if (why) return *why;
  return judged;
}

// Where nothing could be scored there is no mean, and the command fails with the reason.
int report(const Judged& judged, std::int64_t prompts, OutputForm form, const Console& console) {
  const std::int64_t scored = prompts - judged.failed;
  const double mean = scored > 0 ? judged.sum / static_cast<double>(scored) : 0;
  if (form == OutputForm::kJson)
    console.out << nlohmann::json{{"mean", scored > 0 ? nlohmann::json(mean) : nlohmann::json()},
                                  {"prompts", prompts},
                                  {"scored", scored},
                                  {"failed", judged.failed},
                                  {"failure", judged.failure.empty()
                                                  ? nlohmann::json()
                                                  : nlohmann::json(judged.failure)}}
                       .dump(2)
                << "\n";
  else if (scored > 0)
    console.out << "mean reward " << mean << " over " << scored << " of " << prompts << " prompts, "
                << judged.failed << " failed"
                << (judged.failed > 0 ? ", the first: " + judged.failure : "") << "\n";
  if (scored > 0) return 0;
  return console.complain(
      {ErrorCode::kFailed,
       "all " + std::to_string(prompts) + " prompts failed; the first: " + judged.failure, "",
       "there is no mean reward"});
}

// Each prompt becomes a conversation that a user has begun.
Result<void> as_conversations(GenerateCommand& command) {
  const auto chat = actors::read_chat_template(command.model);
  if (!chat) return chat.error();
  for (std::string& prompt : command.prompts) {
    const actors::ChatMessage message{.role = "user", .content = prompt};
    auto text = actors::render_chat(*chat, std::span(&message, 1), {});
    if (!text) return text.error();
    prompt = *std::move(text);
  }
  return {};
}

// Token ids with white space or commas between them.
Result<std::vector<std::int32_t>> parse_ids(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n,[]";
  std::vector<std::int32_t> ids;
  for (std::size_t at = 0; (at = text.find_first_not_of(kBetween, at)) != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    std::int32_t id = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc{} || stop != word.data() + word.size() || id < 0)
      return Error{ErrorCode::kInvalid, "`" + std::string(word) + "` is not a token id", "",
                   "give ids as `tandem tokenize` prints them: 12 7 431"};
    ids.push_back(id);
    at = end;
  }
  return ids;
}

}  // namespace

int generate(const GenerateCommand& given, const Console& console) {
  const auto info = actors::load_model_info(given.model);
  if (!info) return console.complain(info.error());
  GenerateCommand command = given;
  if (given.chat)
    if (auto rendered = as_conversations(command); !rendered)
      return console.complain(rendered.error());
  std::int32_t longest = 1;
  for (const std::string& prompt : command.prompts) {
    const auto tokens = info->tokenizer.encode_prompt(prompt);
    if (!tokens) return console.complain(tokens.error());
    longest = std::max(longest, static_cast<std::int32_t>(tokens->size()));
  }
  const bool greedy = command.temperature == 0;
  const actors::EngineConfig config{
      .temperature = greedy ? 1.0f : static_cast<float>(command.temperature),
      .max_prompt_length = longest,
      .max_response_length = static_cast<std::int32_t>(command.max_tokens)};
  auto engine = load_engine(command.model, config);
  if (!engine) return console.complain(engine.error());
  std::vector<std::string> texts(command.prompts.size());
  if (greedy) {
    actors::Evaluate work{.evaluation = {1}, .version = kOnlyVersion};
    for (std::size_t i = 0; i < command.prompts.size(); ++i)
      work.prompts.push_back({static_cast<std::int32_t>(i), command.prompts[i]});
    (*engine)->submit(std::move(work));
  } else {
    for (std::size_t i = 0; i < command.prompts.size(); ++i)
      (*engine)->submit(actors::GroupWork{.group = GroupId{i + 1},
                                          .seed = static_cast<std::uint64_t>(command.seed) + i,
                                          .n = 1,
                                          .prompt = command.prompts[i]});
  }
  for (actors::EngineEvent& event : run_dry(**engine)) {
    if (auto* done = std::get_if<actors::EvaluationDone>(&event))
      for (actors::EvaluationText& text : done->completions)
        texts[static_cast<std::size_t>(text.index)] = std::move(text.text);
    if (auto* group = std::get_if<actors::GroupPayload>(&event))
      texts[group->group.value - 1] = std::move(group->trajectories.front().text);
  }
  if (command.output == OutputForm::kJson) {
    nlohmann::json array = nlohmann::json::array();
    for (std::size_t i = 0; i < texts.size(); ++i)
      array.push_back({{"prompt", command.prompts[i]}, {"completion", texts[i]}});
    console.out << shown_json(array, 2) << "\n";
    return 0;
  }
  for (std::size_t i = 0; i < texts.size(); ++i)
    console.out << (console.terminal ? visible(command.prompts[i] + texts[i], Lines::kMany)
                                     : command.prompts[i] + texts[i])
                << "\n";
  return 0;
}

int tokenize(const TokenizeCommand& command, const Console& console) {
  const auto tokenizer = actors::Tokenizer::read(command.model / "tokenizer.json");
  if (!tokenizer) return console.complain(tokenizer.error());
  std::vector<std::string> texts = command.texts;
  if (texts.empty()) texts = {{std::istreambuf_iterator<char>(std::cin), {}}};
  nlohmann::json array = nlohmann::json::array();
  if (command.decode) {
    std::vector<std::int32_t> ids;
    for (const std::string& text : texts) {
      auto some = parse_ids(text);
      if (!some) return console.complain(some.error());
      ids.insert(ids.end(), some->begin(), some->end());
    }
    array.push_back({{"ids", ids}, {"text", tokenizer->decode(ids, actors::SpecialTokens::kKeep)}});
  } else {
    for (const std::string& text : texts) {
      const auto ids = tokenizer->encode_prompt(text);
      if (!ids)
        return console.complain({ErrorCode::kInvalid, ids.error().message, "",
                                 "give UTF-8 text that the model's tokenizer covers"});
      array.push_back({{"text", text}, {"ids", *ids}});
    }
  }
  if (command.output == OutputForm::kJson) {
    console.out << shown_json(array, 2) << "\n";
    return 0;
  }
  for (const nlohmann::json& item : array) {
    std::string line;
    if (command.decode)
      line = item["text"].get<std::string>();
    else
      for (const nlohmann::json& id : item["ids"]) line += (line.empty() ? "" : " ") + id.dump();
    console.out << (console.terminal ? visible(line, Lines::kMany) : line) << "\n";
  }
  return 0;
}

int evaluate(const EvalCommand& command, const Console& console) {
  init_logging("tandem", LogLevel::kWarnings);  // on stderr: stdout is the answer
  auto job = load_job(command.job, command.sets);
  if (!job) return console.complain(job.error());
  const JobSpec& spec = job->spec;
  if (spec.data.val_files.empty())
    return console.complain({ErrorCode::kInvalid, "the job has no data.val_files",
                             command.job.string(), "name a file of held-out prompts"});
  auto records = load_dataset(spec.data.val_files, dataset_keys(spec), RecordNeeds::kAnswer);
  if (!records) return console.complain(records.error());
  runtime::IoThread io("reward");
  auto verifier = actors::make_verifier(verifier_config(spec, ""), actors::process_spawner(io));
  if (!verifier) return console.complain(verifier.error());
  actors::EngineConfig config = engine_config(spec, std::uint64_t{8} << 30);
  auto engine = load_engine(command.model, config);
  if (!engine) return console.complain(engine.error());

  actors::Evaluate work{.evaluation = {1}, .version = kOnlyVersion};
  for (std::size_t i = 0; i < records->size(); ++i)
    work.prompts.push_back({static_cast<std::int32_t>(i), (*records)[i].prompt});
  (*engine)->submit(std::move(work));
  Judge judge;
  Judged judged;
  for (const actors::EngineEvent& event : run_dry(**engine)) {
    const auto* done = std::get_if<actors::EvaluationDone>(&event);
    if (!done) continue;
    judged.failed += std::ssize(done->unservable);
    if (judged.failed > 0) judged.failure = "a prompt is too long, or cannot be encoded";
    for (const actors::EvaluationText& text : done->completions) {
      const Record& record = (*records)[static_cast<std::size_t>(text.index)];
      nlohmann::json data = parse_json(record.json);
      judge.items.push_back(
          {.prompt = record.prompt,
           .completion = text.text,
           .answer = record.answer_json ? parse_json(*record.answer_json) : nlohmann::json(),
           .data = std::move(data),
           .truncated = text.truncated,
           .special_text = text.special_text});
    }
  }
  const auto scored = judge_all(std::move(*verifier), std::move(judge));
  if (!scored) return console.complain(scored.error());
  judged.sum = scored->sum;
  judged.failed += scored->failed;
  if (!scored->failure.empty()) judged.failure = scored->failure;
  return report(judged, std::ssize(*records), command.output, console);
}

}  // namespace tandem::cli
