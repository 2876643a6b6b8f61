#include "actors/main/price_option.h"

#include <cstdint>
#include <string>
#include <utility>

#include "actors/main/pool_plan.h"
#include "runtime/base/file.h"

namespace tandem::app {
namespace {

constexpr std::uint64_t kPriceFileBytesMax = 1 << 16;

// The prices that the text of --price is, or those of the file which it names.
Result<scheduler::Pricing> prices_of(const std::string& text) {
  if (text.find('=') != text.npos) return scheduler::parse_pricing(text);
  const auto file = read_file(text, kPriceFileBytesMax);
  if (!file) return file.error();
  return prices_of_file(*file, text);
}

}  // namespace

void add_price(cli::Options& options, std::optional<scheduler::Pricing>& prices) {
  const auto take = [&prices](const std::string& text) -> Result<void> {
    auto read = prices_of(text);
    if (!read) return read.error();
    prices = *std::move(read);
    return {};
  };
  options
      .read("--price", take,
            "Prices per device and hour, as in rollout=2.10,learner=4.00,currency=EUR, or a file "
            "of them; else the job's section `pricing`")
      .value("PRICES");
}

}  // namespace tandem::app
