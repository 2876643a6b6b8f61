// `tandem top`: asks the controller twice a second, draws the screen, and reads keys in between; a
// key is answered at once from the last picture. Off a terminal it prints one frame.
#include <unistd.h>

#include <ostream>

#include "actors/cli/object_names.h"
#include "actors/cli/table.h"
#include "actors/cli/top.h"

namespace tandem::cli {
namespace {

constexpr Duration kFrameInterval = std::chrono::milliseconds(500);
// A controller that does not answer must not keep the user from leaving for long.
constexpr Duration kAnswerTimeout = std::chrono::seconds(2);

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
Result<void> watch(const Client& client, TopPicture picture, TopChoice choice, Terminal& terminal) {
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

}  // namespace

Result<void> execute(const TopCommand& command, Client& client) {
  ApiClient impatient(client.api.address(), kAnswerTimeout);
  const Client asking{.api = impatient,
                      .out = client.out,
                      .err = client.err,
                      .terminal = client.terminal,
                      .width = client.width};
  TopChoice choice;
  if (command.job) {
    auto id = find_job(asking, *command.job);
    if (!id) return id.error();
    choice.job = *id;
  }
  auto picture = take_picture(asking);
  if (!picture) return picture.error();
  client.out << std::flush;
  if (client.terminal) {
    try {
      if (const auto terminal = Terminal::open(STDIN_FILENO, STDOUT_FILENO))
        return watch(asking, std::move(*picture), choice, *terminal);
    } catch (...) {  // without a handler nothing would be unwound, and the screen not given back
      throw;
    }
  }
  const TopScreen page{.size = {client.width(), kUnlimitedWidth},
                       .colour = false,
                       .keys = false,
                       .now_ms = unix_ms()};
  client.out << frame_of(*picture, choice, page) << std::flush;
  return {};
}

}  // namespace tandem::cli
