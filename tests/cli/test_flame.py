"""test_flame.py: a flame graph in a real browser: search, zoom, no errors. Skipped where there is no Chromium.

    test_flame.py TRACEALLOC [SCREENSHOT.png]
"""
import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))


class Browser:
    """As much of WebDriver as is needed here."""

    def __init__(self, driver, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen([driver, f"--port={self.port}"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                self.ask("GET", "/status")
                break
            except OSError:
                time.sleep(0.05)
        options = {"args": ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1240,560",
                            "--force-device-scale-factor=1", f"--user-data-dir={folder}"]}
        self.session = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})["sessionId"]

    def ask(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"},
                                         method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def do(self, path, body=None, method="POST"):
        return self.ask(method, f"/session/{self.session}{path}", body if method == "POST" else None)

    def script(self, text, *arguments):
        return self.do("/execute/sync", {"script": text, "args": list(arguments)})

    def element(self, selector):
        return next(iter(self.do("/element", {"using": "css selector", "value": selector}).values()))

    def close(self):
        try:
            self.ask("DELETE", f"/session/{self.session}")
        finally:
            self.process.terminate()
            self.process.wait()


STATE = """return Array.from(document.querySelectorAll('g.f')).filter(g => g.style.display !== 'none').map(g =>
    [g.querySelector('title').textContent.split('\\n')[0], +g.querySelector('rect').getAttribute('width'),
     g.classList.contains('hit'), g.classList.contains('above')])"""


def shown(browser):
    return {name: (width, hit, above) for name, width, hit, above in browser.script(STATE)}


def check(browser, address, screenshot):
    browser.do("/url", {"url": address})
    assert browser.script("return document.documentElement.dataset.ready") == "1"
    everything = shown(browser)
    assert everything["all"][0] > 1190 and everything["main.c:85"][0] > 1100, everything
    assert abs(everything["server.c:26"][0] / everything["all"][0] - 300000 / 369656) < 0.01, everything

    browser.do(f"/element/{browser.element('#search')}/click", {})
    browser.do("/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
        {"type": kind, "value": key} for key in "server.c:(26|41)" for kind in ("keyDown", "keyUp")]}]})
    found = shown(browser)
    assert {name for name, row in found.items() if row[1]} == {"server.c:26", "server.c:41"}, found
    assert browser.script("return document.getElementById('found').textContent") == "matched: 98.9 %"
    assert "search=" in browser.do("/url", method="GET")
    if screenshot:
        with open(screenshot, "wb") as file:
            file.write(base64.b64decode(browser.do("/screenshot", method="GET")))

    target = "return Array.from(document.querySelectorAll('g.f')).find(g => g.querySelector('title').textContent.startsWith('server.c:41'))"
    browser.do(f"/element/{next(iter(browser.script(target).values()))}/click", {})
    zoomed = shown(browser)
    assert zoomed["server.c:41"][0] > 1190 and zoomed["main.c:85"][2] and "server.c:26" not in zoomed, zoomed
    address_now = browser.do("/url", method="GET")
    assert "zoom=" in address_now

    browser.do("/url", {"url": "about:blank"})
    browser.do("/url", {"url": address_now})
    assert shown(browser).keys() == zoomed.keys(), "the address keeps the view"
    browser.do(f"/element/{browser.element('#reset text')}/click", {})
    assert shown(browser).keys() == everything.keys()
    messages = [entry for entry in browser.do("/se/log", {"type": "browser"}) if entry["level"] != "DEBUG"]
    assert messages == [], messages


def main():
    tracealloc = os.path.abspath(sys.argv[1])
    driver = shutil.which("chromedriver")
    if driver is None or shutil.which("chromium") is None:
        print("no chromium and chromedriver here")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for name in ("new", "old"):
            subprocess.run([tracealloc, "import", f"{HERE}/{name}.json", "-o", f"{folder}/{name}.ta"], check=True)
        subprocess.run([tracealloc, "flame", f"{folder}/new.ta", "-o", f"{folder}/new.svg"], check=True)
        subprocess.run([tracealloc, "flame", f"{folder}/new.ta", f"{folder}/old.ta", "-o", f"{folder}/diff.svg"], check=True)
        browser = Browser(driver, f"{folder}/profile")
        try:
            check(browser, f"file://{folder}/new.svg", sys.argv[2] if len(sys.argv) > 2 else None)
            browser.do("/url", {"url": f"file://{folder}/diff.svg"})
            colors = dict(browser.script("return Array.from(document.querySelectorAll('g.f')).map(g => "
                                         "[g.querySelector('title').textContent.split('\\n')[0], g.querySelector('rect').getAttribute('fill')])"))
            assert browser.script("return document.getElementById('detail').textContent").startswith("red grew, blue shrank")
            assert colors["server.c:26"].startswith("hsl(6,") and colors["start.c:5"].startswith("hsl(214,"), colors
        finally:
            browser.close()
    print("search, zoom, address and colours are as they should be; no messages on the console")
    return 0


if __name__ == "__main__":
    sys.exit(main())
