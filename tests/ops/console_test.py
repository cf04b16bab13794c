"""Goal: the console's page shows a pool as it is, in a real browser: all nodes, levels, keys and
findings; it follows a node that dies and comes back, and goes on while the whole pool is away,
without an error on the browser's console. It can be read: contrast in both themes, on a phone too.

Method: memory nodes, a database and `nacre-ctl console` as processes; Chromium without a screen,
driven by Selenium. Every condition is waited for, far longer than it takes.

usage: console_test.py FOLDER_OF_BINARIES [--screenshots=FOLDER] [TEST...]

Exit code 77: Chromium or Selenium are not installed, and nothing was tested.
"""

import base64
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

from live_pool import await_true, free_ports

try:
    from selenium import webdriver
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
except ImportError:
    webdriver = None

BINARIES = pathlib.Path()  # Set by main.
SCREENSHOTS = None  # Likewise: a folder for them.
SKIPPED = 77
NODES = 4
DATABASE = "db_bench"
PHONE = (390, 844)
DESKTOP = (1280, 900)
CONTRAST_MIN = 4.5
MISSING = [name for name, found in (
    ("chromium", shutil.which("chromium")), ("chromium-driver", shutil.which("chromedriver")),
    ("python3-selenium", webdriver)) if not found]

# Texts whose color is too near to what they stand on, as computed by the browser.
FAINT_TEXTS = """
const parse = (color) => {
  const part = color.match(/[\\d.]+/g).map(Number);
  return {r: part[0], g: part[1], b: part[2], a: part.length > 3 ? part[3] : 1};
};
const light = ({r, g, b}) => {
  const [x, y, z] = [r, g, b].map((c) => c / 255).map(
    (c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const ground = (node) => {
  for (; node; node = node.parentElement) {
    const color = parse(getComputedStyle(node).backgroundColor);
    if (color.a === 1) return color;
  }
  return {r: 255, g: 255, b: 255};
};
const faint = [];
let looked = 0;
for (const node of document.querySelectorAll('body *')) {
  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  if (!own || node.getClientRects().length === 0) continue;
  const style = getComputedStyle(node);
  const color = node.namespaceURI.endsWith('svg') ? style.fill : style.color;
  const [a, b] = [light(parse(color)), light(ground(node))].sort((x, y) => y - x);
  const contrast = (a + 0.05) / (b + 0.05);
  ++looked;
  if (contrast < arguments[0]) faint.push(`${node.tagName} ${node.textContent} ${contrast}`);
}
return {faint, looked};
"""


