#include "actors/main/model_commands.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <ostream>
#include <utility>

#include "actors/main/job/dataset.h"
#include "actors/main/job/load_job.h"
#include "actors/main/role_config.h"
#include "actors/model/checkpoint.h"
#include "actors/reward/verifier.h"
#include "actors/rollout/native_engine.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/json.h"
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
  const auto bytes = model->weights.bytes();
  const std::span<std::byte> sink = (*engine)->weight_sink();
  CHECK(sink.size() == bytes.size());
  std::memcpy(sink.data(), bytes.data(), bytes.size());
  (*engine)->begin_update(kOnlyVersion);
  CHECK((*engine)->may_finish_update());
  (*engine)->finish_update();
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

// Judges texts by the job's verifier, which works in an actor's turn.
struct Judge {
  using Reply = double;  // the sum of the scores; failed ones are counted in `failed`
  std::vector<actors::ScoreItem> items;
  std::shared_ptr<std::int64_t> failed;
};
class Judging {
 public:
  using Inbox = std::variant<runtime::Ask<Judge>>;
  explicit Judging(std::unique_ptr<actors::Verifier> verifier) : verifier_(std::move(verifier)) {}

  void handle(runtime::Context& cx, runtime::Ask<Judge> ask) {
    struct Open {
      std::size_t left = 0;
      std::vector<double> values;
    };
    auto open = std::make_shared<Open>();
    open->left = ask.question.items.size();
    open->values.resize(open->left);
    for (std::size_t i = 0; i < ask.question.items.size(); ++i)
      verifier_->score(cx, std::move(ask.question.items[i]),
                       [open, i, reply = ask.reply, failed = ask.question.failed](
                           runtime::Context&, actors::TrajectoryScore score) {
                         if (const auto* value = std::get_if<actors::Scored>(&score))
                           open->values[i] = value->value;
                         else
                           ++*failed;
                         if (--open->left > 0) return;
                         double sum = 0;
                         for (const double v : open->values) sum += v;
                         reply(sum);
                       });
  }

 private:
  std::unique_ptr<actors::Verifier> verifier_;
};
static_assert(runtime::Actor<Judging>);

}  // namespace

int generate(const GenerateCommand& command, const Console& console) {
  const auto info = actors::load_model_info(command.model);
  if (!info) return console.complain(info.error());
  std::int32_t longest = 1;
  for (const std::string& prompt : command.prompts) {
    const auto tokens = info->tokenizer.encode(prompt);
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
    console.out << array.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return 0;
  }
  for (std::size_t i = 0; i < texts.size(); ++i)
    console.out << command.prompts[i] << texts[i] << "\n";
  return 0;
}

int evaluate(const EvalCommand& command, const Console& console) {
  auto job = load_job(command.job, command.sets);
  if (!job) return console.complain(job.error());
  const JobSpec& spec = job->spec;
  if (spec.data.val_files.empty())
    return console.complain({ErrorCode::kInvalid, "the job has no data.val_files",
                             command.job.string(), "name a file of held-out prompts"});
  auto records = load_dataset(spec.data.val_files, dataset_keys(spec.data), RecordNeeds::kAnswer);
  if (!records) return console.complain(records.error());
  runtime::IoThread io("reward");
  auto verifier = actors::make_verifier(verifier_config(spec), actors::process_spawner(io));
  if (!verifier) return console.complain(verifier.error());
  actors::EngineConfig config = engine_config(spec, std::uint64_t{8} << 30);
  auto engine = load_engine(command.model, config);
  if (!engine) return console.complain(engine.error());

  actors::Evaluate work{.evaluation = {1}, .version = kOnlyVersion};
  for (std::size_t i = 0; i < records->size(); ++i)
    work.prompts.push_back({static_cast<std::int32_t>(i), (*records)[i].prompt});
  (*engine)->submit(std::move(work));
  auto failed = std::make_shared<std::int64_t>(0);
  Judge judge{.failed = failed};
  for (const actors::EngineEvent& event : run_dry(**engine)) {
    const auto* done = std::get_if<actors::EvaluationDone>(&event);
    if (!done) continue;
    *failed += std::ssize(done->unservable);
    for (const actors::EvaluationText& text : done->completions) {
      const Record& record = (*records)[static_cast<std::size_t>(text.index)];
      nlohmann::json data = parse_json(record.json);
      judge.items.push_back(
          {.prompt = record.prompt,
           .completion = text.text,
           .answer = record.answer_json ? parse_json(*record.answer_json) : nlohmann::json(),
           .data = std::move(data),
           .truncated = text.truncated});
    }
  }
  const auto judged = static_cast<std::int64_t>(judge.items.size());
  runtime::ThreadedExecutor executor(1, 0);
  runtime::System system(executor, nullptr);
  auto kept = std::make_shared<std::unique_ptr<actors::Verifier>>(std::move(*verifier));
  const auto judging = system.spawn<Judging>(
      "judge", [kept] { return std::make_unique<Judging>(std::move(*kept)); });
  const Result<double> sum = judged == 0
                                 ? Result<double>(0.0)
                                 : ask_and_wait(judging, std::move(judge), kEvaluationTimeout);
  executor.stop();
  if (!sum) return console.complain(sum.error());
  const std::int64_t scored = static_cast<std::int64_t>(records->size()) - *failed;
  const double mean = scored > 0 ? *sum / static_cast<double>(scored) : 0;
  if (command.output == OutputForm::kJson)
    console.out
        << nlohmann::json{{"mean", mean}, {"prompts", records->size()}, {"failed", *failed}}.dump(2)
        << "\n";
  else
    console.out << "mean reward " << mean << " over " << scored << " prompts, " << *failed
                << " failed\n";
  return 0;
}

}  // namespace tandem::cli
