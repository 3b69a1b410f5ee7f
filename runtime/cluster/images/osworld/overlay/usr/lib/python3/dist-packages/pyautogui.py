# A stand-in for pyautogui over xdotool: what OSWorld's task files use of it.
import subprocess, time
FAILSAFE = False
PAUSE = 0.1
_KEYS = dict(enter='Return', esc='Escape', escape='Escape', tab='Tab', backspace='BackSpace', delete='Delete', insert='Insert', space='space',
             up='Up', down='Down', left='Left', right='Right', home='Home', end='End', pageup='Prior', pgup='Prior', pagedown='Next', pgdn='Next',
             ctrl='ctrl', ctrlleft='ctrl', ctrlright='ctrl', alt='alt', altleft='alt', altright='alt', shift='shift', shiftleft='shift', shiftright='shift',
             win='super', winleft='super', winright='super', command='super', capslock='Caps_Lock', printscreen='Print', menu='Menu', apps='Menu')
_KEYS.update({'return': 'Return', 'del': 'Delete', '\n': 'Return', '\t': 'Tab', ' ': 'space'})
_BUTTONS = dict(left='1', middle='2', right='3', primary='1', secondary='3')
def _run(*args):
    subprocess.run(['xdotool', *args], check=True)
    if PAUSE: time.sleep(PAUSE)
def _key(k):
    n = k.lower() if len(k) > 1 else k
    if n in _KEYS: return _KEYS[n]
    if n[:1] == 'f' and n[1:].isdigit(): return n.upper()
    return k if len(k) > 1 or k.isalnum() and k.isascii() else 'U%04X' % ord(k)
def _flat(keys):
    return [k for x in keys for k in (x if isinstance(x, (list, tuple)) else [x])]
def size():
    return tuple(int(n) for n in subprocess.check_output(['xdotool', 'getdisplaygeometry']).split())
def position():
    return tuple(int(p.split(b':')[1]) for p in subprocess.check_output(['xdotool', 'getmouselocation']).split()[:2])
def moveTo(x=None, y=None, duration=0.0, *a, **k):
    if isinstance(x, (list, tuple)): x, y = x
    here = position()
    _run('mousemove', str(int(here[0] if x is None else x)), str(int(here[1] if y is None else y)))
def click(x=None, y=None, clicks=1, interval=0.0, button='left', *a, **k):
    if x is not None or y is not None: moveTo(x, y)
    for _ in range(clicks):
        _run('click', _BUTTONS[button])
        if interval: time.sleep(interval)
def doubleClick(x=None, y=None, *a, **k):
    if x is not None or y is not None: moveTo(x, y)
    _run('click', '--repeat', '2', '--delay', '60', '1')
def rightClick(x=None, y=None, *a, **k): click(x, y, button='right')
def middleClick(x=None, y=None, *a, **k): click(x, y, button='middle')
def mouseDown(x=None, y=None, button='left', *a, **k):
    if x is not None or y is not None: moveTo(x, y)
    _run('mousedown', _BUTTONS[button])
def mouseUp(x=None, y=None, button='left', *a, **k):
    if x is not None or y is not None: moveTo(x, y)
    _run('mouseup', _BUTTONS[button])
def dragTo(x, y, duration=0.0, button='left', *a, **k):
    mouseDown(button=button); moveTo(x, y); mouseUp(button=button)
def scroll(clicks, x=None, y=None, *a, **k):
    if x is not None or y is not None: moveTo(x, y)
    if clicks: _run('click', '--repeat', str(abs(int(clicks))), '4' if clicks > 0 else '5')
vscroll = scroll
def hscroll(clicks, x=None, y=None, *a, **k):
    if clicks: _run('click', '--repeat', str(abs(int(clicks))), '7' if clicks > 0 else '6')
def keyDown(key, *a, **k): _run('keydown', _key(key))
def keyUp(key, *a, **k): _run('keyup', _key(key))
def press(keys, presses=1, interval=0.0, *a, **k):
    for _ in range(presses):
        for key in _flat([keys]):
            _run('key', _key(key))
            if interval: time.sleep(interval)
def hotkey(*keys, **k): _run('key', '+'.join(_key(x) for x in _flat(keys)))
def write(message, interval=0.0, *a, **k):
    if isinstance(message, (list, tuple)): return press(message, interval=interval)
    _run('type', '--clearmodifiers', '--delay', str(max(12, int(interval * 1000))), '--', message)
typewrite = write
sleep = time.sleep
def __getattr__(name):
    # How a move is spread over its time (easeInQuad, linear): moves take none here.
    if name == 'linear' or name.startswith('ease'): return None
    raise AttributeError(name)


# What programs of a policy use besides.
def onScreen(x, y=None):
    if isinstance(x, (list, tuple)): x, y = x
    width, height = size()
    return 0 <= x < width and 0 <= y < height
def moveRel(xOffset=0, yOffset=0, *a, **k):
    if isinstance(xOffset, (list, tuple)): xOffset, yOffset = xOffset
    x, y = position()
    moveTo(x + (xOffset or 0), y + (yOffset or 0))
move = moveRel
def dragRel(xOffset=0, yOffset=0, duration=0.0, button='left', *a, **k):
    x, y = position()
    dragTo(x + (xOffset or 0), y + (yOffset or 0), button=button)
drag = dragRel
def leftClick(x=None, y=None, *a, **k): click(x, y)
def tripleClick(x=None, y=None, *a, **k):
    if x is not None or y is not None: moveTo(x, y)
    _run('click', '--repeat', '3', '--delay', '60', '1')
def screenshot(imageFilename=None, region=None):
    from PIL import ImageGrab
    picture = ImageGrab.grab(xdisplay='')
    if region: picture = picture.crop((region[0], region[1], region[0] + region[2], region[1] + region[3]))
    if imageFilename: picture.save(imageFilename)
    return picture
