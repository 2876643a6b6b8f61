// The engine of a rollout, without its actor: requests are submitted, step() is called until
// nothing is left, and the events are collected. The weights are the only version (0), installed
// before the first step by the same three calls as in a rollout.
#include "actors/main/model_commands.h"

#include <algorithm>
#include <memory>
#include <ostream>
#include <span>
#include <utility>

#include "actors/cli/evaluation_view.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/views.h"
#include "actors/exchange/evaluation_json.h"
#include "actors/exchange/evaluation_means.h"
#include "actors/exchange/samples.h"
#include "actors/jinja/json_value.h"
#include "actors/job/dataset.h"
#include "actors/job/load_job.h"
#include "actors/main/judging.h"
#include "actors/main/roles/job_prompts.h"
#include "actors/main/roles/role_config.h"
#include "actors/model/chat_format.h"
#include "actors/model/checkpoint.h"
#include "actors/model/weights.h"
#include "actors/reward/make_verifier.h"
#include "actors/rollout/answers.h"
#include "actors/rollout/native_engine.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/link/io_thread.h"

namespace tandem::app {
namespace {

constexpr PolicyVersion kOnlyVersion{0};

// An engine with the weights of `directory`, computing in `dtype`. They take the way that a
// learner's take: rounded as they would be published, so that tokens are those of a rollout.
Result<std::unique_ptr<rollout::NativeEngine>> load_engine(
    const std::filesystem::path& directory, const rollout::EngineConfig& config,
    device::DType dtype = device::DType::kF32) {
  auto model = model::load_model(directory, {.dtype = dtype});
  if (!model) return model.error();
  const auto weights = model::as_published(model->config, std::move(model->weights));
  if (!weights) return weights.error();
  auto tokenizer = std::make_shared<const model::Tokenizer>(std::move(model->tokenizer));
  auto engine = rollout::NativeEngine::make({model->config, std::move(tokenizer)}, config, {});
  if (!engine) return engine.error();
  (*engine)->begin_update(kOnlyVersion);
  CHECK((*engine)->may_finish_update());
  (*engine)->finish_update(weights->bytes());
  return engine;
}

// All events until nothing is left to do, or the engine's error.
Result<std::vector<rollout::EngineEvent>> run_dry(rollout::NativeEngine& engine) {
  std::vector<rollout::EngineEvent> all;
  for (bool more = true; more;) {
    more = engine.can_step();
    if (more) engine.step();
    for (rollout::EngineEvent& event : engine.poll()) {
      if (const auto* failed = std::get_if<rollout::EngineFailed>(&event)) return failed->error;
      all.push_back(std::move(event));
    }
  }
  return all;
}

using Scores = std::vector<messages::TrajectoryScore>;

// The completions of the engine, and the items that the verifier judges: one for each completion.
struct Said {
  std::vector<exchange::CompletionId> completions;
  std::vector<reward::ScoreItem> items;  // one for each of these
  std::vector<std::int32_t> unservable;  // prompts that are too long or cannot be encoded
};

// Adds completions of the records.
void add_completions(Said& said, std::vector<messages::EvaluationText> texts,
                     const std::vector<job::Record>& records, const std::string& answer_key) {
  for (messages::EvaluationText& text : texts) {
    const job::Record& record = records[static_cast<std::size_t>(text.index)];
    auto data = parse_json(record.json);
    const nlohmann::json* const answer = find_path(data, answer_key);
    said.completions.push_back({text.index, text.sample});
    said.items.push_back({.prompt = record.prompt,
                          .completion = std::move(text.text),
                          .answer = answer ? *answer : nlohmann::json(),
                          .data = std::move(data),
                          .data_source = record.data_source.value_or(""),
                          .truncated = text.truncated,
                          .special_text = std::move(text.special_text)});
  }
}

Result<Said> say_all(rollout::NativeEngine& engine, const exchange::EvaluationPlan& plan,
                     const std::vector<job::Record>& records, const std::string& answer_key) {
  messages::Evaluate work{
      .evaluation = {1}, .version = kOnlyVersion, .sampling = plan.sampling, .prompts = {}};
  for (std::int32_t i = 0; i < plan.prompts; ++i)
    work.prompts.push_back(
        {i, records[static_cast<std::size_t>(i)].prompt, exchange::prompt_seed(plan, i)});
  engine.submit(std::move(work));
  auto events = run_dry(engine);
  if (!events) return events.error();
  Said said;
  for (rollout::EngineEvent& event : *events) {
    auto* done = std::get_if<rollout::EvaluationDone>(&event);
    if (!done) continue;
    said.unservable = std::move(done->unservable);
    add_completions(said, std::move(done->completions), records, answer_key);
  }
  return said;
}

// The same by a server that has the model.
Result<Said> ask_all(const CompletionServer& server, const model::Tokenizer& tokenizer,
                     const rollout::EngineConfig& config, const exchange::EvaluationPlan& plan,
                     const std::vector<job::Record>& records, const std::string& answer_key) {
  Said said;
  std::vector<PromptTokens> prompts;
  for (std::int32_t i = 0; i < plan.prompts; ++i) {
    auto encoded =
        rollout::encode_prompt(records[static_cast<std::size_t>(i)].prompt, tokenizer, config);
    if (auto* tokens = std::get_if<std::vector<std::int32_t>>(&encoded))
      prompts.push_back({i, std::move(*tokens)});
    else
      said.unservable.push_back(i);
  }
  auto texts = completions_from(server, plan, config, prompts);
  if (!texts) return texts.error();
  add_completions(said, *std::move(texts), records, answer_key);
  return said;
}

// The figures of the evaluation (EM-1), and the reason of the first completion that has no score.
nlohmann::json answer_of(const exchange::EvaluationPlan& plan, const Said& said,
                         const Scores& scores) {
  exchange::EvaluationMeans means(plan);
  std::string failure;
  for (const std::int32_t index : said.unservable) {
    failure = "a prompt is too long, or cannot be encoded";
    for (std::int32_t i = 0; i < messages::completions_of(plan.sampling); ++i)
      means.failed({index, i});
  }
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (const auto* value = std::get_if<messages::Scored>(&scores[i])) {
      means.scored(said.completions[i],
                   {value->value, value->vote, exchange::numbers_in(value->extra)});
      continue;
    }
    means.failed(said.completions[i]);
    if (failure.empty()) failure = std::get<messages::ScoreFailed>(scores[i]).reason;
  }
  CHECK(means.done());
  nlohmann::json answer = exchange::figures_json(means.figures());
  answer["prompts"] = plan.prompts;
  answer["failure_reward"] = plan.failure_reward;
  answer["failure"] = failure.empty() ? nlohmann::json() : nlohmann::json(failure);
  return answer;
}

// Every completion that was made, as a line of samples.jsonl has it.
nlohmann::json completions_of(const exchange::EvaluationPlan& plan, const Said& said,
                              const std::vector<job::Record>& records, const job::DatasetKeys& keys,
                              const Scores& scores) {
  const exchange::RecordKeys fields{.answer = keys.answer, .data_source = keys.data_source};
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto [index, sample] = said.completions[i];
    const reward::ScoreItem& item = said.items[i];
    const bool greedy_beside = sample == plan.sampling.n;
    nlohmann::json line{{"index", index},
                        {"prompt", item.prompt},
                        {"completion", item.completion},
                        {"sample", greedy_beside ? nlohmann::json() : nlohmann::json(sample)},
                        {"greedy", messages::is_greedy(plan.sampling, sample)},
                        {"finish_reason", item.truncated ? "length" : "stop"}};
    exchange::add_record_fields(line, records[static_cast<std::size_t>(index)].json, fields);
    if (const auto* scored = std::get_if<messages::Scored>(&scores[i])) {
      line["reward"] = scored->value;
      exchange::add_extra(line, scored->extra);
    } else {
      line["error"] = std::get<messages::ScoreFailed>(scores[i]).reason;
    }
    all.push_back(std::move(line));
  }
  return all;
}

