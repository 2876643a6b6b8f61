// Members are read by JSON pointers with a fallback, since a job has few of them before its first
// step. All text of others (reasons, names, details) passes through visible() before it is shown.
// Lines of the bar are cut to the width, never wrapped: a wrapped line would break the redraw in
// place, which counts lines. The summary is printed once and may wrap.
#include "actors/cli/job_progress.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "actors/cli/evaluation_view.h"
#include "actors/cli/table.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr int kBarCells = 24;
constexpr int kBarCellsMin = 6;  // a shorter bar says nothing: the percentage stands alone
// Waits below the bar; `tandem why` shows all of them.
constexpr std::size_t kWaitsShown = 2;
constexpr const char* kRewardFails = "RewardFails";  // a job's reason, whose message says why

double number(const json& item, const char* pointer, double otherwise = 0) {
  const json::json_pointer at(pointer);
  return item.contains(at) && item[at].is_number() ? item[at].get<double>() : otherwise;
}

bool has_number(const json& item, const char* pointer) {
  const json::json_pointer at(pointer);
  return item.contains(at) && item[at].is_number();
}

std::string word(const json& item, const char* pointer) {
  const json::json_pointer at(pointer);
  return item.contains(at) && item[at].is_string() ? item[at].get<std::string>() : "";
}

template <class... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 256> buffer;
  std::snprintf(buffer.data(), buffer.size(), pattern, values...);
  return buffer.data();
}

std::string whole(double value) { return format("%.0f", value); }

// "[#####-------]  31%" with so many cells, or the percentage alone.
std::string bar(double done, double total, int cells) {
  const double share = total > 0 ? std::clamp(done / total, 0.0, 1.0) : 0;
  const std::string percent = format("%3.0f%%", 100 * share);
  if (cells < kBarCellsMin) return percent;
  const auto full = static_cast<int>(share * cells);
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(cells - full), '-') + "] " + percent;
}

std::string optional_number(const json& item, const char* pointer, const char* label) {
  return has_number(item, pointer) ? label + format("%.3f", number(item, pointer)) : "";
}

// The member at a pointer, or null.
json member_at(const json& item, const std::string& pointer) {
  const json::json_pointer at(pointer);
  return item.contains(at) ? item[at] : json();
}

// The last evaluation for people; evaluation_words() has it as key=value.
std::string evaluation_text(const json& job) {
  return optional_number(job, "/eval", "  eval ") +
         left_out(member_at(job, "/eval_scored"), member_at(job, "/eval_failed")) +
         evaluation_beside(member_at(job, "/eval_figures"));
}

std::string evaluation_words(const json& job) {
  const json scored = member_at(job, "/eval_scored"), failed = member_at(job, "/eval_failed");
  std::string text = optional_number(job, "/eval", " eval=");
  if (!left_out(scored, failed).empty())
    text += " eval_scored=" + whole(number(job, "/eval_scored")) +
            " eval_failed=" + whole(number(job, "/eval_failed"));
  return text + evaluation_pairs(member_at(job, "/eval_figures"));
}

std::string steps_text(const json& job, int cells) {
  const json warm = job.value("warm_start", json());
  if (word(job, "/state") == "WarmStart" && warm.is_object())
    return "warm start " + whole(number(warm, "/step")) + "/" + whole(number(warm, "/max_steps")) +
           "  " + bar(number(warm, "/step"), number(warm, "/max_steps"), cells) +
           optional_number(warm, "/metric", "  metric ") +
           (has_number(warm, "/eta_seconds")
                ? "  eta " + age(number(warm, "/eta_seconds")) +
                      format(" (%.1f steps/s)", number(warm, "/steps_per_second"))
                : std::string());
  // A dash keeps the place of the estimate until there is a step to estimate from.
  const std::string eta = has_number(job, "/eta_seconds") ? age(number(job, "/eta_seconds")) : "-";
  return "step " + whole(number(job, "/step")) + "/" + whole(number(job, "/total_steps")) + "  " +
         bar(number(job, "/step"), number(job, "/total_steps"), cells) + "  eta " + eta;
}

