// The files of configs/monitoring that Prometheus and Grafana read, made from the table of alerts
// and a table of panels. A test compares the files with these texts. Pure.
#pragma once

#include <span>
#include <string>

namespace tandem::api {

// One line of a plot. `expression` is PromQL; {of} in it becomes the choice of the job, and
// {of, …} the choice beside further labels.
struct PanelLine {
  const char* expression = nullptr;  // nullptr: there is no further line
  const char* legend = "";
};
struct Panel {
  const char* title;
  const char* about;
  const char* unit;  // as Grafana names it: "percentunit", "short", "s"
  PanelLine lines[4];
  const char* alert = nullptr;  // the alert whose fixed threshold the plot draws
};
std::span<const Panel> panels();
// The line's expression with the variables of the dashboard.
std::string panel_expression(const PanelLine& line);

std::string prometheus_rules();   // configs/monitoring/tandem.rules.yaml
std::string grafana_dashboard();  // configs/monitoring/grafana-dashboard.json

}  // namespace tandem::api
