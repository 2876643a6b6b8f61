// Tables and views: pure functions of JSON and a width.
//
// Tests actors/cli/table.h, actors/cli/views.h, actors/cli/metrics_table.h,
// actors/cli/trouble_view.h.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <ctime>
#include <sstream>

#include "actors/cli/job_progress.h"
#include "actors/cli/metrics_table.h"
#include "actors/cli/table.h"
#include "actors/cli/trouble_view.h"
#include "actors/cli/views.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/base/rng.h"
#include "runtime/base/text.h"
#include "tests/actors/cli/api_objects.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr Screen kUnlimited{kUnlimitedWidth, kNow};

json an_actor() {
  return {{"name", "arith-1/rollout/0"},
          {"job", "arith-1"},
          {"role", "rollout"},
          {"state", "Backoff"},
          {"reason", "Backoff"},
          {"message", "killed by signal 9"},
          {"since", "2023-11-14T22:13:15Z"},
          {"node", "vm"},
          {"pid", 4711},
          {"gpus", json::array()},
          {"incarnation", 3},
          {"restarts", 2},
          {"policy_version", 419},
          {"load", "256/256"},
          {"ranks", json::array({{{"rank", 0}, {"node", "vm"}, {"pid", 4711}}})}};
}

TEST(Table, ShortFormsOfNumbersAndTimes) {
  EXPECT_EQ(age(5.9), "5s");
  EXPECT_EQ(age(192), "3m12s");
  EXPECT_EQ(age(2 * 3600 + 300), "2h05m");
  EXPECT_EQ(age(4 * 86400 + 3 * 3600), "4d03h");
  EXPECT_EQ(age(-1), "0s");
  EXPECT_EQ(short_age(5.9), "5s");
  EXPECT_EQ(short_age(200), "3m20s");
  EXPECT_EQ(short_age(180), "3m");
  EXPECT_EQ(short_age(45 * 60 + 59), "45m");
  EXPECT_EQ(short_age(2 * 3600), "2h");
  EXPECT_EQ(short_age(2 * 3600 + 300), "2h5m");
  EXPECT_EQ(short_age(47 * 3600), "47h");
  EXPECT_EQ(short_age(4 * 86400), "4d");
  EXPECT_EQ(short_age(4 * 86400 + 3 * 3600), "4d3h");
  EXPECT_EQ(short_age(30 * 86400.0 + 3600), "30d");
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(short_count(950), "950");
  EXPECT_EQ(short_count(999.9), "1.0k");
  EXPECT_EQ(short_count(12345), "12.3k");
  EXPECT_EQ(short_count(4.6e6), "4.6M");
  EXPECT_EQ(short_bytes(1.5 * (1 << 30)), "1.5 GiB");
  EXPECT_EQ(short_bytes(12), "12 B");
}

TEST(Views, JsonIsAlwaysValidAndEmptyListsAreLists) {
  const json jobs = json::array({a_job()});
  EXPECT_EQ(parse_json(render_items(Kind::kJobs, jobs, OutputForm::kJson, kUnlimited)), jobs);
  EXPECT_EQ(render_items(Kind::kJobs, json::array(), OutputForm::kJson, kUnlimited), "[]\n");
  EXPECT_EQ(render_items(Kind::kJobs, json::array(), OutputForm::kYaml, kUnlimited), "[]\n");
  EXPECT_EQ(render_items(Kind::kJobs, json::array(), OutputForm::kTable, kUnlimited), "no jobs\n");
  EXPECT_EQ(render_items(Kind::kJobs, json::array(), OutputForm::kName, kUnlimited), "");
  EXPECT_EQ(parse_json(render_item(Kind::kJobs, a_job(), OutputForm::kJson, kUnlimited)), a_job());
  EXPECT_TRUE(json::accept(
      render_items(Kind::kJobs, json::array({{{"id", "\xff"}}}), OutputForm::kJson, kUnlimited)));
}

