// Lines over time as an SVG picture: panels one below the other with a common time axis, and a
// colour for each series. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tandem::forecast {

struct PlotLine {
  std::string name;                               // in the legend, once for all panels
  std::vector<std::pair<double, double>> points;  // time in seconds, value; times ascend
};
struct PlotPanel {
  std::string title;
  std::vector<PlotLine> lines;  // those of all panels have the same names, in the same order
};

std::string plot_svg(const std::string& title, const std::vector<PlotPanel>& panels);

}  // namespace tandem::forecast
