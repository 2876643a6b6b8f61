#include "actors/forecast/plot_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace tandem::forecast {
namespace {

constexpr double kWidth = 900, kPanelHeight = 170, kLeft = 70, kRight = 20, kTop = 40, kGap = 50;
constexpr double kLegendRow = 18;
// Of Okabe and Ito, which colour-blind readers can tell apart.
constexpr std::array<const char*, 8> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                              "#e69f00", "#56b4e9", "#000000", "#999999"};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text)
    safe += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return safe;
}

std::string label(double x, double y, const std::string& anchor, const std::string& text) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" +
         escaped(text) + "</text>\n";
}

// A round distance of marks that makes at most six of them up to `most`.
double mark_distance(double most) {
  const double raw = most / 5;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double step : {1.0, 2.0, 5.0, 10.0})
    if (step * power >= raw) return step * power;
  return raw;
}

std::string time_text(double s, double most) {
  if (most >= 2 * 3600) return number(s / 3600) + " h";
  return most >= 2 * 60 ? number(s / 60) + " min" : number(s) + " s";
}

double time_unit(double most) { return most >= 2 * 3600 ? 3600 : most >= 2 * 60 ? 60 : 1; }

double most_of(const std::vector<PlotPanel>& panels, bool of_time) {
  double most = 0;
  for (const PlotPanel& panel : panels)
    for (const PlotLine& line : panel.lines)
      for (const auto& [time, value] : line.points) most = std::max(most, of_time ? time : value);
  return most > 0 ? most : 1;
}

std::string panel_svg(const PlotPanel& panel, double top, double time_most) {
  const double right = kWidth - kRight, bottom = top + kPanelHeight;
  const double value_most = most_of({panel}, false) * 1.05;
  const auto x = [&](double time) { return kLeft + (right - kLeft) * time / time_most; };
  const auto y = [&](double value) { return bottom - kPanelHeight * value / value_most; };
  std::string svg = label(kLeft, top - 8, "start", panel.title);
  const auto rule = [&](double x1, double y1, double x2, double y2, const char* colour) {
    svg += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) +
           "\" y2=\"" + number(y2) + "\" stroke=\"" + colour + "\"/>\n";
  };
  const double every = mark_distance(value_most);
  for (double value = 0; value <= value_most; value += every) {
    rule(kLeft, y(value), right, y(value), "#e5e5e5");
    svg += label(kLeft - 6, y(value) + 4, "end", number(value));
  }
  const double unit = time_unit(time_most);
  const double apart = mark_distance(time_most / unit) * unit;
  for (double time = 0; time <= time_most; time += apart)
    svg += label(x(time), bottom + 16, "middle", time_text(time, time_most));
  rule(kLeft, bottom, right, bottom, "#444");
  rule(kLeft, top, kLeft, bottom, "#444");
  for (std::size_t i = 0; i < panel.lines.size(); ++i) {
    svg += "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"";
    svg += kColours[i % kColours.size()];
    svg += "\" points=\"";
    for (const auto& [time, value] : panel.lines[i].points)
      svg += number(x(time)) + "," + number(y(value)) + " ";
    svg += "\"/>\n";
  }
  return svg;
}

}  // namespace

std::string plot_svg(const std::string& title, const std::vector<PlotPanel>& panels) {
  const std::size_t names = panels.empty() ? 0 : panels.front().lines.size();
  const double legend = kTop + static_cast<double>(panels.size()) * (kPanelHeight + kGap);
  const double height = legend + kLegendRow * static_cast<double>(names) + 10;
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(kWidth) +
                    "\" height=\"" + number(height) + "\" viewBox=\"0 0 " + number(kWidth) + " " +
                    number(height) +
                    "\" font-family=\"sans-serif\" font-size=\"12\">\n"
                    "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  svg += label(kLeft, 16, "start", title);
  const double time_most = most_of(panels, true);
  for (std::size_t i = 0; i < panels.size(); ++i)
    svg += panel_svg(panels[i], kTop + static_cast<double>(i) * (kPanelHeight + kGap), time_most);
  for (std::size_t i = 0; i < names; ++i) {
    const double y = legend + kLegendRow * static_cast<double>(i);
    svg += "<rect x=\"" + number(kLeft) + "\" y=\"" + number(y - 9) +
           "\" width=\"14\" height=\"10\" fill=\"" + kColours[i % kColours.size()] + "\"/>\n" +
           label(kLeft + 20, y, "start", panels.front().lines[i].name);
  }
  return svg + "</svg>\n";
}

}  // namespace tandem::forecast
