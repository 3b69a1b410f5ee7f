"""The part of pyautogui that a click needs, on python-xlib as pyautogui has it on Linux. Without pyautogui's other imports
(tkinter through mouseinfo, pyscreeze, pytweening) and without its pause of 0.1 s after every call, so cheaper than the real one."""
from Xlib import X, display
from Xlib.ext import xtest

_display = display.Display()


def click(x, y, button=1):
    xtest.fake_input(_display, X.MotionNotify, x=x, y=y)
    _display.sync()
    xtest.fake_input(_display, X.ButtonPress, button)
    _display.sync()
    xtest.fake_input(_display, X.ButtonRelease, button)
    _display.sync()