// Prints the answer. Without any score there is no mean, and the command fails with the reason.
int report(const nlohmann::json& answer, cli::OutputForm form, const cli::Console& console) {
  if (form == cli::OutputForm::kJson)
    console.out << cli::shown_json(answer, 2) << "\n";
  else if (form == cli::OutputForm::kYaml)
    console.out << cli::to_yaml(answer);
  else if (form == cli::OutputForm::kJsonl)
    for (const nlohmann::json& completion : answer["completions"])
      console.out << cli::shown_json(completion) << "\n";
  else
    console.out << cli::render_evaluation(answer, console.columns());
  if (!answer["mean"].is_null()) return 0;
  return console.complain({ErrorCode::kFailed,
                           "all " + answer["prompts"].dump() + " prompts failed; the first: " +
                               answer["failure"].get<std::string>(),
                           "", "there is no mean reward"});
}

// Renders each prompt as the first message of a user, by the model's chat template.
Result<void> as_conversations(GenerateCommand& command) {
  const auto chat = model::ChatFormat::read(command.model, "auto");
  if (!chat) return chat.error();
  for (std::string& prompt : command.prompts) {
    auto text =
        chat->render({.messages = jinja::make_list({model::chat_message("user", prompt)})}, {});
    if (!text) return text.error();
    prompt = *std::move(text);
  }
  return {};
}

