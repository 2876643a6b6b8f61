// Tests actors/translate/dialects.h, actors/translate/dialect.h, actors/translate/frameworks.h,
// actors/translate/verl_keys.h, actors/translate/nemo_rl_keys.h.
#include "actors/translate/dialects.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "actors/job/job_table.h"
#include "actors/translate/read_yaml.h"
#include "runtime/base/json.h"
#include "tests/reference_page.h"

namespace tandem::translate {
namespace {

ForeignConfig config_of(const std::string& yaml) { return *read_yaml(yaml, "a.yaml"); }

std::string recognised(const ForeignConfig& config) {
  const auto found = recognise(config);
  return found ? std::string((*found)->name) : found.error().message + " " + found.error().help;
}

TEST(Dialects, AreKnownByTheirKeys) {
  EXPECT_EQ(recognised(config_of("actor_rollout_ref: {rollout: {n: 4}}")), "verl");
  EXPECT_EQ(recognised(config_of("num_generations: 4")), "trl");
  EXPECT_EQ(recognised(config_of("rollout_batch_size: 4")), "openrlhf");
  EXPECT_EQ(recognised(config_of("gconfig: {n_samples: 4}")), "areal");
  EXPECT_EQ(recognised(config_of("grpo: {num_prompts_per_step: 4}")), "nemo-rl");
  EXPECT_EQ(recognised(config_of("trainer: {policy: {model: {path: x}}}")), "skyrl");
  EXPECT_EQ(recognised(config_of("orchestrator: {batch_size: 4}")), "prime-rl");
  ForeignConfig config("run.sh");
  config.program = "verl.trainer.main_ppo";
  EXPECT_EQ(recognised(config), "verl");
}

TEST(Dialects, NoneOrSeveralIsAnErrorThatNamesTheKeys) {
  const std::string none = recognised(config_of("a: 1"));
  EXPECT_NE(none.find("the file is of no framework that is known here"), std::string::npos);
  for (const Dialect& dialect : dialects())
    EXPECT_NE(none.find(std::string(dialect.name) + ": `"), std::string::npos) << none;
  const std::string both = recognised(config_of("grpo: {a: 1}\norchestrator: {b: 1}"));
  EXPECT_NE(both.find("`grpo.` of NeMo-RL, `orchestrator.` of prime-rl"), std::string::npos)
      << both;
}

TEST(Dialects, EachRuleLeadsToAKeyOfTheJob) {
  for (const Dialect& dialect : dialects()) {
    std::set<std::string_view> keys;
    for (const Rule& rule : dialect.rules) {
      EXPECT_TRUE(keys.insert(rule.key).second) << dialect.name << " " << rule.key << " twice";
      const bool star = rule.key.find('*') != rule.key.npos;
      EXPECT_TRUE(!star || rule.key.find('*') == rule.key.size() - 1) << rule.key;
      EXPECT_FALSE(star && rule.derived) << rule.key << " hides keys that derive() does not read";
      if (rule.ours.empty()) {
        EXPECT_FALSE(rule.text.empty()) << rule.key;
        continue;
      }
      std::string ours(rule.ours.substr(0, rule.ours.find(' ')));
      if (const auto name = ours.find("parts.NAME"); name != ours.npos)
        ours.replace(name, 10, "parts.a");
      const auto table = job::table_path(ours);
      EXPECT_TRUE(job::find_key(table.path) || (rule.derived && job::find_section(table.path)))
          << dialect.name << " " << rule.key << " -> " << rule.ours;
    }
  }
}

TEST(Dialects, EachDefaultIsOfAKnownKey) {
  for (const Dialect& dialect : dialects())
    for (const ForeignDefault& one : dialect.defaults) {
      EXPECT_FALSE(parse_json(one.value).is_discarded()) << dialect.name << " " << one.key;
      const Rule* const rule = find_rule(dialect, one.key);
      ASSERT_TRUE(rule) << dialect.name << " " << one.key;
      EXPECT_FALSE(rule->ours.empty()) << dialect.name << " " << one.key;
    }
}

TEST(Dialects, TheLongestRuleDecides) {
  const Dialect& verl = *find_dialect("verl");
  EXPECT_EQ(find_rule(verl, "actor_rollout_ref.model.lora_alpha")->severity, Severity::kSame);
  EXPECT_EQ(find_rule(verl, "actor_rollout_ref.model.lora_rank")->severity, Severity::kDiffers);
  EXPECT_EQ(find_rule(verl, "actor_rollout_ref.actor.no_such_key"), nullptr);
  EXPECT_EQ(find_dialect("none"), nullptr);
}

// The tables of the guides say of each key what its rule says.
TEST(Dialects, TheGuidesTablesAreThoseOfTheRules) {
  for (const auto& [page, name] :
       {std::pair("guides/from-verl.md", "verl"), std::pair("guides/from-trl.md", "trl")}) {
    const Dialect& dialect = *find_dialect(name);
    for (const TableRow& row : table_rows(page, "Keys")) {
      const std::string key = row.at(0).substr(1, row.at(0).size() - 2);
      const Rule* const rule = find_rule(dialect, key);
      ASSERT_TRUE(rule) << page << ": " << key;
      const std::string ours = rule->ours.empty() ? "" : "`" + std::string(rule->ours) + "`";
      EXPECT_EQ(row.at(1), ours) << page << ": " << key;
    }
  }
}

}  // namespace
}  // namespace tandem::translate
