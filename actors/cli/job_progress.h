// The text that `tandem run` shows for one job: a bar that is redrawn, a plain line off a terminal,
// and the summary at the end. Pure functions of the controller's JSON; `width` is in columns.
//
// A job is the JSON of docs/design/contract.md. These members are shown as well when they are
// present:
//   "eval": the last mean validation reward        "eta_seconds": a number
//   "eval_figures": as evaluation_view.h has them
//   "warm_start": {"step", "max_steps", "metric"}  while state is WarmStart
//   "why": [{"who", "waits_for", "since_s", "deadline_s", "ended_by", "detail"}]
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tandem::cli {

// Several lines without escape codes, each at most `width` columns, ending in a newline.
std::string live_bar(const nlohmann::json& job, int width);

// The same on one line of key=value, for logs and pipes; no newline, never truncated.
std::string live_line(const nlohmann::json& job);

// `result` is result.json; `job` gives id and run_dir. Ends with the next steps as commands. Never
// truncated: digests and paths are meant to be copied.
std::string final_summary(const nlohmann::json& job, const nlohmann::json& result);

}  // namespace tandem::cli