int generate(const GenerateCommand& given, const cli::Console& console) {
  const auto info = model::load_model_info(given.model);
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
  const bool greedy = command.temperature < rollout::kTemperatureMin;
  const rollout::EngineConfig config{
      // Greedy requests do not use it; an engine's own temperature is never 0.
      .sampling = {.temperature = greedy ? 1.0 : command.temperature},
      .args = {.async_scheduling = false},
      .max_prompt_length = longest,
      .max_response_length = static_cast<std::int32_t>(command.max_tokens)};
  auto engine = load_engine(command.model, config);
  if (!engine) return console.complain(engine.error());
  std::vector<std::string> texts(command.prompts.size());
  // An Evaluate without sampling settings is greedy; groups are always sampled.
  if (greedy) {
    messages::Evaluate work{.evaluation = {1}, .version = kOnlyVersion};
    for (std::size_t i = 0; i < command.prompts.size(); ++i)
      work.prompts.push_back({static_cast<std::int32_t>(i), command.prompts[i]});
    (*engine)->submit(std::move(work));
  } else {
    for (std::size_t i = 0; i < command.prompts.size(); ++i)
      (*engine)->submit(messages::GroupWork{.group = GroupId{i + 1},
                                            .seed = static_cast<std::uint64_t>(command.seed) + i,
                                            .n = 1,
                                            .prompt = command.prompts[i]});
  }
  auto events = run_dry(**engine);
  if (!events) return console.complain(events.error());
  for (rollout::EngineEvent& event : *events) {
    if (auto* done = std::get_if<rollout::EvaluationDone>(&event))
      for (messages::EvaluationText& text : done->completions)
        texts[static_cast<std::size_t>(text.index)] = std::move(text.text);
    if (auto* group = std::get_if<messages::GroupPayload>(&event))
      texts[group->group.value - 1] = std::move(group->trajectories.front().text);
  }
  if (command.output == cli::OutputForm::kJson) {
    nlohmann::json array = nlohmann::json::array();
    for (std::size_t i = 0; i < texts.size(); ++i)
      array.push_back({{"prompt", command.prompts[i]}, {"completion", texts[i]}});
    console.out << cli::shown_json(array, 2) << "\n";
    return 0;
  }
  for (std::size_t i = 0; i < texts.size(); ++i)
    console.out << (console.terminal ? visible(command.prompts[i] + texts[i], Lines::kMany)
                                     : command.prompts[i] + texts[i])
                << "\n";
  return 0;
}