// The job, its state, how far it is and when it will be done, and why it waits. On a narrow
// terminal the bar gets shorter, then the reason goes, then the steps get a line of their own.
std::vector<std::string> head_lines(const json& job, int width) {
  const std::string head = word(job, "/id") + "  " + word(job, "/state");
  std::string reason = word(job, "/reason");
  reason = reason.empty() || reason == "Working" ? "" : "  (" + reason + ")";
  std::string steps;
  const auto fits = [&](int cells) {
    steps = "  " + steps_text(job, cells);
    return display_width(head + steps + reason) <= width;
  };
  for (int cells = kBarCells; cells >= kBarCells / 2; --cells)
    if (fits(cells)) return {head + steps + reason};
  reason.clear();
  for (int cells = kBarCells; cells >= kBarCellsMin - 1; --cells)
    if (fits(cells)) return {head + steps};
  return {head, steps};
}

std::string actors_text(const json& job) {
  std::string text;
  const json actors = job.value("actors", json::object());
  for (const auto& [role, counts] : actors.items())
    text += "  " + role + " " + whole(number(counts, "/ready")) + "/" +
            whole(number(counts, "/desired"));
  return text;
}

// "WHO waits for WHAT (SINCE)".
std::string wait_text(const json& wait) {
  // The detail of an actor that died is a sentence; "waits for" would not fit before it.
  const std::string reason = word(wait, "/waits_for");
  if (reason == "CrashLoop" || reason == "Backoff" || reason == "WaitingForDisk")
    return word(wait, "/who") + " " + word(wait, "/detail");
  std::string text = word(wait, "/who") + " waits for " + reason;
  if (has_number(wait, "/since_s")) text += " (" + age(number(wait, "/since_s")) + ")";
  return text;
}

std::string list_waits(const json& job, std::size_t shown_max) {
  std::string text;
  std::size_t shown = 0;
  for (const json& wait : job.value("why", json::array())) {
    if (shown++ == shown_max) break;
    text += (text.empty() ? "" : "; ") + wait_text(wait);
  }
  return text;
}

std::string percent(double share) { return format("%.0f%%", 100 * share); }

// The commands of the summary are meant to be pasted into a shell.
std::string shell_word(std::string text) {
  const bool plain = std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) || c == '/' || c == '.' || c == '_' || c == '-';
  });
  if (plain && !text.empty()) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// "prompt_too_long 3, reward_failed 1": discarded groups by reason.
std::string discarded_text(const json& ledger) {
  std::string text;
  const json discarded = ledger.value("discarded", json::object());
  for (const auto& [reason, count] : discarded.items())
    text += (text.empty() ? "" : ", ") + reason + " " + count.dump();
  return text.empty() ? "none" : text;
}

std::vector<std::string> lines_of_training(const json& job, int width) {
  std::vector<std::string> lines = head_lines(job, width);
  lines.push_back("  reward " +
                  (has_number(job, "/reward_mean") ? format("%.3f", number(job, "/reward_mean"))
                                                   : std::string("-")) +
                  evaluation_text(job) + "  staleness " + whole(number(job, "/staleness/max")) +
                  " of " + whole(number(job, "/staleness/bound")) + " (mean " +
                  format("%.2f", number(job, "/staleness/mean")) + ")  queue " +
                  whole(number(job, "/queue_depth")));
  lines.push_back("  tokens/s " + short_count(number(job, "/tokens_per_second/generated")) +
                  " generated, " + short_count(number(job, "/tokens_per_second/trained")) +
                  " trained  trainer idle " + percent(number(job, "/trainer_idle_fraction")) +
                  actors_text(job));
  return lines;
}

std::string words_of_training(const json& job) {
  std::string line;
  const json warm = job.value("warm_start", json());
  if (word(job, "/state") == "WarmStart" && warm.is_object())
    line += " warm_start_step=" + whole(number(warm, "/step")) +
            optional_number(warm, "/metric", " metric=") +
            optional_number(warm, "/steps_per_second", " steps_per_s=") +
            optional_number(warm, "/eta_seconds", " eta_s=");
  line += " step=" + whole(number(job, "/step")) + "/" + whole(number(job, "/total_steps")) +
          optional_number(job, "/reward_mean", " reward=") + evaluation_words(job) +
          " generated_per_s=" + whole(number(job, "/tokens_per_second/generated")) +
          " trained_per_s=" + whole(number(job, "/tokens_per_second/trained")) +
          " staleness=" + whole(number(job, "/staleness/max")) + "/" +
          whole(number(job, "/staleness/bound")) + " queue=" + whole(number(job, "/queue_depth"));
  return line;
}

