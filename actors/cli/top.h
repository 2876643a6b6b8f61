// The picture of `tandem top`, and the meaning of its keys. Pure: the API's JSON, the size of the
// screen and the user's choice go in, lines come out. terminal.h draws them.
//
//   TP-1  No line is wider than the screen, and there are no more lines than it has rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/table.h"
#include "actors/cli/terminal.h"
#include "runtime/base/json.h"

namespace tandem::cli {

// The order of the actors; the values index kSortOrders in top.cc.
enum class TopSort { kName, kState, kCpu, kMemory, kRestarts };

// The choices that the user has made by keys.
struct TopChoice {
  TopSort sort = TopSort::kName;
  std::string job;    // an id: only its actors are shown; empty: those of all jobs
  bool help = false;  // the meaning of the keys is shown instead of the actors
};

// The last answer of the controller.
struct TopPicture {
  nlohmann::json jobs, actors, nodes;  // as the API lists them
  std::string trouble;                 // why the lists are old; empty: they are current
};

// The widths of the columns of earlier frames, so that columns stay where they are (table.h).
struct TopWidths {
  ColumnWidths jobs, actors;
};

// The screen to draw for.
struct TopScreen {
  ScreenSize size;
  bool colour = false;
  bool keys = true;  // whether the last row shows the keys
  std::int64_t now_ms = 0;
  TopWidths* kept = nullptr;  // set where the screen is drawn again and again
};

// The lines of the screen, with escape codes for colours where `screen` wants them. Actors and jobs
// that have ended are left out.
std::vector<std::string> top_lines(const TopPicture& picture, const TopChoice& choice,
                                   const TopScreen& screen);

// The choice after a key; nullopt: the user wants to leave. Keys that mean nothing change nothing.
std::optional<TopChoice> after_key(TopChoice choice, const TopPicture& picture,
                                   const TerminalEvent& key);

}  // namespace tandem::cli
