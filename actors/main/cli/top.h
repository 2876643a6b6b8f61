// What `tandem top` shows, and what its keys do. Pure: the API's JSON, the size of the screen and
// the user's choice in, lines out. Drawing them is terminal.h's.
//
//   TP-1  No line is wider than the screen, and there are no more lines than it has rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/main/cli/terminal.h"
#include "runtime/base/json.h"

namespace tandem::cli {

enum class TopSort { kName, kState, kCpu, kMemory, kRestarts };

struct TopChoice {
  TopSort sort = TopSort::kName;
  std::string job;    // only its actors; empty: those of all jobs
  bool help = false;  // the keys instead of the actors
};

struct TopPicture {
  nlohmann::json jobs, actors, nodes;  // as the API lists them
  std::string trouble;                 // why they are old; empty: they are not
};

struct TopScreen {
  ScreenSize size;
  bool colour = false;
  bool keys = true;  // whether there is a user who can press some
  std::int64_t now_ms = 0;
};

// Actors and jobs that have ended are left out.
std::vector<std::string> top_lines(const TopPicture& picture, const TopChoice& choice,
                                   const TopScreen& screen);

// The choice after a key; nullopt: the user wants to leave. Keys that mean nothing change nothing.
std::optional<TopChoice> after_key(TopChoice choice, const TopPicture& picture,
                                   const TerminalEvent& key);

}  // namespace tandem::cli
