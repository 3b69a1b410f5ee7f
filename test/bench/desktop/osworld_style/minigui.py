"""What a pyautogui click costs on Linux, without pyautogui (which Debian does not have): the same library for input (python-xlib),
the imports it makes on the way (Pillow through pyscreeze, the standard library) and its table of key codes, made at import.
Left out, so this is cheaper than the real one: tkinter (through mouseinfo and pymsgbox), pytweening, pyscreeze's `which scrot`
process, and the pause of 0.1 s after every call."""
import collections, contextlib, datetime, errno, functools, os, platform, re, subprocess, sys, time  # noqa: F401
from PIL import Image, ImageDraw, ImageOps  # noqa: F401
from Xlib import X, XK
from Xlib.display import Display
from Xlib.ext import xtest

_display = Display(os.environ['DISPLAY'])
KEYS = {name: _display.keysym_to_keycode(XK.string_to_keysym(name)) for name in
        ['BackSpace', 'Tab', 'Return', 'Shift_L', 'Control_L', 'Alt_L', 'Escape', 'space', 'Page_Up', 'Page_Down', 'End', 'Home', 'Left', 'Up', 'Right', 'Down', 'Delete']
        + ['F%d' % i for i in range(1, 25)] + ['KP_%d' % i for i in range(10)] + [chr(c) for c in range(97, 123)] + [chr(c) for c in range(65, 91)] + [str(i) for i in range(10)]}


def _move(x, y):
    xtest.fake_input(_display, X.MotionNotify, x=x, y=y)
    _display.sync()


def click(x, y, button=1):
    for event in (X.ButtonPress, X.ButtonRelease):
        _move(x, y)
        xtest.fake_input(_display, event, button)
        _display.sync()
