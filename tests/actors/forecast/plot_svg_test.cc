#include "actors/forecast/plot_svg.h"

#include <gtest/gtest.h>

namespace tandem::forecast {
namespace {

TEST(PlotSvg, HasALineForEachSeriesAndALegendForAll) {
  const std::string svg = plot_svg(
      "a < b & c", {{"steps", {{"K = 0", {{0, 1}, {60, 2}}}, {"K = 1", {{0, 1}, {30, 3}}}}},
                    {"idle", {{"K = 0", {{0, 50}}}, {"K = 1", {}}}}});
  const auto count = [&](const std::string& what) {
    int found = 0;
    for (std::size_t at = 0; (at = svg.find(what, at)) != svg.npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("<polyline"), 4);
  EXPECT_EQ(count("K = 0"), 1);
  EXPECT_EQ(count("K = 1"), 1);
  EXPECT_EQ(count("a &lt; b &amp; c"), 1);
  EXPECT_TRUE(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
  EXPECT_EQ(count("nan"), 0);
  EXPECT_EQ(count("inf"), 0);
}

TEST(PlotSvg, NothingIsAPictureToo) {
  EXPECT_TRUE(plot_svg("none", {}).ends_with("</svg>\n"));
  EXPECT_EQ(plot_svg("none", {{"steps", {{"a", {}}}}}).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace tandem::forecast
