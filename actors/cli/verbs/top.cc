// `tandem top`: asks the controller twice a second, draws the screen, and reads keys in between; a
// key is answered at once from the last picture. Off a terminal it prints one frame.
#include "actors/cli/top.h"

#include <unistd.h>

#include <ostream>

#include "actors/cli/object_names.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/table.h"
#include "actors/cli/verb.h"

namespace tandem::cli {
namespace {

constexpr Duration kFrameInterval = std::chrono::milliseconds(500);
// A controller that does not answer must not keep the user from leaving for long.
constexpr Duration kAnswerTimeout = std::chrono::seconds(2);

struct Top {
  static VerbHelp help() {
    return {.name = "top",
            .group = VerbGroup::kLook,
            .description = "Nodes, jobs and actors on one screen",
            .examples = {"tandem top", "tandem top | head -20"}};
  }

  void options(Options& options) { add_job(options, job).offers("live"); }

  static AnsweredBy answered_by() { return AnsweredBy::kController; }
  Result<void> carry_out(Client& client) const;

  std::optional<std::string> job;
};

Result<TopPicture> take_picture(const Client& client) {
  TopPicture picture;
  auto jobs = get_list(client, "/jobs");
  if (!jobs) return jobs.error();
  auto actors = get_list(client, "/actors");
  if (!actors) return actors.error();
  auto nodes = get_list(client, "/nodes");
  if (!nodes) return nodes.error();
  return TopPicture{std::move(*jobs), std::move(*actors), std::move(*nodes), ""};
}

std::string frame_of(const TopPicture& picture, const TopChoice& choice, const TopScreen& screen) {
  std::string frame;
  for (const std::string& line : top_lines(picture, choice, screen)) frame += line + "\n";
  return frame;
}

// Runs until the user leaves. After its first answer a controller may be silent for a while: its
// last answer is shown, with the reason why it is old.
Result<void> watch_screen(const Client& client, TopPicture picture, TopChoice choice,
                          Terminal& terminal) {
  // Between two looks await() sleeps until a key or the next look, whichever comes first.
  TopWidths widths;
  for (Time look_at = steady_now() + kFrameInterval;;) {
    const TopScreen screen{
        .size = terminal.size(), .colour = wants_colour(), .now_ms = unix_ms(), .kept = &widths};
    terminal.draw(frame_of(picture, choice, screen));
    const auto event = terminal.await(look_at - steady_now());
    if (event && std::holds_alternative<EndAsked>(*event)) return {};
    if (event) {
      auto next = after_key(choice, picture, *event);
      if (!next) return {};
      if (next->job != choice.job) widths.actors.clear();  // actors of one job have shorter names
      choice = std::move(*next);
    }
    if (steady_now() < look_at) continue;
    auto latest = take_picture(client);
    if (latest)
      picture = std::move(*latest);
    else
      picture.trouble = latest.error().message;
    look_at = steady_now() + kFrameInterval;
  }
}

Result<void> Top::carry_out(Client& client) const {
  ApiClient impatient(client.api.address(), kAnswerTimeout);
  const Client asking{.api = impatient, .console = client.console};
  TopChoice choice;
  if (job) {
    auto id = find_job(asking, *job);
    if (!id) return id.error();
    choice.job = *id;
  }
  auto picture = take_picture(asking);
  if (!picture) return picture.error();
  client.console.out << std::flush;
  if (client.console.terminal) {
    try {
      if (const auto terminal = Terminal::open(STDIN_FILENO, STDOUT_FILENO))
        return watch_screen(asking, std::move(*picture), choice, *terminal);
    } catch (...) {  // without a handler nothing would be unwound, and the screen not given back
      throw;
    }
  }
  const TopScreen page{.size = {client.console.columns(), kUnlimitedWidth},
                       .colour = false,
                       .keys = false,
                       .now_ms = unix_ms()};
  client.console.out << frame_of(*picture, choice, page) << std::flush;
  return {};
}

}  // namespace

Verb top_verb() { return make_verb<Top>(); }

}  // namespace tandem::cli
