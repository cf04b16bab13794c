"""Goal: what is said of monitoring is so. docs/operations.md names all metrics that there are and
no others; each alert of ops/alerts.yml fires when it is to, has a test of its own and a remedy;
each panel of ops/grafana.json shows something.

Method: promtool, for the rules and their tests; then a pool that lives, with an owner, a follower
and an archive, whose pages are compared with the page of documentation, and a real Prometheus,
which is asked for each expression, and for the alerts before and after a node is killed.

usage: monitoring_test.py FOLDER_OF_BINARIES [TEST...]

Exit code 77: prometheus or promtool are not installed, and what needs them was skipped.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from live_pool import DATABASE, NODES, LivePool, await_true

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALERTS = ROOT / "ops" / "alerts.yml"
ALERT_TESTS = ROOT / "ops" / "alerts_test.yml"
DASHBOARD = ROOT / "ops" / "grafana.json"
PAGE = ROOT / "docs" / "operations.md"
BINARIES = pathlib.Path()  # Set by main.
SKIPPED = 77
METRIC = re.compile(r"\bnacre_[a-z0-9_]+")
# What a histogram has.
PARTS = re.compile(r"_(?:bucket|sum|count)$")
# Units that are no base units, and what is none of a name.
BAD_NAME = re.compile(r"nano|micro|milli|minutes|hours|percent|kib|mib|[A-Z]")


def needs(*programs: str):
    missing = [program for program in programs if shutil.which(program) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)} (apt-get install "
                                    "prometheus)")


def section(heading: str) -> str:
    """Of the page, down to the next heading of the same rank or a higher one."""
    text = PAGE.read_text()
    rank = heading.split(" ")[0]
    begin = text.index(f"\n{heading}\n") + 1
    end = re.compile(rf"(?m)^#{{2,{len(rank)}}} ").search(text, begin + len(heading))
    return text[begin:end.start() if end else None]


def documented_metrics() -> set[str]:
    """Those of the tables' first column."""
    names: set[str] = set()
    for line in section("### 10.1 Metrics").splitlines():
        if line.startswith("| `"):
            names |= set(METRIC.findall(line.split("|")[1]))
    return names


def alert_names(path: pathlib.Path, pattern: str) -> list[str]:
    return re.findall(pattern, path.read_text())


def panels() -> list[dict]:
    return json.loads(DASHBOARD.read_text())["panels"]


def expressions() -> list[str]:
    """Of the dashboard, as Grafana asks for them where everything is selected."""
    found = [target["expr"] for panel in panels() for target in panel.get("targets", ())]
    return [re.sub(r"\$(?:pool|database)\b", ".*", expression.replace("$__rate_interval", "30s"))
            for expression in found]


class PagesTest(unittest.TestCase):
    """What can be seen without running anything."""

    def test_each_alert_has_a_test_and_a_line_of_the_page(self):
        alerts = alert_names(ALERTS, r"- alert: (\w+)")
        self.assertGreater(len(alerts), 20)
        self.assertEqual(len(set(alerts)), len(alerts))
        self.assertEqual(alert_names(ALERT_TESTS, r"- name: (\w+)"), alerts)
        self.assertEqual(re.findall(r"(?m)^\| `(Nacre\w+)` \|", section("### 10.3 Alerts")), alerts)

    def test_each_alert_says_how_bad_it_is_and_what_to_do(self):
        headings = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
                    for heading in re.findall(r"(?m)^#+ (.*)$", PAGE.read_text())}
        for rule in ALERTS.read_text().split("- alert: ")[1:]:
            name = rule.split("\n")[0]
            self.assertRegex(rule, r"\n +severity: (critical|warning)\n", name)
            for annotation in ("summary", "description", "remedy"):
                self.assertRegex(rule, rf"\n +{annotation}: >-\n +\S", name)
            runbook = re.search(r"\n +runbook: docs/operations\.md#(\S+)", rule)
            self.assertIsNotNone(runbook, name)
            self.assertIn(runbook.group(1), headings, name)

    def test_alerts_and_dashboard_name_metrics_that_exist(self):
        known = documented_metrics()
        used = set(METRIC.findall(ALERTS.read_text()))
        for expression in expressions():
            used |= {PARTS.sub("", name) for name in METRIC.findall(expression)}
        self.assertGreater(len(used), 50)
        self.assertEqual(used - known, set())

    def test_panels_are_where_they_can_be_seen(self):
        taken: dict[tuple[int, int], str] = {}
        ids = [panel["id"] for panel in panels()]
        self.assertEqual(len(set(ids)), len(ids))
        for panel in panels():
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((x, y), taken, panel["title"])
                    taken[x, y] = panel["title"]
            for target in panel.get("targets", ()):
                self.assertEqual(target["datasource"]["uid"], "${datasource}", panel["title"])


