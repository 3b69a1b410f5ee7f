"""Drives a served desktop with OSWorld's own controllers and with cua's transport, unmodified.

Usage: client.py HOST:SERVER:CHROMIUM:VNC:VLC RESULTS.json, the first as `desktop serve` prints it
"""

import asyncio
import importlib
import importlib.metadata
import io
import json
import os
import sys
import sysconfig
import tempfile
import time
import types


def stand_in(name):
    """A package whose __init__ is not run; its real submodules stay importable."""
    module = types.ModuleType(name)
    module.__path__ = [os.path.join(sysconfig.get_path("purelib"), *name.split("."))]
    sys.modules[name] = module


# The set-up controller imports one function of the evaluators, and with it all of their libraries.
stand_in("desktop_env.evaluators")
stand_in("desktop_env.evaluators.metrics")
sys.modules["desktop_env.evaluators.metrics.utils"] = types.SimpleNamespace(compare_urls=None)
stand_in("cua_sandbox")
stand_in("cua_sandbox.transport")

from desktop_env.controllers.python import PythonController  # noqa: E402
from desktop_env.controllers.setup import SetupController  # noqa: E402

(port, chromium, _, vlc), results = map(int, sys.argv[1].split(":")[1:]), sys.argv[2]
checks = []


def check(name, run):
    began = time.monotonic()
    try:
        detail = run()
        ok = True
    except Exception as e:  # noqa: BLE001
        detail, ok = f"{type(e).__name__}: {e}", False
    checks.append({"name": name, "ok": ok, "detail": str(detail or ""), "ms": round((time.monotonic() - began) * 1000)})
    print("ok  " if ok else "FAIL", name, checks[-1]["ms"], "ms", checks[-1]["detail"])


def expect(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r} instead of {wanted!r}")


home = tempfile.mkdtemp()
python = PythonController("localhost", port)
setup = SetupController("localhost", port, chromium, vlc, home)
has_browser = bool(python.execute_python_command("import shutil; print(shutil.which('google-chrome') or '')")["output"].strip())
document = "/home/user/Documents/fruit.txt"


def wait_for(text):
    end = time.monotonic() + 20
    while python.get_file(document) != text:
        if time.monotonic() > end:
            raise AssertionError(python.get_file(document))
        time.sleep(0.05)


def uploaded():
    local = os.path.join(home, "fruit.txt")
    with open(local, "w") as f:
        f.write("apple\n")
    setup._upload_file_setup([{"local_path": local, "path": document}])
    expect(python.get_file(document), b"apple\n")


def typed():
    python.execute_python_command(
        "pyautogui.hotkey('ctrl', 'End'); pyautogui.typewrite('lemon\\n', interval=0.01); pyautogui.hotkey('ctrl', 's')"
    )
    wait_for(b"apple\nlemon\n")


def all_actions():
    """Every action of OSWorld's computer_13 space."""
    for kind, parameters in [
        ("MOVE_TO", {"x": 100, "y": 100}),
        ("CLICK", {"button": "left", "x": 300, "y": 200, "num_clicks": 2}),
        ("MOUSE_DOWN", {"button": "left"}),
        ("MOUSE_UP", {"button": "left"}),
        ("RIGHT_CLICK", {"x": 300, "y": 200}),
        ("PRESS", {"key": "esc"}),
        ("DOUBLE_CLICK", {"x": 300, "y": 200}),
        ("DRAG_TO", {"x": 400, "y": 300}),
        ("SCROLL", {"dx": 0, "dy": -3}),
        ("TYPING", {"text": "ok < it's"}),
        ("PRESS", {"key": "enter"}),
        ("KEY_DOWN", {"key": "shift"}),
        ("KEY_UP", {"key": "shift"}),
        ("HOTKEY", {"keys": ["ctrl", "a"]}),
    ]:
        python.execute_action({"action_type": kind, "parameters": parameters})


def placed():
    python.execute_action({"action_type": "MOVE_TO", "parameters": {"x": 321, "y": 123}})
    got = python.execute_python_command("print(pyautogui.position()[0], pyautogui.position()[1])")
    expect(got["output"].split(), ["321", "123"])


def without_python():
    """The same click a hundred times: no Python is started for it."""
    began = time.monotonic()
    for i in range(100):
        python.execute_python_command(f"pyautogui.moveTo({i}, {i})")
    return f"{(time.monotonic() - began) * 10:.1f} ms an action"


