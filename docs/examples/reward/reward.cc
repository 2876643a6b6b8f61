// A reward of one's own: reads one JSON object per line, and writes one per line. It runs for as
// long as its reward actor does. docs/guides/rewards.md describes the lines.
#include <tandem/program.h>

#include <functional>
#include <iostream>
#include <numeric>
#include <string>

namespace {

// The share of characters that are right, and 1 only for the whole answer.
double score(const std::string& completion, const std::string& answer) {
  if (completion == answer) return 1;
  if (completion.size() != answer.size()) return 0;
  const auto right = std::inner_product(completion.begin(), completion.end(), answer.begin(), 0,
                                        std::plus<>(), std::equal_to<>());
  return 0.5 * right / static_cast<double>(answer.size());
}

nlohmann::json judge(const nlohmann::json& item) {
  if (!item.is_object() || !item.contains("id"))
    return {{"id", nullptr}, {"error", "no object with an id"}};
  const auto text = [&](const char* key) {
    const auto found = item.find(key);
    return found != item.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (text("answer").empty()) return {{"id", item["id"]}, {"error", "there is no answer"}};
  return {{"id", item["id"]}, {"score", score(text("completion"), text("answer"))}};
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);)
    std::cout << tandem::dump_json(judge(tandem::parse_json(line))) << std::endl;  // flushed
}
