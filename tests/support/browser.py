"""browser.py: Chromium, driven through chromedriver, for tests of what the program draws."""
import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request


def is_there():
    return shutil.which("chromedriver") is not None and shutil.which("chromium") is not None


class Browser:
    """As much of WebDriver as is needed here."""

    def __init__(self, folder, width=1240, height=560):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen([shutil.which("chromedriver"), f"--port={self.port}"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                self.ask("GET", "/status")
                break
            except OSError:
                time.sleep(0.05)
        options = {"args": ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}",
                            "--force-device-scale-factor=1", f"--user-data-dir={folder}"]}
        self.session = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})["sessionId"]

    def ask(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()[:1000]}") from None

    def do(self, path, body=None, method="POST"):
        return self.ask(method, f"/session/{self.session}{path}", body if method == "POST" else None)

    def script(self, text, *arguments):
        return self.do("/execute/sync", {"script": text, "args": list(arguments)})

    def element(self, selector):
        return next(iter(self.do("/element", {"using": "css selector", "value": selector}).values()))

    def open(self, address):
        self.do("/url", {"url": address})

    def address(self):
        return self.do("/url", method="GET")

    def keys(self, text):
        self.do("/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
            {"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]}]})

    def drag(self, start, end):
        """From one place of the window to another; to click, both are one."""
        move = {"type": "pointerMove", "duration": 0, "origin": "viewport"}
        self.do("/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {**move, "x": round(start[0]), "y": round(start[1])}, {"type": "pointerDown", "button": 0},
            {**move, "x": round((start[0] + end[0]) / 2), "y": round(end[1])}, {**move, "x": round(end[0]), "y": round(end[1])},
            {"type": "pointerUp", "button": 0}]}]})

    def click(self, selector):
        self.do(f"/element/{self.element(selector)}/click", {})

    def until(self, text, what):
        """Waits for a condition; a minute is for machines that are busy with something else."""
        for _ in range(1200):
            if self.script("return " + text):
                return
            time.sleep(0.05)
        raise AssertionError(f"{what}: never came true: {text}")

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.do("/screenshot", method="GET")))

    def messages(self):
        return [entry for entry in self.do("/se/log", {"type": "browser"}) if entry["level"] != "DEBUG"]

    def close(self):
        try:
            self.ask("DELETE", f"/session/{self.session}")
        finally:
            self.process.terminate()
            self.process.wait()