TEST(Views, TablesShowStateReasonAndAge) {
  const std::string jobs =
      render_items(Kind::kJobs, json::array({a_job()}), OutputForm::kTable, kUnlimited);
  EXPECT_EQ(jobs,
            "JOB      STATE        STEP  REWARD  STALE  GEN/S  TRAIN/S    AGE  REASON\n"
            "arith-1  Running  420/1500   0.812    2/2   120k    60.1k  3m12s  -\n")
      << jobs;
}

TEST(Views, TheWideFormOfJobsHasTheRewardsThatFailed) {
  json job = a_job();
  job["rewards_failed"] = 37;
  const json jobs = json::array({job});
  const std::string wide = render_items(Kind::kJobs, jobs, OutputForm::kWide, kUnlimited);
  EXPECT_NE(wide.find("REWARDS FAILED"), std::string::npos) << wide;
  EXPECT_NE(wide.find(" 37 "), std::string::npos) << wide;
  EXPECT_EQ(render_items(Kind::kJobs, jobs, OutputForm::kTable, kUnlimited).find("FAILED"),
            std::string::npos);
}

// A state may be young and its job old.
// A row of 80 columns: the rates go first, then other figures; the reason is cut.
TEST(Views, NamesStatesAndStepsAreWholeAt80Columns) {
  json job = a_job();
  job["id"] = "arithmetic-grpo-12";
  job["state"] = "Succeeded";
  job["step"] = 12'345;
  job["total_steps"] = 60'000;
  job["reason"] = "Completed";
  job["message"] = "all steps are trained, and this sentence goes on";
  const std::string jobs =
      render_items(Kind::kJobs, json::array({job}), OutputForm::kTable, {80, kNow});
  for (const char* const kept : {"arithmetic-grpo-12 ", " Succeeded ", " 12345/60000 ", "REASON"})
    EXPECT_NE(jobs.find(kept), std::string::npos) << kept << "\n" << jobs;
  EXPECT_EQ(jobs.find("TRAIN/S"), std::string::npos) << jobs;
  expect_fits(jobs, 80);
  json run = job;
  run["state"] = "Interrupted";
  const std::string runs =
      render_items(Kind::kRuns, json::array({run}), OutputForm::kTable, {80, kNow});
  for (const char* const kept : {"arithmetic-grpo-12 ", " Interrupted ", " 12345/60000 "})
    EXPECT_NE(runs.find(kept), std::string::npos) << kept << "\n" << runs;
  json actor = an_actor();
  actor["name"] = "arithmetic-grpo-12/rollout/0";
  actor["state"] = "Initializing";
  const std::string actors =
      render_items(Kind::kActors, json::array({actor}), OutputForm::kTable, {80, kNow});
  for (const char* const kept : {"arithmetic-grpo-12/rollout/0 ", " Initializing ", "RESTARTS"})
    EXPECT_NE(actors.find(kept), std::string::npos) << kept << "\n" << actors;
}

