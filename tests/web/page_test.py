#!/usr/bin/env python3
"""The web page in headless Chromium, on made data: usage: page_test.py SCREENSHOT_FOLDER [NAME…]

The page is that of actors/controller/web under the content policy that the controller sends, with
50 actors, 100,000 steps of history and texts that try to escape. Ends with 77 where there is no
chromium (scripts/setup --tests installs it). Figures (bytes, time to the first plot) are printed.
"""
import pathlib
import shutil
import sys
import threading
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import chromium  # noqa: E402
import fake_api  # noqa: E402

LIVE = fake_api.LIVE
PHONE, DESKTOP = (390, 844, True), (1280, 800, False)
PLOTTED = "document.documentElement.dataset.firstPlotMs"
ALL_PLOTTED = "document.documentElement.dataset.allPlotsMs"
ROWS = "document.querySelectorAll('tbody tr').length"


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
    page.browser.value("[...document.querySelectorAll('td input')].slice(0, 3)"
                       ".forEach((box) => box.click())")
    page.browser.value("document.querySelector('a.button').click()")
    page.browser.wait_for(f"{PLOTTED} && document.querySelectorAll("
                          "'[aria-label=Reward] .legend li').length === 3")
    assert "compare=" in page.browser.value("location.hash")
    page.browser.value("(() => { const slider = document.querySelector('input[type=range]'); "
                       "slider.value = 0.8; slider.dispatchEvent(new Event('input')); })()")
    page.browser.value("document.querySelector('[aria-label=Entropy] .log').click()")
    page.browser.wait_for("location.hash.includes('smooth=0.8') && "
                          "location.hash.includes('log=Entropy')")
    page.shot("compare-desktop")
    page.expect_calm()


def every_tab_shows_hostile_text_as_text(page):
    page.sign_in()
    for size, name in ((DESKTOP, "desktop"), (PHONE, "phone")):
        page.browser.size(*size)
        page.go("#/", f"{ROWS} === 5")
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
        page.go("#/cluster", f"{ROWS} === 50")
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


def an_ended_run_keeps_its_plots_and_logs(page):
    page.sign_in()
    page.go("#/runs/arithmetic-grpo-6", PLOTTED)
    page.browser.wait_for("document.querySelector('.controls').hidden")
    page.go("#/runs/arithmetic-grpo-6/actors", f"{ROWS} === 2")
    page.browser.value("document.querySelector('button.link').click()")
    page.browser.wait_for("document.querySelector('dialog[open] .log').textContent"
                          ".includes('info last line')")
    page.go("#/runs/arithmetic-grpo-6/waits", "document.querySelector('.empty-title')")
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
    page.browser.value("document.querySelector('#banner button').click()")
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
         zooming_asks_for_finer_buckets, runs_are_compared, every_tab_shows_hostile_text_as_text,
         an_actor_opens_with_its_log, an_ended_run_keeps_its_plots_and_logs,
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