std::string words_of_actors(const json& job) {
  std::string line;
  const json actors = job.value("actors", json::object());
  for (const auto& [role, counts] : actors.items())
    line += " " + role + "=" + whole(number(counts, "/ready")) + "/" +
            whole(number(counts, "/desired"));
  return line;
}

// A job of actors alone has no steps, rewards or tokens.
std::vector<std::string> lines_of_actors(const json& job) {
  const std::string reason = word(job, "/reason");
  return {word(job, "/id") + "  " + word(job, "/state") +
          (reason.empty() || reason == "Working" ? "" : "  (" + reason + ")") + actors_text(job)};
}

std::string summary_of_actors(const json& job, const json& result) {
  const std::string run_dir = word(job, "/run_dir");
  std::vector<Row> rows;
  const json actors = result.value("actors", json::object());
  for (const auto& [role, counts] : actors.items())
    rows.push_back({"  " + role, whole(number(counts, "/actors")) + " actors, " +
                                     whole(number(counts, "/finished")) + " finished, " +
                                     whole(number(counts, "/restarts")) + " restarts"});
  rows.push_back({"  run dir", run_dir});
  const std::string table = render_table({{""}, {""}}, rows, kUnlimitedWidth);
  return word(job, "/id") + " " + word(result, "/state") + " in " +
         age(number(result, "/wall_seconds")) + "\n" + table.substr(table.find('\n') + 1) +
         "next:\n  ls " + shell_word(run_dir + "/logs") + "\n";
}

bool trains(const json& job) { return job.value("trains", true); }

// What did not go as it was meant: completions that failed, groups that the filter is for, and what
// the run warned of, a line each of the first ones.
void add_troubles(const json& result, std::vector<Row>& rows) {
  if (const double failed = number(result, "/rewards_failed"); failed > 0)
    rows.push_back({"  rewards", whole(failed) +
                                     " trained completions failed, and have the reward of "
                                     "reward.on_failure"});
  if (const double kept = number(result, "/groups_kept_by_filter"); kept > 0)
    rows.push_back({"  kept", whole(kept) +
                                  " trained groups that algorithm.filter_groups is for, since "
                                  "max_num_gen_batches was reached"});
  constexpr std::size_t kShown = 5;
  const json said = result.value("warnings", json::array());
  for (std::size_t i = 0; i < std::min(said.size(), kShown); ++i)
    rows.push_back({i == 0 ? "  warnings" : "", visible(said[i].get<std::string>(), Lines::kOne)});
  const double all = static_cast<double>(said.size()) + number(result, "/warnings_left_out");
  if (all > kShown)
    rows.push_back({"", "and " + whole(all - kShown) + " more: result.json, `tandem events`"});
}

}  // namespace

std::string live_bar(const json& job, int width) {
  std::vector<std::string> lines =
      trains(job) ? lines_of_training(job, width) : lines_of_actors(job);
  if (word(job, "/reason") == kRewardFails) lines.push_back("  " + word(job, "/message"));
  if (const std::string waits = list_waits(job, kWaitsShown); !waits.empty())
    lines.push_back("  " + waits);
  std::string text;
  for (const std::string& line : lines) text += fit(visible(line, Lines::kOne), width) + "\n";
  return text;
}

std::string live_line(const json& job) {
  std::string line = "job=" + word(job, "/id") + " state=" + word(job, "/state");
  if (trains(job))
    line += words_of_training(job);
  else
    line += words_of_actors(job);
  if (const std::string reason = word(job, "/reason"); reason == kRewardFails)
    line += " reason=" + reason + " message=" + dump_json(word(job, "/message"));
  if (const std::string waits = list_waits(job, 1); !waits.empty())
    line += " waits=" + dump_json(waits);
  return visible(line, Lines::kOne);
}