@needs("promtool")
class RulesTest(unittest.TestCase):
    def promtool(self, *arguments: str, text: str = "") -> str:
        result = subprocess.run(["promtool", *arguments], input=text, capture_output=True,
                                text=True, timeout=120, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_rules_are_rules(self):
        self.assertIn(f"{len(alert_names(ALERTS, '- alert: '))} rules found",
                      self.promtool("check", "rules", str(ALERTS)))

    def test_each_alert_fires_when_it_is_to(self):
        self.promtool("test", "rules", str(ALERT_TESTS))

    def test_a_rule_that_does_not_fire_is_noticed(self):
        """That the tests of the rules can fail: each rule is made one that never holds."""
        with tempfile.TemporaryDirectory() as folder:
            for path in (ALERTS, ALERT_TESTS):
                shutil.copy(path, folder)
            rules = pathlib.Path(folder, ALERTS.name)
            rules.write_text(re.sub(r"(?m)^( +)expr: .*(?:\n\1  .*)*$", r"\1expr: vector(1) > 2",
                                    ALERTS.read_text()))
            result = subprocess.run(["promtool", "test", "rules", f"{folder}/{ALERT_TESTS.name}"],
                                    capture_output=True, text=True, timeout=120, check=False)
        self.assertNotEqual(result.returncode, 0)
        failed = re.findall(r'alertname=\\?"(\w+)', result.stdout + result.stderr)
        self.assertEqual(set(failed), set(alert_names(ALERTS, r"- alert: (\w+)")))


@needs("prometheus", "promtool")
class LivePoolTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.pool = LivePool(BINARIES, pathlib.Path(folder.name))
        cls.addClassCleanup(cls.pool.close)
        cls.pool.start_nodes()
        cls.pool.start_users()
        cls.pool.start_prometheus(ALERTS.read_text())

    def test_1_the_page_names_what_there_is(self):
        exported: dict[str, tuple[str, str]] = {}
        for page in self.pool.pages():
            self.assertNotEqual(page, "")
            helps = dict(re.findall(r"(?m)^# HELP (nacre_\w+) (.*)$", page))
            for name, kind in re.findall(r"(?m)^# TYPE (nacre_\w+) (\w+)$", page):
                exported[name] = (kind, helps[name])
        self.assertEqual(documented_metrics() - set(exported), set(), "not exported")
        self.assertEqual(set(exported) - documented_metrics(), set(), "not documented")
        for name, (kind, text) in exported.items():
            self.assertEqual(kind == "counter", name.endswith("_total"), f"{name}: {kind}")
            self.assertIsNone(BAD_NAME.search(name), name)
            self.assertRegex(text, r"^\S.*\.$", name)

    def test_2_promtool_finds_nothing_to_say(self):
        for page in self.pool.pages():
            ours = "".join(line + "\n" for line in page.splitlines()
                           if METRIC.match(line) or re.match(r"# \w+ nacre_", line))
            result = subprocess.run(["promtool", "check", "metrics"], input=ours, text=True,
                                    capture_output=True, timeout=60, check=False)
            self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ""))

    def test_3_all_targets_are_up(self):
        wanted = NODES + 3

        def states():
            targets = self.pool.ask("targets")["activeTargets"]
            return len([each for each in targets if each["health"] == "up"]) == wanted
        await_true("all targets are up", states)
        self.assertEqual(self.pool.query("count(up == 1)")[0]["value"][1], str(wanted))

    def test_4_each_panel_shows_something(self):
        for expression in expressions():
            if re.search(r" > 0$", expression):  # Empty where there is nothing of the kind.
                expression = expression.removesuffix(" > 0")
            await_true(f"data for {expression}", lambda asked=expression: self.pool.query(asked))

    def test_5_each_alert_can_be_evaluated_on_what_there_is(self):
        def all_evaluated() -> list[dict]:
            rules = [rule for group in self.pool.ask("rules")["groups"] for rule in group["rules"]]
            return rules if all(rule["health"] != "unknown" for rule in rules) else []
        rules = await_true("all rules are evaluated", all_evaluated)
        self.assertEqual(sorted(rule["name"] for rule in rules),
                         sorted(alert_names(ALERTS, r"- alert: (\w+)")))
        for rule in rules:
            self.assertEqual((rule["health"], rule.get("lastError", "")), ("ok", ""), rule["name"])
            for name in set(METRIC.findall(rule["query"])):
                self.assertTrue(self.pool.query(name), f"{rule['name']}: no {name}")

    def test_6_a_pool_that_is_well_is_quiet(self):
        # Others tell of a machine that is busy, which this one may be.
        for name in ("NacreNodeDown", "NacreNodeRestarted", "NacrePoolFull", "NacreOwnerDown",
                     "NacreWritesFail", "NacreOwnerFenced", "NacreDamageFound", "NacreDamageStays",
                     "NacreArchiveDown", "NacreArchiveWithoutBase", "NacreArchiveBaseOld",
                     "NacrePeersRefused", "NacreMalformedMessages", "NacreNodeConnections"):
            self.assertNotIn(name, self.pool.alerts())

    def test_7_a_node_that_is_killed_is_told_of_until_it_is_back(self):
        node, metrics = self.pool.nodes[0], self.pool.node_metrics[0]
        self.pool.node_processes[0].kill()
        self.pool.node_processes[0].wait()

        def firing(name: str, **labels: str) -> list[dict]:
            return [alert for alert in self.pool.alerts().get(name, ())
                    if alert["state"] == "firing" and labels.items() <= alert["labels"].items()]
        down = await_true("NacreNodeDown", lambda: firing("NacreNodeDown", instance=metrics))
        self.assertEqual(down[0]["annotations"]["summary"], f"{metrics} does not answer")
        for role in ("owner", "follower"):
            alert = await_true(f"the {role} misses the node", lambda of=role: firing(
                "NacreNodeUnreachable", node=node, role=of, database=DATABASE))[0]
            for text in alert["annotations"].values():
                self.assertNotRegex(text, "<error|<no value>|{{")
        self.assertFalse([alert for alert in firing("NacreNodeDown")
                          if alert["labels"]["instance"] != metrics])

        self.pool.node_processes[0] = self.pool.start_node(0)
        await_true("the node is back", lambda: not firing("NacreNodeDown", instance=metrics))
        await_true("NacreNodeRestarted", lambda: firing("NacreNodeRestarted", node=node))
        await_true("the owner reaches it", lambda: not firing(
            "NacreNodeUnreachable", node=node, role="owner"))


def main() -> int:
    global BINARIES
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    BINARIES = pathlib.Path(sys.argv[1]).resolve()
    program = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2, exit=False)
    if not program.result.wasSuccessful():
        return 1
    return SKIPPED if program.result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
