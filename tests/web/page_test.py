#!/usr/bin/env python3
"""The web page in headless Chromium, on made data: usage: page_test.py SCREENSHOT_FOLDER [NAME…]

The page is that of actors/api/web under the content policy that the controller sends, with
50 actors, 100,000 steps of history and texts that try to escape. Ends with 77 where there is no
chromium (scripts/setup --tests installs it). Figures (bytes, time to the first plot) are printed.
"""
import csv
import io
import pathlib
import shutil
import struct
import sys
import threading
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import chromium  # noqa: E402
import fake_api  # noqa: E402

LIVE, WARM, SERVICE = fake_api.LIVE, fake_api.WARM, fake_api.SERVICE
PHONE, DESKTOP = (390, 844, True), (1280, 800, False)
PLOTTED = "document.documentElement.dataset.firstPlotMs"
ALL_PLOTTED = "document.documentElement.dataset.allPlotsMs"
ROWS = "document.querySelectorAll('tbody tr').length"
RUNS = 14


class Page:
    """A signed-in browser on a server of its own."""

    def __init__(self, folder, empty=False):
        self.folder = folder
        self.server = fake_api.Server(empty=empty)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.browser = chromium.Browser()
        self.browser.size(*DESKTOP)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.browser.__exit__()
        self.server.shutdown()

    def sign_in(self, ready=f"{ROWS} > 3"):
        self.browser.open(f"{self.server.address}/?key={fake_api.KEY}")
        self.browser.wait_for(ready)

    def go(self, place, ready):
        self.browser.value(f"location.hash = {place!r}")
        self.browser.wait_for(ready)

    def click(self, selector):
        """With the mouse, in the middle of the first such element; fails where another lies over
        it."""
        x, y, hit = self.browser.value(
            f"(() => {{ const node = document.querySelector({selector!r}); "
            "node.scrollIntoView({block: 'nearest'}); const box = node.getBoundingClientRect(); "
            "const x = box.x + box.width / 2, y = box.y + box.height / 2; "
            "const top = document.elementFromPoint(x, y); "
            "return [x, y, node.contains(top) ? '' : String(top?.outerHTML).slice(0, 200)]; })()")
        assert hit == "", f"over {selector} lies {hit}"
        for kind in ("mousePressed", "mouseReleased"):
            self.browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                              clickCount=1)

    def shot(self, name):
        self.browser.screenshot(self.folder / f"{name}.png")

    def says(self, text):
        self.browser.wait_for(f"document.body.innerText.includes({text!r})")

    def expect_fits(self):
        over = self.browser.value("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, f"the page is {over} px wider than the window"

    def expect_calm(self, expected=None):
        """No complaint of the browser's but those that hold the words `expected`."""
        assert self.browser.value("document.title") != "PWNED"
        assert self.browser.value("document.querySelectorAll('main img, main script').length") == 0
        complaints = [text for text in self.browser.complaints
                      if expected is None or expected not in text]
        assert not complaints, complaints


def plots_are_drawn_at_both_widths(page):
    page.sign_in()
    for size, name in ((DESKTOP, "desktop"), (PHONE, "phone")):
        page.browser.size(*size)
        page.browser.open("about:blank")
        if name == "desktop":  # as at the first visit
            page.browser.call("Network.clearBrowserCache")
        before = page.server.bytes_sent()
        page.browser.open(f"{page.server.address}/#/runs/{LIVE}")
        page.browser.wait_for(ALL_PLOTTED)
        page.browser.wait_for("document.querySelectorAll('.plot canvas').length >= 18")
        print(f"{name}: first plot after {page.browser.value(PLOTTED)} ms, all after "
              f"{page.browser.value(ALL_PLOTTED)} ms, "
              f"{page.server.bytes_sent() - before} bytes sent")
        for title in ("Reward", "Evaluation", "Staleness", "KL", "Entropy", "Tokens per second",
                      "Idle", "Queue age", "Queue"):
            number = page.browser.value(
                f"document.querySelector('[aria-label=\"{title}\"] .value').textContent")
            assert number not in ("", "–"), title
        page.expect_fits()
        page.shot(f"plots-{name}")
    page.browser.size(*DESKTOP, dark=True)
    page.shot("plots-dark")
    page.expect_calm()


def a_live_run_asks_for_its_tail_alone(page):
    page.sign_in()
    page.go(f"#/runs/{LIVE}", PLOTTED)
    path = f"/api/v1/runs/{LIVE}/metrics"
    calls, sent = page.server.traffic(path)
    step = "Number(document.querySelector('.progress span').textContent.replace(/\\D/g, '')" \
           ".slice(0, 6))"
    shown = page.browser.value(step)
    page.browser.wait_for(f"{step} > {shown}")
    page.browser.wait_for("new Promise((done) => setTimeout(() => done(true), 0)) && "
                          "performance.getEntriesByType('resource').filter((entry) => "
                          "entry.name.includes('/metrics')).length >= 4")
    calls_now, sent_now = page.server.traffic(path)
    each = (sent_now - sent) / (calls_now - calls)
    print(f"live: {each:.0f} bytes for each look at the tail, {sent / calls:.0f} for the whole")
    assert each < sent / calls / 5, (each, sent, calls)
    page.expect_calm()


def alerts_are_above_every_page_while_they_fire(page):
    alert = {"name": "TandemTrainerIdle", "severity": "warning", "job": LIVE, "actor": None,
             "message": "The learner waited 31 % of the time.", "value": 0.31, "since_s": 432,
             "advice": f"tandem why {LIVE}"}
    lost = {"name": "TandemNodeLost", "severity": "critical", "job": None, "actor": None,
            "message": "1 of the nodes is lost. " + fake_api.HOSTILE, "value": 1, "since_s": 61,
            "advice": "tandem get nodes"}
    rows = "document.querySelectorAll('#alerts .alert').length"
    page.server.world.alerts = [alert, lost]
    page.sign_in()
    page.browser.wait_for(f"{rows} == 2")
    page.says("for 7 min 12 s")
    for size, name in ((DESKTOP, "desktop"), (PHONE, "phone")):
        page.browser.size(*size)
        page.expect_fits()
        page.shot(f"alerts-{name}")
    page.go(f"#/runs/{WARM}", f"{rows} == 1")  # another run's alert is not its
    page.go(f"#/runs/{LIVE}", f"{rows} == 2")
    page.server.world.alerts = []
    page.browser.wait_for("document.getElementById('alerts').hidden")
    page.expect_calm()


def drag_over_the_first_plot(page):
    box = page.browser.value("(() => { const box = document.querySelector('.canvas')"
                             ".getBoundingClientRect(); return [box.x, box.y]; })()")
    for kind, x in (("mousePressed", 120), ("mouseMoved", 170), ("mouseMoved", 200),
                    ("mouseReleased", 200)):
        page.browser.call("Input.dispatchMouseEvent", type=kind, x=box[0] + x, y=box[1] + 60,
                          button="left", buttons=0 if kind == "mouseReleased" else 1, clickCount=1)


def zooming_asks_for_finer_buckets(page):
    page.sign_in()
    page.go(f"#/runs/{LIVE}", PLOTTED)
    zoomed = "location.hash.includes('from=')"
    for _ in range(5):  # a live run's plots move when more comes, and a drag may miss
        drag_over_the_first_plot(page)
        if page.browser.becomes(zoomed):
            break
    page.browser.wait_for(zoomed)
    page.browser.wait_for("performance.getEntriesByType('resource').some((entry) => "
                          "/metrics.*from=\\d+.*to=\\d+|metrics.*to=\\d+/.test(entry.name))")
    page.shot("zoomed")
    page.browser.value("[...document.querySelectorAll('button')].find((one) => "
                       "one.textContent === 'Whole run').click()")
    page.browser.wait_for("!location.hash.includes('from=')")
    page.expect_calm()


def runs_are_compared(page):
    page.sign_in()
    page.shot("runs-desktop")
    for run in (LIVE, "arithmetic-grpo-6", "staleness-8"):
        page.browser.value(f"document.querySelector('[aria-label=\"Choose {run} to compare\"]')"
                           ".click()")
    page.browser.value("document.querySelector('a.button').click()")
    page.browser.wait_for(f"{PLOTTED} && document.querySelectorAll("
                          "'[aria-label=Reward] .legend li').length === 3")
    assert "compare=" in page.browser.value("location.hash")
    page.browser.value("(() => { const slider = document.querySelector('input[type=range]'); "
                       "slider.value = 0.8; slider.dispatchEvent(new Event('input')); })()")
    page.browser.value("document.querySelector('[aria-label=Entropy] .log').click()")
    page.browser.wait_for("location.hash.includes('smooth=0.8') && "
                          "location.hash.includes('log=Entropy')")
    # What sets them apart: the rate, the seed, and a key that two of them lack.
    page.says("The configurations differ in 4 keys")
    rows = page.browser.value("[...document.querySelectorAll('.difference tbody tr')].map((row) => "
                              "[...row.children].map((cell) => cell.textContent))")
    assert [row[0] for row in rows] == ["name", "seed", "learner.optimizer.lr",
                                        "algorithm.kl_coef"], rows
    assert rows[3][1:] == ["–", "0.05", "–"], rows
    page.shot("compare-desktop")
    # A run that is not there is named, and the others stay.
    page.go(f"#/runs/{LIVE}/plots?compare=arithmetic-grpo-6,nothing-9",
            "document.querySelector('.unknown').textContent.includes('nothing-9')")
    page.browser.wait_for("document.querySelectorAll('[aria-label=Reward] .legend li').length === 2")
    page.expect_calm("status of 404")


def runs_of_a_group_have_a_mean(page):
    page.sign_in()
    page.go("#/runs/seeds-3/plots", PLOTTED)
    legend = "[...document.querySelectorAll('[aria-label=Reward] .legend li')]"
    assert page.browser.value("document.querySelector('[aria-label=Lines]').hidden")
    # What the run is called besides its id stands on its page.
    about = page.browser.value("document.querySelector('.about').innerText.replace(/\\s+/g, ' ')")
    assert about == ("Name seeds seed=3 Group seeds-sweep Tags small, cpu Notes how much seeds "
                     "differ"), about
    # By the mouse, with the list of runs open and shut: nothing lies over the button.
    page.click("button.group")
    page.browser.wait_for("location.hash.includes('mean=1')")
    page.go("#/runs/seeds-3/plots", f"{PLOTTED} && document.querySelector('button.group').hidden === false")
    page.click(".compare summary")
    page.browser.wait_for("document.querySelector('.compare').open")
    page.shot("group-button")
    page.click("button.group")
    page.browser.wait_for(f"{legend}.some((item) => item.textContent.includes("
                          "'seeds-sweep (3 runs)'))")
    assert page.browser.value(f"{legend}.length") == 1
    assert "mean=1" in page.browser.value("location.hash")
    # The band is the interval: it reaches below and above the mean.
    title = page.browser.value(f"{legend}[0].querySelector('.value').title")
    assert "minimum" in title and "maximum" in title, title
    page.shot("group-mean")
    page.browser.value("(() => { const lines = document.querySelector('[aria-label=Lines]'); "
                       "lines.value = 'runs'; lines.dispatchEvent(new Event('change')); })()")
    page.browser.wait_for(f"{legend}.length === 3")
    means = page.browser.value(
        "import('/assets/series.js').then(({meanOf}) => {"
        "const line = (steps, mean) => ({steps, mean, min: mean, max: mean});"
        "const two = meanOf([line([0, 10, 20], [1, 2, 3]), line([0, 20], [3, 5]),"
        "                    line([0, 10], [null, null])]);"
        "return [two.steps, two.mean, two.max.map((high, i) => high - two.mean[i])]; })")
    steps, mean, half = means
    assert steps == [0, 10, 20] and mean == [2, 3, 4], means
    assert all(abs(one - 12.706) < 1e-9 for one in half), means  # t(1) sd/sqrt(2), sd = sqrt(2)
    page.go("#/", f"{ROWS} === {RUNS}")
    page.browser.value("(() => { const find = document.querySelector('[aria-label=\"Find a run\"]'); "
                       "find.value = 'seeds-sweep'; find.dispatchEvent(new Event('input')); })()")
    page.browser.wait_for(f"{ROWS} === 3")
    page.shot("runs-of-a-group")
    page.expect_calm()


def runs_of_a_group_have_a_mean_for_each_configuration(page):
    page.sign_in()
    page.go("#/runs/rates-1/plots?mean=1&compare=rates-2,rates-3,rates-4,seeds-1,seeds-2,"
            "arithmetic-grpo-6", PLOTTED)
    legend = "[...document.querySelectorAll('[aria-label=Reward] .legend li .name')]"
    names = ["rates-sweep lr=0.001 (2 runs)", "rates-sweep lr=0.003 (2 runs)",
             "seeds-sweep (2 runs)", "arithmetic-grpo-6"]
    page.browser.wait_for(f"{legend}.length === 4")
    shown = page.browser.value(f"{legend}.map((name) => name.textContent)")
    assert shown == names, shown
    page.shot("group-configurations")
    page.expect_calm()


def a_phone_shows_what_a_run_is_called(page):
    page.browser.size(*PHONE)
    page.sign_in()
    page.go("#/runs/seeds-3/plots",
            f"{PLOTTED} && document.querySelector('button.group').hidden === false")
    page.click("button.group")
    page.browser.wait_for("location.hash.includes('mean=1')")
    page.expect_fits()
    page.shot("group-phone")
    hostile = "hostile-" + fake_api.HOSTILE[:24]
    page.browser.value(f"location.hash = '#/runs/' + encodeURIComponent({hostile!r})")
    page.browser.wait_for("document.querySelectorAll('.about dd').length === 4")
    page.says("<img src=x")
    page.expect_fits()
    page.expect_calm()


def every_tab_shows_hostile_text_as_text(page):
    page.sign_in()
    for size, name in ((DESKTOP, "desktop"), (PHONE, "phone")):
        page.browser.size(*size)
        page.go("#/", f"{ROWS} === {RUNS}")
        page.expect_fits()
        page.shot(f"runs-{name}")
        for tab, ready in (("actors", f"{ROWS} === 50"),
                           ("waits", "document.querySelector('.node')"),
                           ("samples", "document.querySelectorAll('.sample').length === 20"),
                           ("events", f"{ROWS} === 300")):
            page.go(f"#/runs/{LIVE}/{tab}", ready)
            page.browser.wait_for("document.body.innerText.includes('<img src=x')")
            page.expect_fits()
            page.shot(f"{tab}-{name}")
        page.go("#/cluster", f"{ROWS} === 53")
        page.expect_fits()
        page.shot(f"cluster-{name}")
    page.go(f"#/runs/{LIVE}/samples", "document.querySelector('.control')")
    shown = page.browser.value("document.querySelector('.control').textContent")
    assert shown == "\\x1b", shown
    page.browser.value("[...document.querySelectorAll('button')].find((one) => "
                       "one.textContent.startsWith('Show all')).click()")
    page.expect_fits()
    page.expect_calm()


def an_actor_opens_with_its_log(page):
    page.sign_in()
    page.go(f"#/runs/{LIVE}/actors", f"{ROWS} === 50")
    page.browser.value("document.querySelector('button.link').click()")
    page.browser.wait_for("document.querySelector('dialog[open] .log').textContent"
                          ".includes('info last line')")
    assert "actor=" in page.browser.value("location.hash")
    page.shot("actor-desktop")
    page.browser.value("document.querySelector('dialog[open] button').click()")
    page.browser.wait_for("!document.querySelector('dialog[open]')")
    page.expect_calm()


def figures_of(page):
    return dict(page.browser.value(
        "[...document.querySelectorAll('.figures > div')].map((box) => "
        "[box.firstChild.textContent, box.lastChild.textContent])"))


def a_run_with_prices_shows_its_cost(page):
    page.sign_in()
    page.go(f"#/runs/{LIVE}", PLOTTED)
    figures = figures_of(page)
    assert figures["Goodput and cost"] == (
        "1205 tokens trained per device second · 12.4 USD · 0.0312 USD a step"), figures
    page.shot("cost-desktop")
    page.expect_calm()


def autoscale_shows_its_limits_and_its_newest_decision(page):
    page.sign_in()
    page.go(f"#/runs/{LIVE}", PLOTTED)
    shown = figures_of(page)["Autoscale"]
    assert shown.startswith("1 to 64, 48 wanted · at its limit · trainer idle 31 % over 64 steps, 57 would match · "
                            "40 to 48 at "), shown
    page.expect_fits()
    page.shot("autoscale-desktop")
    page.expect_calm()


def what_is_predicted_stands_beside_what_is_measured(page):
    page.sign_in()
    page.go(f"#/runs/{LIVE}", PLOTTED)
    figures = figures_of(page)
    assert figures["Idle now"] == "31.2 %" and figures["Predicted idle"] == "29 %", figures
    assert figures["Matched by"] == "57", figures
    page.expect_fits()
    page.shot("predicted-desktop")


def an_ended_run_keeps_its_plots_and_logs(page):
    page.sign_in()
    page.go("#/runs/arithmetic-grpo-6", PLOTTED)
    page.browser.wait_for("document.querySelector('.controls').hidden")
    figures = figures_of(page)
    assert "Predicted idle" not in figures, figures
    assert figures["Staleness"] == "1 of 2", figures
    assert figures["Learner idle"] == "23.7 %" and figures["Rollouts idle"] == "5.1 %", figures
    assert figures["Goodput and cost"] == "1205 tokens trained per device second", figures
    assert "–" not in figures.values(), figures
    page.shot("ended-desktop")
    page.go("#/runs/arithmetic-grpo-6/actors", f"{ROWS} === 2")
    page.browser.value("document.querySelector('button.link').click()")
    page.browser.wait_for("document.querySelector('dialog[open] .log').textContent"
                          ".includes('info last line')")
    page.go("#/runs/arithmetic-grpo-6/waits", "document.querySelector('.empty-title')")
    page.expect_calm()


def events_are_marked_by_their_level_and_not_by_words(page):
    page.sign_in()
    page.go("#/events", f"{ROWS} === 300")
    look = ("[...document.querySelectorAll('tbody tr')].find((row) => "
            "row.textContent.includes({!r})).className")
    assert page.browser.value(look.format("failed=0")) == ""
    assert page.browser.value(look.format("exit status 1")) == "warned"
    assert page.browser.value(look.format("its power is off")) == "alarming"
    page.shot("events-levels")
    page.expect_calm()


def the_configuration_of_a_run_is_shown(page):
    page.sign_in()
    for size, name in ((DESKTOP, "desktop"), (PHONE, "phone")):
        page.browser.size(*size)
        page.go(f"#/runs/{LIVE}/config", f"{ROWS} === 7")
        page.says("learner.optimizer.lr")
        page.says("<img src=x")
        page.expect_fits()
        page.shot(f"config-{name}")
        page.go("#/", f"{ROWS} === {RUNS} && document.querySelector('.col-pick')")
    page.go(f"#/runs/{LIVE}/config?find=seed", f"{ROWS} === 1")
    page.expect_calm()


def a_plot_is_saved_as_csv_and_png(page):
    page.sign_in()
    page.go(f"#/runs/arithmetic-grpo-5/plots?compare={LIVE}", PLOTTED)
    page.browser.wait_for("document.querySelectorAll('[aria-label=Reward] .legend li').length === 2")
    button = "[...document.querySelectorAll('[aria-label=Reward] button')].find((one) => " \
             "one.textContent === {!r}).click()"
    page.browser.value(button.format("csv"))
    name = "arithmetic-grpo-5-arithmetic-grpo-7-reward"
    rows = list(csv.DictReader(io.StringIO(page.browser.downloaded(name + ".csv").decode())))
    # 23,456 and 100,000 steps, of which the API gives at most 5000 buckets each.
    assert 5000 < len(rows) < 10_000, len(rows)
    means = [float(row[f"{LIVE} critic/rewards/mean mean"]) for row in rows
             if row[f"{LIVE} critic/rewards/mean mean"]]
    assert len(means) > 4000 and 0.2 < min(means) < 0.5 < max(means) < 1.1, (min(means), max(means))
    assert float(rows[0]["arithmetic-grpo-5 critic/rewards/mean min"]) <= \
        float(rows[0]["arithmetic-grpo-5 critic/rewards/mean max"])
    page.browser.value(button.format("png"))
    picture = page.browser.downloaded(name + ".png")
    (page.folder / "plot-file.png").write_bytes(picture)
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", picture[16:24])
    assert width > 2000 and height > 900, (width, height)
    # Drawn, and not blank: its curves do not compress away.
    assert len(picture) > 40_000, len(picture)
    assert page.browser.value("document.querySelector('.picture')") is None
    # With a step to a bucket there is a column for each series.
    page.go("#/runs/arithmetic-grpo-6/plots?from=100&to=300", "location.hash.includes('to=300')")
    page.browser.wait_for("document.querySelectorAll('[aria-label=Staleness] .legend li').length === 3"
                          " && document.querySelector('h1').textContent === 'arithmetic-grpo-6'"
                          " && !document.querySelector('[aria-label=Staleness] button').disabled")
    page.browser.value(button.format("csv").replace("Reward", "Staleness"))
    text = page.browser.downloaded("arithmetic-grpo-6-staleness.csv").decode()
    assert text.splitlines()[0] == ("step,tandem/staleness/max,tandem/staleness/p99,"
                                    "tandem/staleness/p50,tandem/wall_seconds"), text[:200]
    assert len(text.splitlines()) == 202 and text.splitlines()[1].startswith("100,"), text[:300]
    page.expect_calm()


def what_is_not_there_is_said(page):
    page.sign_in()
    loading = "document.body.innerText.includes('loading')"
    for tab in ("", "/plots", "/samples", "/events", "/config"):
        page.go(f"#/runs/nothing-9{tab}", "document.querySelector('.empty-title')")
        page.says("There is no run nothing-9.")
        page.says("tandem get runs lists them")
        page.browser.wait_for(f"!{loading}")
        assert page.browser.value("document.querySelector('.tabs').hidden")
    page.shot("unknown-run")
    page.go("#/jobs/nothing-10", "document.body.innerText.includes('There is no run nothing-10.')")
    page.go(f"#/runs/{LIVE}/actors?actor=nothing-9/learner/0", f"{ROWS} === 50")
    page.says("There is no actor nothing-9/learner/0.")
    page.says("tandem get actors")
    page.shot("unknown-actor")
    page.go(f"#/runs/{LIVE}/nonsense", "document.body.innerText.includes('no page nonsense')")
    page.go("#/nonsense", "document.body.innerText.includes('There is no page nonsense')")
    page.expect_calm("status of 404")
    # A run that comes into being is shown by itself.
    page.go("#/runs/late-1", "document.body.innerText.includes('There is no run late-1.')")
    page.server.world.runs["late-1"] = fake_api.Run("late-1", "Succeeded", 900, 1.0, 1_700_000_000_000)
    page.browser.wait_for("document.querySelectorAll('.plot canvas').length >= 18")
    assert not page.browser.value("document.querySelector('.tabs').hidden")


def a_job_of_actors_alone_has_no_plots(page):
    page.sign_in()
    page.go(f"#/runs/{SERVICE}", f"{ROWS} === 3")
    shown = page.browser.value("[...document.querySelectorAll('.tabs a')].filter((tab) => "
                               "!tab.hidden).map((tab) => tab.textContent)")
    assert shown == ["Actors", "Events", "Configuration"], shown
    assert page.browser.value("document.querySelectorAll('.plot').length") == 0
    assert page.browser.value("document.querySelector('.figures').hidden")
    assert page.browser.value("document.querySelector('.rollouts').textContent") == "3/3 counter"
    page.shot("actors-alone")
    page.expect_calm()


def the_warm_start_shows_how_far_it_is(page):
    page.sign_in()
    page.says("warm 120 / 500")
    page.go(f"#/runs/{WARM}", "document.querySelector('.progress span').textContent")
    page.says("warm start: step 120 of 500")
    page.says("12.5 steps/s · metric 0.31 · 30 s left of the warm start, at most")
    assert abs(page.browser.value("document.querySelector('.progress progress').value") - 0.24) < 1e-6
    page.shot("warm-start")
    page.expect_calm()


def a_run_is_scaled_and_cancelled(page):
    page.sign_in()
    page.go(f"#/runs/{LIVE}", "!document.querySelector('.controls').hidden")
    more = "document.querySelector('[aria-label=\"One actor more\"]').click()"
    page.browser.value(more)
    page.browser.wait_for("document.querySelector('.rollouts').textContent.includes('/49')")
    page.says("49 rollouts wanted")  # the number is shown before the server has it
    assert page.server.world.scales == [49]
    page.browser.value(more)
    page.says("at most 49 fit on 4 nodes")
    page.browser.wait_for("document.querySelector('.rollouts').textContent.includes('/49')")
    page.browser.value("document.querySelector('.controls > button.danger').click()")
    page.browser.wait_for("document.querySelector('dialog[open]')")
    assert page.server.world.cancels == []
    page.browser.value("document.querySelector('dialog[open] button.danger').click()")
    page.says("is being cancelled")
    assert page.server.world.cancels == [LIVE]
    page.expect_calm("status of 400")  # of the scale that was refused


def a_lost_controller_is_said_and_found_again(page):
    page.sign_in()
    page.server.broken = True
    page.says("Disconnected since")
    page.shot("disconnected")
    page.server.broken = False
    found_again(page)  # by itself
    page.server.broken = True
    page.says("Disconnected since")
    page.browser.value("document.querySelector('#banner button').click()")  # in vain
    page.says("Disconnected since")
    page.server.broken = False
    found_again(page)


def found_again(page):
    page.browser.wait_for("document.getElementById('banner').hidden")
    page.browser.wait_for("document.getElementById('connection').textContent === 'live'")


def without_the_key_nothing_is_shown(page):
    page.browser.open(page.server.address + "/")
    page.says("tandem dashboard")
    page.shot("unauthorized")
    status = page.browser.value("fetch('/api/v1/jobs').then((answer) => answer.status)")
    assert status == 401, status


def an_empty_cluster_says_what_to_do(page):
    page.sign_in(ready="document.querySelector('.empty-title')")
    page.says("tandem submit")
    page.shot("empty")
    page.expect_calm()


TESTS = [plots_are_drawn_at_both_widths, a_live_run_asks_for_its_tail_alone,
         alerts_are_above_every_page_while_they_fire,
         zooming_asks_for_finer_buckets, runs_are_compared,
         runs_of_a_group_have_a_mean, runs_of_a_group_have_a_mean_for_each_configuration,
         a_phone_shows_what_a_run_is_called, every_tab_shows_hostile_text_as_text,
         an_actor_opens_with_its_log, a_run_with_prices_shows_its_cost,
         autoscale_shows_its_limits_and_its_newest_decision,
         what_is_predicted_stands_beside_what_is_measured,
         an_ended_run_keeps_its_plots_and_logs,
         events_are_marked_by_their_level_and_not_by_words, the_configuration_of_a_run_is_shown,
         a_plot_is_saved_as_csv_and_png, what_is_not_there_is_said,
         a_job_of_actors_alone_has_no_plots, the_warm_start_shows_how_far_it_is,
         a_run_is_scaled_and_cancelled,
         a_lost_controller_is_said_and_found_again, without_the_key_nothing_is_shown,
         an_empty_cluster_says_what_to_do]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if not shutil.which("chromium"):
        print("skipped: there is no chromium (scripts/setup --tests installs it)")
        sys.exit(77)
    folder = pathlib.Path(sys.argv[1])
    failed = 0
    for test in TESTS:
        if len(sys.argv) > 2 and test.__name__ not in sys.argv[2:]:
            continue
        try:
            with Page(folder, empty=test is an_empty_cluster_says_what_to_do) as page:
                test(page)
            print("ok", test.__name__, flush=True)
        except Exception as error:  # one test's fault is not the others'
            failed += 1
            line = traceback.extract_tb(error.__traceback__)[1]
            print(f"FAILED {test.__name__}: {type(error).__name__}: {error} "
                  f"(line {line.lineno}: {line.line})", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