def targets():
    import requests

    return {t["url"] for t in requests.get(f"http://localhost:{chromium}/json/list", timeout=5).json() if t["type"] == "page"}


def tabs():
    """Playwright follows the address that Chromium gives of itself, from outside."""
    setup._launch_setup(["google-chrome", "--remote-debugging-port=1337"])
    setup._launch_setup(["socat", "tcp-listen:9222,fork", "tcp:localhost:1337"])
    wanted = {"file:///home/user/Documents/", "chrome://version/"}
    setup._chrome_open_tabs_setup(["file:///home/user/Documents/", "chrome://version/"])
    if not wanted <= targets():
        raise AssertionError(targets())


def closed_tabs():
    setup._chrome_close_tabs_setup(["chrome://version/"])
    if "chrome://version/" in targets():
        raise AssertionError(targets())


def playing():
    import requests

    setup._launch_setup(["vlc"])
    end = time.monotonic() + 20
    while True:
        try:
            return expect(requests.get(f"http://localhost:{vlc}/requests/status.xml", auth=("", "password"), timeout=5).status_code, 200)
        except requests.ConnectionError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def wallpaper():
    local = os.path.join(home, "wall.png")
    with open(local, "wb") as f:
        f.write(python.get_screenshot())
    setup._upload_file_setup([{"local_path": local, "path": "/home/user/Pictures/wall.png"}])
    setup._change_wallpaper_setup("/home/user/Pictures/wall.png")
    expect(python.get_vm_wallpaper()[:4], b"\x89PNG")


async def cua():
    transport = importlib.import_module("cua_sandbox.transport.osworld").OSWorldTransport(f"http://localhost:{port}")
    await transport.connect()
    expect(await transport.get_screen_size(), {"width": 1280, "height": 720})
    from PIL import Image

    expect(Image.open(io.BytesIO(await transport.screenshot())).size, (1280, 720))
    ran = await transport.send("run_command", command="echo out; echo err >&2; exit 3")
    expect(ran, {"stdout": "out\n", "stderr": "err\n", "returncode": 3})
    expect((await transport.send("run_python", code="print(6 * 7)"))["output"], "42\n")
    await transport.disconnect()


check("screenshot", lambda: expect(python.get_screenshot()[:4], b"\x89PNG"))
check("screen size", lambda: expect(python.get_vm_screen_size(), {"width": 1280, "height": 720}))
check("platform", lambda: expect(python.get_vm_platform(), "Linux"))
check("upload and file", uploaded)
check("launch", lambda: setup._launch_setup(["mousepad", document]))
check("open", lambda: setup._open_setup(document))
check("activate window", lambda: setup._activate_window_setup("fruit.txt"))
check("typed with pyautogui, saved and read back", typed)
check("execute", lambda: setup._execute_setup(["bash", "-c", "echo hi > /tmp/x"]))
check("every action of computer_13", all_actions)
check("position after MOVE_TO, by a real pyautogui", placed)
check("100 actions", without_python)
check("run_python_script", lambda: expect(python.run_python_script("print(6*7)")["output"], "42\n"))
check("run_bash_script", lambda: expect(python.run_bash_script("echo out; exit 3")["returncode"], 3))
check("directory tree", lambda: expect(python.get_vm_directory_tree("/home/user/Documents")["name"], "Documents"))
check("window size", lambda: python.get_vm_window_size("mousepad")["width"] > 0)
check("desktop path", lambda: expect(python.get_vm_desktop_path(), "/home/user/Desktop"))
check("terminal", lambda: expect(python.get_terminal_output(), None))
check("accessibility tree", lambda: expect("<desktop-frame" in python.get_accessibility_tree(), True))
check("close window", lambda: setup._close_window_setup("fruit.txt"))
check("cua's OSWorldTransport", lambda: asyncio.run(cua()))
if has_browser:
    # The one function of the evaluators that the set-up controller takes: enough of it to tell these addresses apart.
    setup_module = sys.modules["desktop_env.controllers.setup"]
    setup_module.compare_urls = lambda a, b: a == b
    check("chrome_open_tabs, by playwright", tabs)
    check("chrome_close_tabs, by playwright", closed_tabs)
    check("VLC's web interface", playing)
    check("wallpaper set and read", wallpaper)

with open(results, "w") as f:
    versions = {n: importlib.metadata.version(n) for n in ("desktop-env", "cua-sandbox")}
    json.dump({**versions, "checks": checks}, f, indent=2)
    f.write("\n")
sys.exit(0 if all(c["ok"] for c in checks) else 1)