int evaluate(const EvalCommand& command, const cli::Console& console) {
  init_logging("tandem", LogLevel::kWarnings);  // on stderr: stdout is the answer
  auto job = job::load_job(command.job, command.sets);
  if (!job) return console.complain(job.error());
  const job::JobSpec& spec = job->spec;
  if (spec.data.val_files.empty())
    return console.complain({ErrorCode::kInvalid, "the job has no data.val_files",
                             command.job.string(), "name a file of held-out prompts"});
  auto records = read_validation_prompts(spec);
  if (!records) return console.complain(records.error());
  link::IoThread io("reward");
  auto verifier = verifier_of(spec, io);
  if (!verifier) return console.complain(verifier.error());
  // The share of 8 GiB that the job gives its rollouts is for the pages, whatever the machine has.
  const rollout::EngineConfig config = engine_config(spec, std::uint64_t{8} << 30);
  const exchange::EvaluationPlan plan = evaluation_plan(spec, *records);
  const auto complete = [&]() -> Result<Said> {
    const std::string& answer_key = spec.data.answer_key;
    if (!command.server.url.empty()) {
      const auto info = model::load_model_info(command.model);
      if (!info) return info.error();
      return ask_all(command.server, info->tokenizer, config, plan, *records, answer_key);
    }
    auto engine = load_engine(command.model, config, dtype_of(spec.model));
    if (!engine) return engine.error();
    return say_all(**engine, plan, *records, answer_key);
  };
  auto said = complete();
  if (!said) return console.complain(said.error());
  const auto scores = judge_all(std::move(*verifier), said->items);
  if (!scores) return console.complain(scores.error());
  nlohmann::json answer = answer_of(plan, *said, *scores);
  if (command.output != cli::OutputForm::kTable)
    answer["completions"] = completions_of(plan, *said, *records, dataset_keys(spec), *scores);
  return report(answer, command.output, console);
}

}  // namespace

cli::VerbHelp GenerateCommand::help() {
  return {.name = "generate",
          .group = cli::VerbGroup::kModels,
          .description = "Let a model complete prompts",
          .examples = {
              "tandem generate ~/.tandem/runs/arithmetic-grpo-1/checkpoints/step-1500 '12+34='",
              "tandem generate MODEL_DIR --temperature 1 --max-tokens 128 'Once' 'Twice'"}};
}

void GenerateCommand::options(cli::Options& options) {
  add_model(options, model);
  options.add("PROMPT", prompts, "What to complete").required().value("...").as_written();
  options.flag("--chat", chat, "Each prompt is what a user says, in the model's chat template");
  options.add("--max-tokens", max_tokens, "At most so many tokens each; 64")
      .value("N")
      .between(1, 1 << 24);
  options.add("--temperature", temperature, "0, the default, is greedy")
      .value("T")
      .between(0.0, 100.0);
  options.add("--seed", seed, "Of the sampling; 0").value("N");
  using enum cli::OutputForm;
  add_output(options, output, {kTable, kJson, kYaml});
}

Result<int> GenerateCommand::run(const cli::VerbContext& context) {
  return generate(*this, context.console);
}

cli::VerbHelp EvalCommand::help() {
  return {.name = "eval",
          .group = cli::VerbGroup::kModels,
          .description = "Mean reward of a model over a job's validation files",
          .examples = {"tandem eval MODEL_DIR configs/arithmetic.yaml",
                       "tandem eval MODEL_DIR job.yaml --url http://127.0.0.1:8080"}};
}

void EvalCommand::options(cli::Options& options) {
  add_model(options, model);
  options.add("JOB.yaml", job, "Its data, sampling limits, reward and model.dtype are used")
      .required();
  add_sets(options, sets);
  options
      .add("--url", server.url,
           "The server that has the model and completes the prompts, by OpenAI's /v1/completions: "
           "vLLM, SGLang, llama.cpp; MODEL_DIR has its tokenizer")
      .value("URL");
  options.add("--served-model", server.model, "The server's name of the model").value("NAME");
  options.add("--concurrency", server.concurrency, "Requests to the server at once; 8")
      .value("N")
      .between(1, 1024);
  using enum cli::OutputForm;
  add_output(options, output, {kTable, kJson, kJsonl, kYaml});
}

Result<int> EvalCommand::run(const cli::VerbContext& context) {
  return evaluate(*this, context.console);
}

}  // namespace tandem::app
