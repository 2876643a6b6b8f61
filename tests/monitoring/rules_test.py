#!/usr/bin/env python3
"""The files of configs/monitoring by Prometheus' own promtool: usage: rules_test.py SOURCE_DIR

Ends with 77 where there is no promtool (scripts/setup --tests installs it).
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def promtool(*arguments, folder):
    done = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True)
    print(done.stdout + done.stderr, end="")
    assert done.returncode == 0, f"promtool {' '.join(arguments)} fails"


def rules_are_tested_each(monitoring, tests):
    rules = (monitoring / "tandem.rules.yaml").read_text()
    named = set(re.findall(r"- alert: (\w+)", rules))
    tested = set(re.findall(r"Tandem\w+", (tests / "rules.test.yaml").read_text()))
    assert len(named) > 10 and named == tested, named ^ tested
    with tempfile.TemporaryDirectory() as folder:
        for file in (monitoring / "tandem.rules.yaml", tests / "rules.test.yaml"):
            shutil.copy(file, folder)
        promtool("check", "rules", "tandem.rules.yaml", folder=folder)
        promtool("test", "rules", "rules.test.yaml", folder=folder)


def every_expression_of_the_dashboard_is_promql(monitoring):
    """As rules, since promtool parses expressions there alone; Grafana's variables are words."""
    dashboard = json.loads((monitoring / "grafana-dashboard.json").read_text())
    rules = [{"record": f"panel:{panel['id']}:{target['refId']}",
              "expr": target["expr"].replace("$scrape", ".*").replace("$job", ".*")}
             for panel in dashboard["panels"] for target in panel["targets"]]
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps({"groups": [{"name": "panels", "rules": rules}]})  # JSON is YAML
        (pathlib.Path(folder) / "panels.yaml").write_text(text)
        promtool("check", "rules", "panels.yaml", folder=folder)


def the_scrape_configuration_is_one(monitoring):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(monitoring, folder, dirs_exist_ok=True)
        text = (monitoring / "prometheus.yaml").read_text()
        token = pathlib.Path(folder) / "token"
        token.write_text("secret")
        text = re.sub(r"credentials_file: .*", f"credentials_file: {token}", text)
        (pathlib.Path(folder) / "prometheus.yaml").write_text(text)
        promtool("check", "config", "prometheus.yaml", folder=folder)


def main():
    source = pathlib.Path(sys.argv[1])
    if not shutil.which("promtool"):
        print("skipped: there is no promtool (scripts/setup --tests installs it)")
        sys.exit(77)
    monitoring = source / "configs/monitoring"
    rules_are_tested_each(monitoring, source / "tests/monitoring")
    every_expression_of_the_dashboard_is_promql(monitoring)
    the_scrape_configuration_is_one(monitoring)


if __name__ == "__main__":
    main()
