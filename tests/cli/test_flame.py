"""test_flame.py: a flame graph in a real browser: search, zoom, no errors. Skipped where there is no Chromium.

    test_flame.py TRACEALLOC [SCREENSHOT.png]
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import browser as chromium  # noqa: E402


DEEP = {"traces": [{"size": 100 * n, "domain": n % 3, "frames": [[f"leaf{n % 3}.c", 1], *[["deep.c", 5]] * n, ["main.c", 9]]}
                   for n in range(1, 7)]}
STATE = """return Array.from(document.querySelectorAll('g.view')).filter(v => v.style.display !== 'none')
    .flatMap(v => Array.from(v.querySelectorAll('g.f'))).filter(g => g.style.display !== 'none').map(g =>
    [g.querySelector('title').textContent.split('\\n')[0], +g.querySelector('rect').getAttribute('width'),
     g.classList.contains('hit'), g.classList.contains('above')])"""


def shown(browser):
    return {name: (width, hit, above) for name, width, hit, above in browser.script(STATE)}


def check(browser, address, screenshot):
    browser.open(address)
    assert browser.script("return document.documentElement.dataset.ready") == "1"
    everything = shown(browser)
    assert everything["all"][0] > 1190 and everything["main.c:85"][0] > 1100, everything
    assert abs(everything["server.c:26"][0] / everything["all"][0] - 300000 / 369656) < 0.01, everything

    browser.click("#search")
    browser.keys("server.c:(26|41)")
    found = shown(browser)
    assert {name for name, row in found.items() if row[1]} == {"server.c:26", "server.c:41"}, found
    assert browser.script("return document.getElementById('found').textContent") == "matched: 98.9 %"
    assert "search=" in browser.address()
    if screenshot:
        browser.screenshot(screenshot)

    target = "return Array.from(document.querySelectorAll('g.f')).find(g => g.querySelector('title').textContent.startsWith('server.c:41'))"
    browser.do(f"/element/{next(iter(browser.script(target).values()))}/click", {})
    zoomed = shown(browser)
    assert zoomed["server.c:41"][0] > 1190 and zoomed["main.c:85"][2] and "server.c:26" not in zoomed, zoomed
    address_now = browser.address()
    assert "zoom=" in address_now

    browser.open("about:blank")
    browser.open(address_now)
    assert shown(browser).keys() == zoomed.keys(), "the address keeps the view"
    browser.click("#reset text")
    assert shown(browser).keys() == everything.keys()
    assert browser.messages() == []


def check_views(browser, address):
    """Recursion is folded until a click; colours are modules or domains; the picture is as wide as the window."""
    browser.open(address)
    folded = shown(browser)
    assert set(folded) == {"all", "main.c:9", "deep.c:5 ×6", "leaf0.c:1", "leaf1.c:1", "leaf2.c:1"}, folded
    width = browser.script("return window.innerWidth")
    assert abs(folded["all"][0] - width) < 2, (folded, width)
    fills = "return Array.from(document.querySelectorAll('g.view:not([style*=none]) g.f rect')).map(r => r.getAttribute('fill'))"
    before = browser.script(fills)
    browser.click("#color text")
    assert browser.script(fills) != before
    assert browser.script("return document.getElementById('domains').style.display") == ""
    browser.click("#fold text")
    whole = browser.script(STATE)
    assert [name for name, *_ in whole].count("deep.c:5") == 6, whole
    now = browser.address()
    assert "view=1" in now and "color=domains" in now, now
    browser.do("/window/rect", {"width": 900, "height": 500})
    assert abs(shown(browser)["all"][0] - browser.script("return window.innerWidth")) < 20
    browser.do("/window/rect", {"width": 1240, "height": 560})


def main():
    tracealloc = os.path.abspath(sys.argv[1])
    if not chromium.is_there():
        print("no chromium and chromedriver here")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for name in ("new", "old"):
            subprocess.run([tracealloc, "import", f"{HERE}/{name}.json", "-o", f"{folder}/{name}.ta"], check=True)
        subprocess.run([tracealloc, "import", "-", "-o", f"{folder}/deep.ta"], check=True, input=json.dumps(DEEP).encode())
        subprocess.run([tracealloc, "flame", f"{folder}/deep.ta", "-o", f"{folder}/deep.svg"], check=True)
        subprocess.run([tracealloc, "flame", f"{folder}/new.ta", "-o", f"{folder}/new.svg"], check=True)
        subprocess.run([tracealloc, "flame", f"{folder}/new.ta", f"{folder}/old.ta", "-o", f"{folder}/diff.svg"], check=True)
        browser = chromium.Browser(f"{folder}/profile")
        try:
            check(browser, f"file://{folder}/new.svg", sys.argv[2] if len(sys.argv) > 2 else None)
            check_views(browser, f"file://{folder}/deep.svg")
            browser.open(f"file://{folder}/diff.svg")
            colors = dict(browser.script("return Array.from(document.querySelectorAll('g.f')).map(g => "
                                         "[g.querySelector('title').textContent.split('\\n')[0], g.querySelector('rect').getAttribute('fill')])"))
            assert browser.script("return document.getElementById('detail').textContent").startswith("red grew, blue shrank")
            assert colors["server.c:26"].startswith("hsl(6,") and colors["start.c:5"].startswith("hsl(214,"), colors
        finally:
            browser.close()
    print("search, zoom, folding, width, address and colours are as they should be; no messages on the console")
    return 0


if __name__ == "__main__":
    sys.exit(main())
