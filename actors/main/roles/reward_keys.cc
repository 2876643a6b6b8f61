// The rows of the job table for the sections `reward` and `pools.reward`, and the rules over
// several of these keys; job_keys.cc explains how rows work. A row with `of_part` is that of a part
// of the reward as well.
#include <algorithm>
#include <array>

#include "actors/job/key_fields.h"
#include "actors/reward/judge_form.h"
#include "actors/reward/make_verifier.h"

namespace tandem::job {
namespace {

using J = JobSpec;

const Key kRewardKeys[] = {
    {.path = "reward.replicas",
     .field = [](J& j) { return slot(j.reward.replicas); },
     .description = "Reward actors at the start.",
     .range = between(1, kActorsMax),
     .unit = "actors"},
    {.path = "reward.type",
     .field = [](J& j) { return slot(j.reward.type); },
     .description =
         "`exact`: the completion, stripped, equals the answer. `math`: its final answer has the "
         "same exact value. `regex`: `pattern` matches. `command`: a program of yours "
         "decides, `python`: a Python function of yours, `http`: a server, `judge`: a language "
         "model behind a server. `code`: the completion's program passes the record's tests.",
     .of_part = true},
    {.path = "reward.pattern",
     .field = [](J& j) { return slot(j.reward.pattern); },
     .description = "The expression of type `regex`; its first group, where it has one, must equal "
                    "the answer.",
     .of_part = true},
    {.path = "reward.percent",
     .field = [](J& j) { return slot(j.reward.percent); },
     .description = "What a percentage of type `math` equals where the other answer is none: 50% "
                    "is 0.5 (`value`), 50 (`number`), or each (`both`). `whole`: 0.5, and 50 too "
                    "since 50 is whole, as for math-verify; 0.5% is not 0.5.",
     .of_part = true},
    {.path = "reward.command",
     .field = [](J& j) { return slot(j.reward.command); },
     .description = "The argv of type `command`, which reads and writes one JSON object per line. "
                    "A program with a `/`, and an argument that names a file, are relative paths.",
     .of_part = true,
     .argv = true},
    {.path = "reward.function",
     .field = [](J& j) { return slot(j.reward.function); },
     .description = "The function of type `python`: `path/to/file.py:name`, or `module:name` of a "
                    "module beside the job file or of the interpreter's. It returns a number, or "
                    "a dict with `score`, for each completion.",
     .of_part = true},
    {.path = "reward.signature",
     .field = [](J& j) { return slot(j.reward.signature); },
     .description = "The arguments that `function` takes: those of verl's compute_score or its "
                    "batch form, of TRL's reward_funcs, of OpenRLHF's reward_func, or `tandem`: "
                    "completion, prompt, answer, data. `auto`: known by the names.",
     .of_part = true},
    {.path = "reward.python",
     .field = [](J& j) { return slot(j.reward.python); },
     .description = "The interpreter of `function`, or of programs of type `code`, such as "
                    "`.venv/bin/python` of a virtual "
                    "environment; one with a `/` is a relative path.",
     .of_part = true},
    {.path = "reward.start_timeout_s",
     .field = [](J& j) { return slot(j.reward.start_timeout_s); },
     .description = "The time that `python` has to import the module of `function`.",
     .range = above_to(0, kDayInSeconds),
     .unit = "seconds",
     .of_part = true},
    {.path = "reward.url",
     .field = [](J& j) { return slot(j.reward.url); },
     .description = "The server. Of type `http`, http://HOST:PORT/PATH, in the shape of OpenRLHF's "
                    "remote_rm_url: it gets `query`, `prompts` and `labels`, and answers "
                    "`rewards`, each a list. Of type `judge`, http://HOST:PORT/v1 of one that has "
                    "OpenAI's chat completions: vLLM, SGLang, llama.cpp and others.",
     .of_part = true},
    {.path = "reward.header_env",
     .field = [](J& j) { return slot(j.reward.header_env); },
     .description = "Headers for `url`, each with the name of the environment variable of the "
                    "reward actor's node that has its value, as in `{ Authorization: "
                    "REWARD_KEY }`. Values are kept nowhere.",
     .of_part = true},
    {.path = "reward.batch_size",
     .field = [](J& j) { return slot(j.reward.batch_size); },
     .description = "Completions in one call of `url`, or of a `function` that takes lists; at "
                    "most. The call has `timeout_s`.",
     .range = between(1, 64),
     .unit = "completions",
     .of_part = true},
    {.path = "reward.concurrency",
     .field = [](J& j) { return slot(j.reward.concurrency); },
     .description = "Calls of `url` that are under way at once, of each reward actor; at most.",
     .range = between(1, 256),
     .unit = "calls",
     .of_part = true},
    {.path = "reward.weight",
     .field = [](J& j) { return slot(j.reward.weight); },
     .description = "A score is paid as weight * clip(scale * score + bias).",
     .range = between(-1e6, 1e6),
     .of_part = true},
    {.path = "reward.scale",
     .field = [](J& j) { return slot(j.reward.scale); },
     .description = "The factor of a score, before `bias` is added.",
     .range = between(-1e6, 1e6),
     .of_part = true},
    {.path = "reward.bias",
     .field = [](J& j) { return slot(j.reward.bias); },
     .description = "Added to the scaled score.",
     .range = between(-1e6, 1e6),
     .of_part = true},
    {.path = "reward.clip",
     .field = [](J& j) { return slot(j.reward.clip); },
     .description = "The least and the greatest value of scale * score + bias, as in [-5, 5]; "
                    "null: none.",
     .range = between(-1e9, 1e9),
     .of_part = true},
    {.path = "reward.sources",
     .field = [](J& j) { return slot(j.reward.sources); },
     .description = "The values of `data.data_source_key` that are scored; empty: all. A record "
                    "that no part of the reward is for is an error.",
     .of_part = true},
    {.path = "reward.timeout_s",
     .field = [](J& j) { return slot(j.reward.timeout_s); },
     .description =
         "Of types `command`, `python`, `http` and `judge`: a completion not scored by then "
         "is a failed attempt. Type `code` has `case_timeout_s`.",
     .range = above_to(0, kDayInSeconds),
     .unit = "seconds",
     .of_part = true},
    {.path = "reward.retries",
     .field = [](J& j) { return slot(j.reward.retries); },
     .description =
         "Attempts after a failed one; then `on_failure` says what becomes of the group.",
     .range = between(0, 100),
     .of_part = true},
    {.path = "reward.on_failure",
     .field =
         [](J& j) {
           return FieldRef(WordOrNumber{"discard", &j.reward.on_failure});
         },
     .description =
         "`discard`: a group of which a completion could not be scored is discarded with "
         "the reason `reward_failed`, never scored 0. A number: the reward of such a "
         "completion, which is trained, counted (`tandem/rewards_failed`) and kept in "
         "samples.jsonl with its error.",
     .range = between(-1e6, 1e6)},
    {.path = "reward.env",
     .field = [](J& j) { return slot(j.reward.env); },
     .description = "Variables of the program's environment, as in `{ OMP_NUM_THREADS: \"1\" }`. "
                    "Beside them it sees PATH, HOME, LANG, LC_*, TZ and TMPDIR alone.",
     .of_part = true},
    {.path = "reward.language",
     .field = [](J& j) { return slot(j.reward.language); },
     .description =
         "The language of programs of type `code`: `python`, `cpp`, or `auto`: that of the "
         "record's asserts, else as the completion's fenced block is marked.",
     .of_part = true},
    {.path = "reward.score",
     .field = [](J& j) { return slot(j.reward.score); },
     .description = "The score of type `code`. `all`: 1 where every case passes, else 0. "
                    "`fraction`: the share of cases that pass.",
     .of_part = true},
    {.path = "reward.case_timeout_s",
     .field = [](J& j) { return slot(j.reward.case_timeout_s); },
     .description = "CPU time of one case of type `code`, in whole seconds, rounded up; it may "
                    "take three times as long by the clock.",
     .range = above_to(0, kDayInSeconds),
     .unit = "seconds",
     .of_part = true},
    {.path = "reward.cases_max",
     .field = [](J& j) { return slot(j.reward.cases_max); },
     .description = "Cases of a record that type `code` runs, the first ones; null: all.",
     .range = between(1, 1e6),
     .unit = "cases",
     .of_part = true},
    {.path = "reward.compile_timeout_s",
     .field = [](J& j) { return slot(j.reward.compile_timeout_s); },
     .description = "CPU time for compiling a C++ program of type `code`.",
     .range = above_to(0, kDayInSeconds),
     .unit = "seconds",
     .of_part = true},
    {.path = "reward.code_memory_megabytes",
     .field = [](J& j) { return slot(j.reward.code_memory_megabytes); },
     .description = "Memory of a program of type `code`; compilers have 2048 MiB at least.",
     .range = between(16, kMegabytesMax),
     .unit = "MiB",
     .of_part = true},
    {.path = "reward.sandbox",
     .field = [](J& j) { return slot(j.reward.sandbox); },
     .description = "Whether programs of type `command`, `python` and `code` run in a sandbox: "
                    "without a network, with a scratch folder alone to write to, and with nothing "
                    "to read but the system's programs, their own folder and `readable`. `auto` "
                    "takes what the node allows, `strict` refuses to start with less than all, "
                    "`off`: programs have your rights. null: `auto` for `code`, else `off`.",
     .of_part = true},
    {.path = "reward.readable",
     .field = [](J& j) { return slot(j.reward.readable); },
     .description = "Files and folders that a sandboxed program may read, beside its interpreter "
                    "and the folders of the files that its command line names.",
     .of_part = true},
    {.path = "reward.judge.model",
     .field = [](J& j) { return slot(j.reward.judge.model); },
     .description = "The model of type `judge`, by the name that the server has for it; null: is "
                    "not said.",
     .of_part = true},
    {.path = "reward.judge.system",
     .field = [](J& j) { return slot(j.reward.judge.system); },
     .description = "The judge's system message; null: none.",
     .of_part = true},
    {.path = "reward.judge.prompt",
     .field = [](J& j) { return slot(j.reward.judge.prompt); },
     .description = "What the judge is asked about a completion, a Jinja template over `prompt`, "
                    "`completion`, `answer`, `data`, `data_source`, `truncated`, `lowest` and "
                    "`highest`; null: one of ours, which ends with `Score: N`.",
     .of_part = true},
    {.path = "reward.judge.pattern",
     .field = [](J& j) { return slot(j.reward.judge.pattern); },
     .description = "Where the score is in the judge's words: the first group of the last match. "
                    "Words that are a JSON object with a number `score` need none. null: as in "
                    "`Score: 7` or `**Score (0-10):** 7.5/10`.",
     .of_part = true},
    {.path = "reward.judge.range",
     .field = [](J& j) { return slot(j.reward.judge.range); },
     .description = "The judge's least and greatest score, which are paid as 0 and 1. Another one "
                    "is a failed attempt.",
     .range = between(-1e6, 1e6),
     .of_part = true},
    {.path = "reward.judge.max_tokens",
     .field = [](J& j) { return slot(j.reward.judge.max_tokens); },
     .description = "Tokens that the judge may say.",
     .range = between(1, kTokensMax),
     .unit = "tokens",
     .of_part = true},
    {.path = "reward.judge.temperature",
     .field = [](J& j) { return slot(j.reward.judge.temperature); },
     .description = "The judge's temperature; 0: greedy.",
     .range = between(0, 100),
     .of_part = true},
    {.path = "reward.judge.extra_body",
     .field = [](J& j) { return slot(j.reward.judge.extra_body); },
     .description =
         "Further members of each request to the judge, as in `{ chat_template_kwargs: { "
         "enable_thinking: false } }`, or a `response_format` that makes it answer "
         "with JSON.",
     .of_part = true},
    {.path = "reward.limits.open_files",
     .field = [](J& j) { return slot(j.reward.limits.open_files); },
     .description = "Files that the program may have open (RLIMIT_NOFILE).",
     .range = between(16, 1 << 20),
     .unit = "files",
     .of_part = true},
    {.path = "reward.limits.file_size_megabytes",
     .field = [](J& j) { return slot(j.reward.limits.file_size_megabytes); },
     .description = "The size of each file that it writes (RLIMIT_FSIZE).",
     .range = between(0, kMegabytesMax),
     .unit = "MiB",
     .of_part = true},
    {.path = "reward.limits.cpu_seconds_per_line",
     .field = [](J& j) { return slot(j.reward.limits.cpu_seconds_per_line); },
     .description = "CPU time of all its threads without a line in or out; past it the program is "
                    "ended and started again, a failed attempt.",
     .range = above_to(0, 1e9),
     .unit = "seconds",
     .of_part = true},
    {.path = "reward.limits.memory_megabytes",
     .field = [](J& j) { return slot(j.reward.limits.memory_megabytes); },
     .description = "Resident memory of the program, without processes that it starts; looked at "
                    "four times a second. Past it the program is ended and started again.",
     .range = between(1, kMegabytesMax),
     .unit = "MiB",
     .of_part = true},
};

const Key kRewardPoolKeys[] = {
    {.path = "pools.reward.cpus_per_actor",
     .field = [](J& j) { return slot(j.pools.reward.cpus_per_actor); },
     .description = "CPUs reserved for a reward actor.",
     .range = between(0, kThreadsMax),
     .unit = "CPUs"},
};

// A key that belongs to some types alone.
struct KeyOfType {
  std::string_view name;  // behind the path of its reward
  std::vector<RewardType> types;
  bool given = false;  // it has another value than the default
  std::string help;    // how to give it where the type needs it; empty: it may be left out
};

std::vector<KeyOfType> keys_of_types(const RewardPartSpec& r) {
  using enum RewardType;
  const RewardPartSpec none;
  const RewardLimitsSpec& limits = none.limits;
  const bool argv = r.command && !r.command->empty() && !r.command->front().empty();
  return {
      {"pattern", {kRegex}, r.pattern.has_value(), "add the expression"},
      {"percent", {kMath}, r.percent != none.percent, ""},
      {"command", {kCommand}, argv, "add the argv, as in [python3, rewards/example.py]"},
      {"function", {kPython}, r.function.has_value(), "add it, as in rewards.py:compute_score"},
      {"signature", {kPython}, r.signature != none.signature, ""},
      {"python", {kPython, kCode}, r.python != none.python, ""},
      {"start_timeout_s", {kPython}, r.start_timeout_s != none.start_timeout_s, ""},
      {"url",
       {kHttp, kJudge},
       r.url.has_value(),
       r.type == kJudge ? "add it, as in http://127.0.0.1:8000/v1"
                        : "add it, as in http://127.0.0.1:8000/score"},
      {"header_env", {kHttp, kJudge}, !r.header_env.empty(), ""},
      {"concurrency", {kHttp, kJudge}, r.concurrency != none.concurrency, ""},
      {"judge.model", {kJudge}, r.judge.model.has_value(), ""},
      {"judge.system", {kJudge}, r.judge.system.has_value(), ""},
      {"judge.prompt", {kJudge}, r.judge.prompt.has_value(), ""},
      {"judge.pattern", {kJudge}, r.judge.pattern.has_value(), ""},
      {"judge.range", {kJudge}, r.judge.range != none.judge.range, ""},
      {"judge.max_tokens", {kJudge}, r.judge.max_tokens != none.judge.max_tokens, ""},
      {"judge.temperature", {kJudge}, r.judge.temperature != none.judge.temperature, ""},
      {"judge.extra_body", {kJudge}, r.judge.extra_body != none.judge.extra_body, ""},
      {"batch_size", {kPython, kHttp}, r.batch_size != none.batch_size, ""},
      {"timeout_s", {kCommand, kPython, kHttp, kJudge}, r.timeout_s != none.timeout_s, ""},
      {"limits.open_files", {kCommand, kPython}, r.limits.open_files != limits.open_files, ""},
      {"limits.file_size_megabytes",
       {kCommand, kPython},
       r.limits.file_size_megabytes != limits.file_size_megabytes,
       ""},
      {"limits.cpu_seconds_per_line",
       {kCommand, kPython},
       r.limits.cpu_seconds_per_line != limits.cpu_seconds_per_line,
       ""},
      {"limits.memory_megabytes",
       {kCommand, kPython},
       r.limits.memory_megabytes != limits.memory_megabytes,
       ""},
      {"env", {kCommand, kPython, kCode}, !r.env.empty(), ""},
      {"sandbox", {kCommand, kPython, kCode}, r.sandbox != none.sandbox, ""},
      {"readable", {kCommand, kPython, kCode}, !r.readable.empty(), ""},
      {"language", {kCode}, r.language != none.language, ""},
      {"score", {kCode}, r.score != none.score, ""},
      {"case_timeout_s", {kCode}, r.case_timeout_s != none.case_timeout_s, ""},
      {"cases_max", {kCode}, r.cases_max != none.cases_max, ""},
      {"compile_timeout_s", {kCode}, r.compile_timeout_s != none.compile_timeout_s, ""},
      {"code_memory_megabytes", {kCode}, r.code_memory_megabytes != none.code_memory_megabytes, ""},
  };
}

// A key of another reward type is an error, not ignored: the user meant a type that was not set.
void rules_of_types(const NamedReward& reward, std::vector<Violation>& broken) {
  const RewardPartSpec& r = *reward.spec;
  const auto path = [&](std::string_view key) { return reward.path + "." + std::string(key); };
  const std::string type = "`" + path("type") + ": " + std::string(spelling(r.type)) + "`";
  for (const KeyOfType& key : keys_of_types(r)) {
    const bool fits = std::ranges::count(key.types, r.type) > 0;
    const std::string ticked = "`" + path(key.name) + "`";
    if (fits && !key.given && !key.help.empty())
      broken.push_back({path("type"), type + " needs " + ticked, key.help});
    if (fits || !key.given) continue;
    std::string types;
    for (const RewardType one : key.types)
      types +=
          (types.empty() ? "`" : " or `") + path("type") + ": " + std::string(spelling(one)) + "`";
    broken.push_back(
        {path(key.name), type + " does not use " + ticked, "set " + types + ", or leave it out"});
    return;  // to set the type may mend the others
  }
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

// The rules of one verifier.
void rules_of_one(const NamedReward& reward, std::vector<Violation>& broken) {
  const RewardPartSpec& r = *reward.spec;
  rules_of_types(reward, broken);
  if (r.type == RewardType::kRegex && r.pattern)
    if (const auto compiled = reward::check_pattern(*r.pattern); !compiled)
      broken.push_back({reward.path + ".pattern", compiled.error().message,
                        "write it as a Perl-compatible regular expression (PCRE2)"});
  if (r.type == RewardType::kPython && r.function) {
    const std::size_t colon = r.function->text.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == r.function->text.size())
      broken.push_back({reward.path + ".function",
                        "`" + r.function->text + "` is not FILE.py:FUNCTION or MODULE:FUNCTION",
                        "as in rewards.py:compute_score"});
  }
  if (r.type == RewardType::kJudge)
    if (const auto form = reward::judge_form(judge_of(r)); !form)
      broken.push_back(
          {reward.path + ".judge." + form.error().where, form.error().message, form.error().help});
  if ((r.type == RewardType::kHttp || r.type == RewardType::kJudge) && r.url)
    if (const auto fault = reward::url_fault(*r.url))
      broken.push_back({reward.path + ".url", fault->message + ": " + *r.url, fault->help});
  for (const auto& [header, variable] : r.header_env)
    if (!is_token(header) || !is_token(variable))
      broken.push_back({reward.path + ".header_env",
                        "`" + header + ": " + variable + "` is no header and variable",
                        "as in { Authorization: REWARD_KEY }"});
  if (r.clip && (*r.clip)[0] >= (*r.clip)[1])
    broken.push_back({reward.path + ".clip",
                      "`" + reward.path + ".clip` has no room between its ends",
                      "the least value comes first, as in [-5, 5]"});
  if (!r.readable.empty() && sandbox_of(r) == SandboxMode::kOff)
    broken.push_back({reward.path + ".readable",
                      "`" + reward.path + ".readable` means nothing without a sandbox",
                      "set `" + reward.path + ".sandbox: auto`, or leave it out"});
  if (r.type == RewardType::kCommand || r.type == RewardType::kPython ||
      r.type == RewardType::kCode)
    check_variables(r.env, reward.path + ".env", broken);
}

// Whether the reward may send the number `name` in `extra`. Those of a program, a function or a
// server are known once it has scored.
bool may_have_extra(const RewardSpec& reward, std::string_view name) {
  if (reward.parts.empty() && name == "raw") return true;
  return std::ranges::any_of(rewards_of(reward), [&](const NamedReward& one) {
    if (!one.name.empty() && name == one.name) return true;
    using enum RewardType;
    const RewardType type = one.spec->type;
    return type != kExact && type != kMath && type != kRegex;
  });
}

// The name of `extra` of which the key of an evaluation is the mean; empty for any other key.
std::string_view extra_of(std::string_view key) {
  constexpr std::string_view kExtra = "/reward/extra/", kMean = "/mean";
  const auto at = key.find(kExtra);
  if (at == key.npos || !key.ends_with(kMean)) return {};
  key.remove_prefix(at + kExtra.size());
  return key.substr(0, key.size() - std::min(key.size(), kMean.size()));
}

// Refuses a key of a number that the reward never sends: no checkpoint would be the best one.
void keep_best_extra_rule(const JobSpec& job, std::vector<Violation>& broken) {
  const std::string key = job.learner.keep_best.value_or("");
  const std::string_view extra = extra_of(key);
  if (extra.empty() || may_have_extra(job.reward, extra)) return;
  broken.push_back({"learner.keep_best",
                    "the reward of the job sends no number `" + std::string(extra) +
                        "` in `extra`, of which `" + key + "` is the mean",
                    "name a key as `val/reward/mean`; numbers in `extra` come from rewards of type "
                    "command, python, http, judge and code, and from the parts of a reward by "
                    "their names"});
}

void reward_rules(const JobSpec& job, std::vector<Violation>& broken) {
  const RewardSpec& r = job.reward;
  keep_best_extra_rule(job, broken);
  for (const NamedReward& reward : rewards_of(r)) rules_of_one(reward, broken);
  if (r.parts.size() > kRewardPartsMax)
    broken.push_back({"reward.parts",
                      "`reward` has more than " + std::to_string(kRewardPartsMax) + " parts",
                      "let a program add some of them up"});
  if (r.parts.empty()) return;
  // With parts, only the payment of the whole is asked for; a verifier beside them was meant as one
  // of them.
  const RewardPartSpec none;
  std::vector<std::string> odd;
  for (const KeyOfType& key : keys_of_types(r))
    if (key.given) odd.emplace_back(key.name);
  if (r.type != none.type) odd.emplace_back("type");
  if (!r.sources.empty()) odd.emplace_back("sources");
  if (r.timeout_s != none.timeout_s) odd.emplace_back("timeout_s");
  if (r.retries != none.retries) odd.emplace_back("retries");
  for (const std::string& key : odd)
    broken.push_back({"reward." + key, "`reward." + key + "` means nothing beside `reward.parts`",
                      "give it to the parts that it is for"});
  if (r.clip && (*r.clip)[0] >= (*r.clip)[1])
    broken.push_back({"reward.clip", "`reward.clip` has no room between its ends",
                      "the least value comes first, as in [-5, 5]"});
}

}  // namespace

std::vector<NamedReward> rewards_of(const RewardSpec& reward) {
  if (reward.parts.empty()) return {{"", "reward", &reward}};
  std::vector<NamedReward> rewards;
  for (const auto& [name, part] : reward.parts)
    rewards.push_back({name, "reward.parts." + name, &part});
  return rewards;
}

reward::JudgeReward judge_of(const RewardPartSpec& reward) {
  const JudgeSpec& judge = reward.judge;
  return {.model = judge.model,
          .system = judge.system,
          .prompt = judge.prompt,
          .pattern = judge.pattern,
          .range = judge.range,
          .max_tokens = static_cast<int>(judge.max_tokens),
          .temperature = judge.temperature,
          .extra_body = judge.extra_body.text};
}

SandboxMode sandbox_of(const RewardPartSpec& reward) {
  const bool by_model = reward.type == RewardType::kCode;
  return reward.sandbox.value_or(by_model ? SandboxMode::kAuto : SandboxMode::kOff);
}

RoleKeys reward_keys() {
  return {.own = kRewardKeys, .pool = kRewardPoolKeys, .rules = reward_rules};
}

}  // namespace tandem::job