std::string final_summary(const json& job, const json& result) {
  if (!trains(job)) return summary_of_actors(job, result);
  const std::string id = word(job, "/id"), run_dir = word(job, "/run_dir");
  const std::string state = word(result, "/state");
  std::vector<Row> rows;
  const auto row = [&rows](std::string name, std::string value) {
    rows.push_back({"  " + std::move(name), std::move(value)});
  };
  row("steps", whole(number(result, "/steps")) + " (policy version " +
                   whole(number(result, "/policy_version")) + ")");
  if (result.value("eval", json()).is_object()) {
    const std::string sources = means_of_sources(member_at(result, "/eval/figures/final"));
    std::string eval;
    // The kinds in the order of time: before, after the warm start, at the end.
    for (const auto& [kind, label] :
         {std::pair("before", "before "), std::pair("after_warm_start", "after warm start "),
          std::pair("final", "final ")}) {
      const std::string mean = std::string("/eval/") + kind;
      const std::string counts = std::string("/eval/counts/") + kind;
      if (const std::string one = optional_number(result, mean.c_str(), label); !one.empty())
        eval +=
            (eval.empty() ? "" : ", ") + one +
            left_out(member_at(result, counts + "/scored"), member_at(result, counts + "/failed")) +
            evaluation_in_brackets(member_at(result, std::string("/eval/figures/") + kind));
    }
    if (eval.empty()) eval = "none";
    if (const std::string failure = word(result, "/eval/failure"); !failure.empty())
      eval += "; " + failure;
    row("eval", eval);
    if (!sources.empty()) row("by source", sources);
  }
  row("staleness", "at most " + whole(number(result, "/staleness/max")) + " of " +
                       whole(number(result, "/staleness/bound")) + ", mean " +
                       format("%.2f", number(result, "/staleness/mean")));
  // LG-1 for people: after a run, issued is trained plus discarded.
  row("groups", whole(number(result, "/ledger/issued")) + " issued, " +
                    whole(number(result, "/ledger/trained")) + " trained, discarded: " +
                    discarded_text(result.value("ledger", json::object())));
  const double seconds = number(result, "/wall_seconds");
  row("tokens", short_count(number(result, "/tokens/generated")) + " generated, " +
                    short_count(number(result, "/tokens/trained")) + " trained");
  row("idle", "trainer " + percent(number(result, "/trainer_idle_fraction")) + ", rollouts " +
                  percent(number(result, "/rollout_idle_fraction")));
  if (has_number(result, "/cost/total"))
    row("cost",
        format("%.4g ", number(result, "/cost/total")) + word(result, "/cost/currency") +
            (has_number(result, "/cost/per_step")
                 ? format(", %.4g for each of the newest steps", number(result, "/cost/per_step"))
                 : "") +
            format(", %.4g tokens trained per device second",
                   number(result, "/cost/goodput_tokens_per_device_second")));
  if (has_number(result, "/logprob_diff/max_at_staleness_0"))
    row("log-prob diff", format("%g at staleness 0 over %.0f tokens",
                                number(result, "/logprob_diff/max_at_staleness_0"),
                                number(result, "/logprob_diff/tokens_at_staleness_0")));
  if (has_number(result, "/best_checkpoint/step"))
    row("best", "step " + whole(number(result, "/best_checkpoint/step")) + ", " +
                    word(result, "/best_checkpoint/key") + " " +
                    format("%.4g", number(result, "/best_checkpoint/value")) +
                    ": checkpoints/best");
  add_troubles(result, rows);
  if (const double bytes = number(result, "/recorded_bytes"); bytes > 0)
    row("record", short_bytes(bytes) + " in replay/; `tandem replay` trains it again");
  row("weights", word(result, "/weights_sha256"));
  row("run dir", run_dir);

  std::string text = id + " " + state + " in " + age(seconds) + "\n";
  const std::string table = render_table({{""}, {""}}, rows, kUnlimitedWidth);
  text += table.substr(table.find('\n') + 1);
  const std::string checkpoint = run_dir + "/checkpoints/step-" + whole(number(result, "/steps"));
  text += "next:\n";
  if (state == "Succeeded") text += "  tandem generate " + shell_word(checkpoint) + " 'PROMPT'\n";
  text += "  tandem samples " + shell_word(run_dir) + "\n";
  if (state != "Succeeded") text += "  ls " + shell_word(run_dir + "/logs") + "\n";
  return text;
}

}  // namespace tandem::cli