TEST(Views, DescriptionsShowTimesAsPeopleReadThem) {
  json job = a_job();
  job["created"] = kNow - 65'000;
  const std::string text = render_description(Kind::kJobs, job, json::array(), kUnlimited);
  EXPECT_NE(text.find("(1m5s ago)"), std::string::npos) << text;
  EXPECT_EQ(text.find(std::to_string(kNow - 65'000)), std::string::npos) << text;
}

TEST(Views, TheWideFormOfNodesHasTheirNccl) {
  const json nodes{{{"name", "a"}, {"nccl", {{"version", "2.28.9"}}}},
                   {{"name", "b"}, {"nccl", nullptr}, {"nccl_absent", "no NCCL library: none"}},
                   {{"name", "c"}, {"nccl", nullptr}, {"nccl_absent", nullptr}}};
  const std::string wide = render_items(Kind::kNodes, nodes, OutputForm::kWide, kUnlimited);
  for (const char* shown : {"NCCL", "2.28.9", "no NCCL library: none"})
    EXPECT_NE(wide.find(shown), std::string::npos) << wide;
  EXPECT_EQ(render_items(Kind::kNodes, nodes, OutputForm::kTable, kUnlimited).find("NCCL"),
            std::string::npos);
}

TEST(Views, GpusThatAreGoneAreCountedApart) {
  const auto gpu = [](double leased, bool gone) {
    return json{{"name", "NVIDIA H200"}, {"leased", leased}, {"gone", gone}};
  };
  const auto shown = [](const json& node) {
    return render_items(Kind::kNodes, json::array({node}), OutputForm::kTable, kUnlimited);
  };
  json node{{"name", "a"},
            {"state", "Ready"},
            {"leased", {{"gpus", 3.0}}},
            {"gpus", {gpu(1, false), gpu(1, true), gpu(1, false)}}};
  EXPECT_NE(shown(node).find(" 2/2 (1 gone) "), std::string::npos) << shown(node);
  node["leased"]["gpus"] = 1.0;
  node["gpus"] = json::array({gpu(1, true)});
  EXPECT_NE(shown(node).find(" 0/0 (1 gone) "), std::string::npos) << shown(node);
  node["gpus"] = {gpu(0.5, false), gpu(0.5, false), gpu(0, true)};
  EXPECT_NE(shown(node).find(" 1/2 "), std::string::npos) << shown(node);
}

TEST(Views, ANodeShowsWhatIsReservedOfItsMemoryAndByWhom) {
  json node{
      {"name", "a"}, {"memory_bytes", 12ll << 30}, {"leased", {{"memory_bytes", 1536ll << 20}}}};
  EXPECT_NE(render_items(Kind::kNodes, json::array({node}), OutputForm::kWide, kUnlimited)
                .find("1.5 GiB/12.0 GiB"),
            std::string::npos);
  node["reserved"] = json::array({{{"actor", "arith-1/learner/0"},
                                   {"rank", 0},
                                   {"cpus", 0.5},
                                   {"gpus", 0},
                                   {"memory_bytes", 1536ll << 20}}});
  const std::string text = render_description(Kind::kNodes, node, json::array(), kUnlimited);
  const std::string table =
      "Reserved:\n"
      "ACTOR              RANK  CPUS  GPUS   MEMORY\n"
      "arith-1/learner/0     0   0.5     0  1.5 GiB\n";
  EXPECT_NE(text.find(table), std::string::npos) << text;
  EXPECT_EQ(text.find("reserved:"), std::string::npos) << text;
}

TEST(Views, AJobShowsTheMemoryOfEachRank) {
  json job = a_job();
  job["memory"] = {{"learner",
                    {{"ranks", 2},
                     {"reserved_bytes", 3072ll << 20},
                     {"rows",
                      {{{"name", "weights"}, {"bytes", 2048ll << 20}, {"peak", false}},
                       {{"name", "restore"}, {"bytes", 1024ll << 20}, {"peak", true}}}}}}};
  const std::string text = render_description(Kind::kJobs, job, json::array(), kUnlimited);
  const std::string table =
      "Memory:\n"
      "ROLE     OF EACH RANK           MEMORY  RANKS\n"
      "learner  weights               2.0 GiB\n"
      "learner  restore, at its peak  1.0 GiB\n"
      "learner  reserved              3.0 GiB      2\n";
  EXPECT_NE(text.find(table), std::string::npos) << text;
  EXPECT_EQ(text.find("memory:"), std::string::npos) << text;
}

TEST(Views, AgesAreSinceCreationAndTimesAreClockTimes) {
  ASSERT_EQ(::setenv("TZ", "UTC-1", 1), 0);  // an hour east of Greenwich
  ::tzset();
  json job = a_job();
  job["created"] = kNow - 2 * 3600 * 1000;
  const std::string table =
      render_items(Kind::kJobs, json::array({job}), OutputForm::kTable, kUnlimited);
  EXPECT_NE(table.find("  2h  -\n"), std::string::npos) << table;
  EXPECT_NE(render_items(Kind::kJobs, json::array({job}), OutputForm::kWide, kUnlimited)
                .find("2023-11-14T21:13:20.000+01:00"),
            std::string::npos);
  const json events = json::array({{{"seq", 1}, {"time", kNow - 5500}, {"kind", "job"}},
                                   {{"seq", 2}, {"time", kNow - 86'400'000}, {"kind", "job"}}});
  const std::string short_times =
      render_items(Kind::kEvents, events, OutputForm::kTable, kUnlimited);
  EXPECT_NE(short_times.find("\n2023-11-14 23:13:14 "), std::string::npos) << short_times;
  EXPECT_NE(short_times.find("\n2023-11-13 23:13:20 "), std::string::npos) << short_times;
  EXPECT_NE(render_items(Kind::kEvents, events, OutputForm::kWide, kUnlimited)
                .find("2023-11-14T23:13:14.500+01:00"),
            std::string::npos);
  ASSERT_EQ(::setenv("TZ", "UTC", 1), 0);
  ::tzset();
}

TEST(Views, ActorsShowWhyTheyAreNotReady) {
  const json actors = json::array({an_actor()});
  const std::string table = render_items(Kind::kActors, actors, OutputForm::kTable, kUnlimited);
  EXPECT_NE(table.find("Backoff: killed by signal 9"), std::string::npos) << table;
  EXPECT_NE(table.find("5s"), std::string::npos) << table;
  EXPECT_EQ(table.find("4711"), std::string::npos);
  EXPECT_NE(render_items(Kind::kActors, actors, OutputForm::kWide, kUnlimited).find("4711"),
            std::string::npos);
  EXPECT_EQ(render_items(Kind::kActors, actors, OutputForm::kName, kUnlimited),
            "actors/arith-1/rollout/0\n");
}

TEST(Views, EveryKindStandsAnythingAndFits) {
  const json odd = json::array({json::object(),
                                {{"id", nullptr}, {"name", 5}, {"state", {1, 2}}},
                                a_job(),
                                an_actor(),
                                a_wait(),
                                7});
  for (const Kind kind :
       {Kind::kJobs, Kind::kRuns, Kind::kActors, Kind::kNodes, Kind::kGroups, Kind::kEvents})
    for (const int width : {1, 20, 40, 80, 132})
      for (const OutputForm form : {OutputForm::kTable, OutputForm::kWide})
        expect_fits(render_items(kind, odd, form, {width, kNow}), width);
}

TEST(Views, AlertsSayWhatIsWrongAndWhatToDo) {
  json job = a_job();
  job["alerts"] = json::array({{{"name", "TandemTrainerIdle"},
                                {"severity", "warning"},
                                {"job", "arith-1"},
                                {"actor", nullptr},
                                {"message", "It waited 31 % of the time.\x1b[2J"},
                                {"advice", "tandem size --from arith-1"},
                                {"value", 0.31},
                                {"since_s", 432}}});
  const std::string block =
      "warning TandemTrainerIdle for 7m12s: It waited 31 % of the time.\\u001b[2J\n"
      "  tandem size --from arith-1\n";
  EXPECT_NE(render_why(job, kUnlimited).find("\n" + block), std::string::npos)
      << render_why(job, kUnlimited);
  const std::string text = render_description(Kind::kJobs, job, json::array(), kUnlimited);
  EXPECT_NE(text.find("\nAlerts:\n" + block), std::string::npos) << text;
  EXPECT_EQ(text.find("alerts:"), std::string::npos) << "once";
  EXPECT_EQ(alert_lines(a_job()), "");
}

TEST(Views, WhyNamesWhoWaitsForWhat) {
  json job = a_job();
  EXPECT_NE(render_why(job, kUnlimited).find("it waits for nothing"), std::string::npos);
  job["why"] = json::array({a_wait()});
  const std::string why = render_why(job, kUnlimited);
  EXPECT_TRUE(why.starts_with("arith-1 is Running\n")) << why;
  EXPECT_NE(why.find("arith-1/learner/0  64 scored groups     3s      none  31 of 64"),
            std::string::npos)
      << why;
  job["why"][0]["ended_by"] = "until there is room";
  EXPECT_NE(render_why(job, kUnlimited).find("  until there is room  31 of 64"), std::string::npos);
  job["why"][0]["deadline_s"] = 90;
  const std::string limited = render_why(job, kUnlimited);
  EXPECT_NE(limited.find("  in 1m30s, "), std::string::npos) << limited;
  EXPECT_TRUE(render_why(an_actor(), kUnlimited)
                  .starts_with("arith-1/rollout/0 is Backoff: Backoff: killed by signal 9"));
}

TEST(Views, ATroubledRewardProgramIsToldWhole) {
  json actor = an_actor();
  actor["troubles"] = json::array({{{"who", "j/reward/0"},
                                    {"what", "the program hung for 10 s without an answer"},
                                    {"attempt", 2},
                                    {"attempts", 3},
                                    {"stderr", {"Traceback", "ValueError: x"}},
                                    {"log", "/runs/j/logs/reward.0.1.log"},
                                    {"count", 4},
                                    {"since_s", 12}}});
  const std::string block =
      "j/reward/0, 12s ago: the program hung for 10 s without an answer (attempt 2 of 3); "
      "troubles so far: 4\n"
      "  its stderr ends:\n"
      "    Traceback\n"
      "    ValueError: x\n"
      "  log: /runs/j/logs/reward.0.1.log\n";
  EXPECT_NE(render_why(actor, {40, kNow}).find(block), std::string::npos);
  EXPECT_NE(render_description(Kind::kActors, actor, json::array(), {40, kNow}).find(block),
            std::string::npos);
}

// The rates of a thousand rollouts are a line.
TEST(Views, DescriptionsShowTheFleetAsATable) {
  json job = a_job();
  job["rates"] = {{"trainer_idle_fraction", 0.31}, {"rollouts", json::array()}};
  job["predicted"] = {{"trainer_idle_fraction", 0.29}, {"rollouts", 2}, {"rollouts_matched", 3}};
  for (int i = 0; i < 1000; ++i)
    job["rates"]["rollouts"].push_back({{"actor", "arith-1/rollout/1"}, {"tokens_per_s", 900}});
  const std::string text = render_description(Kind::kJobs, job, json::array(), kUnlimited);
  EXPECT_NE(text.find("\nFleet:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("3 match"), std::string::npos) << text;
  EXPECT_EQ(text.find("rates:"), std::string::npos);
  EXPECT_EQ(text.find("arith-1/rollout/1"), std::string::npos);
}

TEST(Views, DescriptionsHoldFieldsWaitsAndEvents) {
  json actor = an_actor();
  actor["why"] = json::array({a_wait()});
  const json events = json::array({{{"seq", 7},
                                    {"time", kNow - 1000},
                                    {"kind", "Restarted"},
                                    {"subject", "s"},
                                    {"message", "m"}}});
  const std::string text = render_description(Kind::kActors, actor, events, kUnlimited);
  for (const char* part :
       {"actors/arith-1/rollout/0", "incarnation: 3", "64 scored groups", "Restarted"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find("why:"), std::string::npos);
}

bool same(const YAML::Node& yaml, const json& value) {
  if (value.is_object()) {
    if (!yaml.IsMap() || yaml.size() != value.size()) return false;
    for (const auto& [name, item] : value.items())
      if (!yaml[name] || !same(yaml[name], item)) return false;
    return true;
  }
  if (value.is_array()) {
    if (!yaml.IsSequence() || yaml.size() != value.size()) return false;
    for (std::size_t i = 0; i < value.size(); ++i)
      if (!same(yaml[i], value[i])) return false;
    return true;
  }
  if (value.is_null()) return yaml.IsNull();
  return yaml.IsScalar() &&
         yaml.Scalar() == (value.is_string() ? value.get<std::string>() : value.dump());
}

json random_json(Rng& rng, int depth) {
  static constexpr std::string_view kTexts[] = {
      "a", "", "true", "5", "- x", "a: b", "#c", "é\n\"", "null", " s ", "[x]", "/p/q", "\t", "~"};
  switch (rng.below(depth > 0 ? 7 : 5)) {
    case 0:
      return nullptr;
    case 1:
      return rng.below(2) == 1;
    case 2:
      return static_cast<std::int64_t>(rng.next() >> 20) - 1000;
    case 3:
    case 4:
      return kTexts[rng.below(std::size(kTexts))];
    case 5: {
      json list = json::array();
      for (std::uint64_t i = rng.below(4); i > 0; --i) list.push_back(random_json(rng, depth - 1));
      return list;
    }
    default: {
      json object = json::object();
      for (std::uint64_t i = rng.below(4); i > 0; --i)
        object["k" + std::string(kTexts[rng.below(std::size(kTexts))])] =
            random_json(rng, depth - 1);
      return object;
    }
  }
}

TEST(Views, YamlReadsBackAsTheSameValue) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed);
    const json value = random_json(rng, 4);
    const std::string text = to_yaml(value);
    YAML::Node read;
    ASSERT_NO_THROW(read = YAML::Load(text)) << "seed " << seed << "\n" << text;
    EXPECT_TRUE(same(read, value)) << "seed " << seed << "\n" << text << "\n" << value;
  }
}

TEST(Views, SamplesShowWhatWasSaid) {
  const json samples = json::array(
      {{{"step", 3},
        {"prompt", "1+1="},
        {"completion", "2\n3"},
        {"reward", 1.0},
        {"advantage", -0.5},
        {"versions", {2, 2, 3}},
        {"finish_reason", "stop"},
        {"error", nullptr}},
       {{"step", 3}, {"prompt", "<|im_start|>system"}, {"user", "what is 7"}, {"answer", 7}}});
  const std::string table = render_samples(samples, OutputForm::kTable, kUnlimited);
  for (const char* part : {"1+1=", "2\\n3", "1.000", "-0.500", "2,3", "stop", "what is 7"})
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  EXPECT_EQ(table.find("ERROR"), std::string::npos);
  EXPECT_EQ(table.find("im_start"), std::string::npos);
  EXPECT_NE(render_samples(samples, OutputForm::kWide, kUnlimited).find("answer 7"),
            std::string::npos);
  EXPECT_EQ(parse_json(render_samples(samples, OutputForm::kJson, kUnlimited)), samples);
  std::istringstream lines(render_samples(samples, OutputForm::kJsonl, kUnlimited));
  std::string line;
  for (const json& sample : samples) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(parse_json(line), sample);
  }
  EXPECT_NE(render_samples(samples, OutputForm::kWide, kUnlimited).find("=> 2\n3"),
            std::string::npos);
}

// ESC, CR, C1 and the overrides of bidirectional text, wherever foreign text is shown.
TEST(Views, ForeignTextSteersNoTerminal) {
  const std::string evil = "a\x1b[2J\r\u009b5n\u202eb\n\tc\xff";
  const json sample{{"step", 1}, {"prompt", evil}, {"completion", evil}, {"error", evil}};
  json actor = an_actor(), job = a_job(), wait = a_wait();
  actor["message"] = actor["name"] = job["state"] = job["reason"] = evil;
  wait["who"] = wait["detail"] = evil;
  job["why"] = actor["why"] = json::array({wait});
  const json event{{"seq", 1}, {"kind", "actor"}, {"subject", evil}, {"message", evil}};
  std::string all = live_bar(job, 200) + live_line(job) + render_why(actor, kUnlimited) +
                    render_description(Kind::kActors, actor, json::array({event}), kUnlimited);
  for (const OutputForm form : {OutputForm::kTable, OutputForm::kWide, OutputForm::kName,
                                OutputForm::kYaml, OutputForm::kJson}) {
    all += render_items(Kind::kActors, json::array({actor}), form, kUnlimited);
    all += render_items(Kind::kEvents, json::array({event}), form, kUnlimited);
    if (form != OutputForm::kName) all += render_samples(json::array({sample}), form, kUnlimited);
  }
  all += render(Error{.message = evil, .where = evil, .help = evil});
  for (const char* part : {"\x1b", "\r", "\u009b", "\u202e", "\xff"})
    EXPECT_EQ(all.find(part), std::string::npos) << visible(part, Lines::kOne);
  EXPECT_NE(render_samples(json::array({sample}), OutputForm::kWide, kUnlimited).find("b\n\tc"),
            std::string::npos)
      << "text of several lines stays so";
  EXPECT_EQ(
      parse_json(render_items(Kind::kActors, json::array({wait}), OutputForm::kJson, kUnlimited)),
      parse_json(dump_json(json::array({wait}))));
}

std::string printed(const MetricsTable& table, MetricsForm form) {
  std::ostringstream out;
  table.print(form, kUnlimited, out);
  return out.str();
}

// MT-1: a step that was trained anew, an evaluation that comes after later steps, a key that begins
// late, and lines that say nothing.
TEST(MetricsOfARun, AreARowPerStepAndAColumnPerKey) {
  MetricsTable table;
  for (const char* line :
       {R"({"step":1,"b":0.5,"a":1e-7,"lost":3})", R"({"step":2,"b":null,"a":2})",
        R"({"step":3,"a":12345678901})", R"({"step":1,"b":0.1,"a":-4})",
        R"({"step":1,"eval":"periodic","val/x":0.25})", R"({"step":-1,"eval":"before","val/x":0})",
        R"([1])", R"({"a":3})", R"({"step":"4"})"})
    EXPECT_TRUE(table.add(parse_json(line)));
  EXPECT_EQ(printed(table, MetricsForm::kCsv),
            "step,a,b,lost,val/x\n-1,,,,0\n1,-4,0.1,,0.25\n2,2,,,\n3,12345678901,,,\n");
  EXPECT_EQ(printed(table, MetricsForm::kJsonl),
            "{\"step\":-1,\"val/x\":0}\n{\"step\":1,\"a\":-4,\"b\":0.1,\"val/x\":0.25}\n"
            "{\"step\":2,\"a\":2}\n{\"step\":3,\"a\":12345678901}\n");
  const std::string keys = printed(table, MetricsForm::kTable);
  EXPECT_NE(keys.find("a     "), std::string::npos) << keys;
  EXPECT_NE(keys.find("1.23457e+10"), std::string::npos) << keys;
  EXPECT_EQ(printed(MetricsTable(), MetricsForm::kCsv), "step\n");
  EXPECT_EQ(table.columns(), (std::vector<std::string>{"step", "a", "b", "lost", "val/x"}));
}

TEST(MetricsOfARun, KeepTheirShapeWhateverAKeyIsCalled) {
  MetricsTable table;
  EXPECT_TRUE(table.add({{"step", 1}, {"reward/a,\"b\"\n\x1b[2J", 2}}));
  EXPECT_EQ(printed(table, MetricsForm::kCsv), "step,\"reward/a,\"\"b\"\"\\n\\u001b[2J\"\n1,2\n");
  const json line = parse_json(printed(table, MetricsForm::kJsonl));
  EXPECT_EQ(line.size(), 2U) << line;
  EXPECT_EQ(printed(table, MetricsForm::kTable).find('\x1b'), std::string::npos);
}

TEST(MetricsOfARun, AreNotHeldWithoutALimit) {
  MetricsTable table(/*cells_max=*/4);
  EXPECT_TRUE(table.add({{"step", 1}, {"a", 1}, {"b", 1}}));
  EXPECT_TRUE(table.add({{"step", 1}, {"a", 1}, {"b", 1}})) << "the same row";
  EXPECT_TRUE(table.add({{"step", 2}, {"a", 1}, {"b", 1}}));
  const auto full = table.add({{"step", 3}, {"a", 1}});
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().help.find("--keys"), std::string::npos);
}

}  // namespace
}  // namespace tandem::cli