class Pool:
    """Memory nodes, an owner that fills a database and goes on, and a console."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.processes: list[subprocess.Popen] = []
        ports = free_ports(NODES)
        self.addresses = [f"tcp:127.0.0.1:{port}" for port in ports]
        self.uri = "tcp:" + ",".join(f"127.0.0.1:{port}" for port in ports)
        self.nodes: list[subprocess.Popen] = []

    def start(self, name: str, *arguments: str) -> subprocess.Popen:
        with open(self.folder / f"{name}.log", "ab") as output:
            process = subprocess.Popen([str(BINARIES / arguments[0]), *arguments[1:]],
                                       stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def log_of(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start_node(self, index: int) -> subprocess.Popen:
        return self.start(f"node{index}", "nacre-memnode", f"--listen={self.addresses[index]}",
                          "--size=64MiB", "--slab_size=1MiB", f"--domain=rack{index // 2}")

    def start_nodes(self) -> None:
        self.nodes = [self.start_node(i) for i in range(NODES)]
        for i in range(NODES):
            await_true(f"node {i} serves", lambda at=i: "ready:" in self.log_of(f"node{at}"),
                       self.nodes)

    def start_owner(self) -> subprocess.Popen:
        return self.start(
            "owner", "db_bench", f"--pool={self.uri}", "--redundancy=rep(2)", "--num=40000",
            "--value_size=400", "--write_buffer_size=1048576", "--target_file_size_base=1048576",
            "--max_bytes_for_level_base=4194304", "--readwrites=1000000000",
            "--target_ops_per_second=8000",
            "--benchmarks=fillrandom,waitforcompaction,readrandomwriterandom")

    def start_console(self, name: str, *arguments: str) -> str:
        """Its address, as the URL of the page."""
        process = self.start(name, "nacre-ctl", "console", f"--pool={self.uri}",
                             "--listen=127.0.0.1:0", *arguments)
        return await_true("the console is ready", lambda: re.search(
            r"ready: (\S+)", self.log_of(name)), [process]).group(1)

    def kill(self, process: subprocess.Popen) -> None:
        process.kill()
        process.wait()
        self.processes.remove(process)

    def close(self) -> None:
        for process in list(self.processes):
            self.kill(process)


def open_browser() -> "webdriver.Chrome":
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--hide-scrollbars", "--no-first-run", "--disable-background-networking"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)} (apt-get install chromium "
                          "chromium-driver python3-selenium)")
class ConsoleTest(unittest.TestCase):
    """The tests go on from one another, in the order of their names."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.pool = Pool(pathlib.Path(cls.folder.name))
        cls.addClassCleanup(cls.pool.close)
        cls.pool.start_nodes()
        cls.owner = cls.pool.start_owner()
        cls.url = cls.pool.start_console("console")
        cls.browser = open_browser()
        cls.addClassCleanup(cls.browser.quit)
        cls.resize(*DESKTOP)
        cls.theme("light")
        cls.browser.get(cls.url)

    def tearDown(self):
        errors = [entry["message"] for entry in self.browser.get_log("browser")
                  if entry["level"] == "SEVERE"]
        self.assertEqual(errors, [])

    @classmethod
    def resize(cls, width: int, height: int) -> None:
        cls.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})

    @classmethod
    def theme(cls, name: str) -> None:
        cls.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": name}]})

    def script(self, text: str, *arguments):
        return self.browser.execute_script(text, *arguments)

    def states(self) -> dict[str, str]:
        """What the page says of each node."""
        return self.script(
            "return Object.fromEntries([...document.querySelectorAll('[data-address]')]"
            ".map((card) => [card.dataset.address, card.dataset.state]))")

    def text(self, selector: str) -> str:
        """Of an element that may be replaced at any time."""
        return self.script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def await_states(self, what: str, *states: str) -> None:
        await_true(what, lambda: self.states() == dict(zip(self.pool.addresses, states)))

    def shoot(self, name: str) -> None:
        if SCREENSHOTS is None:
            return
        shot = self.browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    def test_01_all_nodes_are_shown_by_domain(self):
        self.await_states("all nodes are well", *["well"] * NODES)
        await_true("the state", lambda: self.text("#state") == "All nodes are well")
        headings = self.script("return [...document.querySelectorAll('.domain > h3')]"
                               ".map((heading) => heading.innerText)")
        self.assertEqual(headings, ["Domain rack0", "Domain rack1"])
        self.assertEqual(self.browser.title, "Nacre console")

    def test_02_the_database_has_levels_and_homes(self):
        card = f"[data-database={DATABASE}]"
        await_true("levels", lambda: re.search(r"L[0-9] .* in \d+ tables?", self.text(card)),
                   [self.owner])
        await_true("redundancy", lambda: "rep(2)" in self.text(card))
        await_true("homes", lambda: self.script(
            "return document.querySelectorAll('[data-address] .bar > span').length") >= NODES)

    def test_03_figures_over_time_are_drawn(self):
        await_true("lines", lambda: self.script(
            "return [...document.querySelectorAll('#charts path')]"
            ".filter((path) => (path.getAttribute('d').match(/L/g) ?? []).length > 2).length") >= 6)

    def test_04_the_doctor_finds(self):
        self.browser.find_element(By.ID, "examine").click()
        await_true("findings", lambda: "answers in" in self.text("#findings"))
        self.assertIn("slab size", self.text("#findings"))

    def test_05_keys_are_shown_page_by_page(self):
        await_true("the database can be chosen",
                   lambda: DATABASE in self.text("#key-database"))
        self.browser.find_element(By.CSS_SELECTOR, "#key-form button").click()
        rows = "return [...document.querySelectorAll('#key-table tbody tr')]" \
               ".map((row) => row.cells[0].innerText)"
        first = await_true("keys", lambda: self.script(rows))
        self.assertEqual(len(first), 50)
        self.assertEqual(first, sorted(first))
        self.browser.find_element(By.ID, "key-next").click()
        second = await_true("the next page", lambda: self.script(rows) != first and
                            self.script(rows))
        self.assertGreater(second[0], first[-1])
        # Exactly those with a prefix, here with all digits of a key.
        field = self.browser.find_element(By.ID, "key-prefix")
        field.send_keys(second[3])
        self.browser.find_element(By.CSS_SELECTOR, "#key-form button").click()
        await_true("one key", lambda: self.script(rows) == [second[3]])

    def test_06_texts_can_be_read_in_both_themes(self):
        for name in ("light", "dark"):
            self.theme(name)
            result = self.script(FAINT_TEXTS, CONTRAST_MIN)
            self.assertEqual(result["faint"], [], name)
            self.assertGreater(result["looked"], 50)
        # That it would find some.
        self.assertGreater(len(self.script(FAINT_TEXTS, 15)["faint"]), 5)
        self.theme("light")

    def test_07_it_fits_on_a_phone(self):
        self.resize(*PHONE)
        width = self.script("return [document.documentElement.scrollWidth, innerWidth]")
        self.assertLessEqual(width[0], width[1])
        self.assertEqual(width[1], PHONE[0])
        self.script("scrollTo(0, 0)")
        self.shoot("console-phone")
        self.resize(*DESKTOP)
        width = self.script("return [document.documentElement.scrollWidth, innerWidth]")
        self.assertLessEqual(width[0], width[1])

    def test_08_it_can_be_used_by_keyboard_and_read_out(self):
        unnamed = self.script("""
return [...document.querySelectorAll('button, input, select, [role=img], svg, [role=region]')]
  .filter((node) => !node.hidden && !(node.getAttribute('aria-label') || node.innerText ||
      node.labels?.[0]?.innerText)).map((node) => node.outerHTML)""")
        self.assertEqual(unnamed, [])
        self.assertEqual(self.script("return document.documentElement.lang"), "en")
        ids = self.script("return [...document.querySelectorAll('[id]')].map((node) => node.id)")
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(self.script("return document.querySelectorAll('h1').length"), 1)

    def test_09_pictures(self):
        if SCREENSHOTS is not None:
            await_true("enough to be seen", lambda: self.script(
                "return document.querySelector('#charts path').getAttribute('d')"
                ".match(/L/g).length") >= 40)
        self.resize(DESKTOP[0], 1700)
        self.script("scrollTo(0, 0)")
        self.shoot("console-light")
        self.theme("dark")
        self.shoot("console-dark")
        self.theme("light")
        self.resize(*DESKTOP)

    def test_10_a_node_that_dies_is_lost_until_it_is_back(self):
        self.pool.kill(self.pool.nodes[1])
        self.await_states("the node is lost", "well", "lost", "well", "well")
        self.assertEqual(self.text("#state"), f"1 of {NODES} nodes lost")
        self.assertIn(f"node {self.pool.addresses[1]}: down", self.text("#event-list"))
        self.pool.nodes[1] = self.pool.start_node(1)
        self.await_states("the node is back", *["well"] * NODES)
        await_true("an event of it", lambda: "has come back without what it held" in self.text(
            "#event-list"))

    def test_11_it_goes_on_while_the_pool_is_away(self):
        self.pool.kill(self.owner)
        for node in self.pool.nodes:
            self.pool.kill(node)
        self.await_states("all nodes are lost", *["lost"] * NODES)
        await_true("the state", lambda: self.text("#state").startswith("No node answers"))
        self.pool.start_nodes()
        self.await_states("all nodes are back", *["well"] * NODES)
        await_true("the state", lambda: self.text("#state") == "All nodes are well")
        self.assertIn("There are no databases.", self.text("#database-list"))

    def test_12_it_only_shows_unless_it_may_do_more(self):
        self.assertFalse(self.script("return document.querySelector('[data-order]') !== null"))
        self.assertFalse(self.browser.find_element(By.ID, "pause-repair").is_displayed())
        request = urllib.request.Request(f"{self.url}api/orders", data=b"order=pause-repair",
                                         headers={"X-Nacre-Console": "1"})
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=20)
        self.assertEqual(refused.exception.code, 403)
        refused.exception.close()

    def test_13_orders_are_given_after_a_question_and_with_a_token(self):
        token = self.pool.folder / "token"
        token.write_text("0123456789abcdef0123456789abcdef\n")
        token.chmod(0o600)
        url = self.pool.start_console("console-orders", f"--token_file={token}", "--allow-orders")
        self.browser.get(url)
        self.assertTrue(self.browser.current_url.endswith("/login"))
        self.assertEqual(self.script(FAINT_TEXTS, CONTRAST_MIN)["faint"], [])
        self.browser.find_element(By.ID, "token").send_keys(token.read_text().strip())
        self.browser.find_element(By.CSS_SELECTOR, "button").click()
        self.await_states("all nodes are shown", *["well"] * NODES)
        node = self.pool.addresses[2]

        def press(order: str) -> bool:
            try:
                self.browser.find_element(
                    By.CSS_SELECTOR, f'[data-node="{node}"][data-order={order}]').click()
            except StaleElementReferenceException:  # A new sample took its place.
                return False
            return True
        await_true("the drain is asked for", lambda: press("drain"))
        self.assertEqual(self.text("#confirm-text"), f"Have all data leave {node}?")
        self.browser.find_element(By.ID, "confirm-yes").click()
        self.await_states("the node drains", "well", "well", "draining", "well")
        await_true("the drain is taken back", lambda: press("undrain"))
        self.browser.find_element(By.ID, "confirm-yes").click()
        self.await_states("the node drains no more", *["well"] * NODES)
        self.browser.find_element(By.ID, "pause-repair").click()
        self.browser.find_element(By.ID, "confirm-yes").click()
        await_true("repair is paused", lambda: "paused by an order" in self.text("#summary"))
        status = subprocess.run([str(BINARIES / "nacre-ctl"), "status", f"--pool={self.pool.uri}",
                                 "--json"], capture_output=True, text=True, timeout=60, check=True)
        self.assertTrue(json.loads(status.stdout)["repair_paused"])


def main() -> int:
    global BINARIES, SCREENSHOTS
    arguments = sys.argv[1:]
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    BINARIES = pathlib.Path(arguments.pop(0)).resolve()
    for argument in [each for each in arguments if each.startswith("--screenshots=")]:
        SCREENSHOTS = pathlib.Path(argument.partition("=")[2])
        arguments.remove(argument)
    program = unittest.main(argv=[sys.argv[0], *arguments], verbosity=2, exit=False)
    if not program.result.wasSuccessful():
        return 1
    return SKIPPED if program.result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
