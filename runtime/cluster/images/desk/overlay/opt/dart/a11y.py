#!/usr/bin/python3
"""What is on the screen, for task oracles: one JSON array on stdout, one object per showing widget of every application,
{"app", "window", "role", "name", "text", "states", "box": [x, y, w, h]} in screen pixels. Needs a desktop started with a11y.

`a11y.py [APP ...]` looks only at applications whose name contains one of the words.
"""
import json, sys
import gi
gi.require_version('Atspi', '2.0')
from gi.repository import Atspi, GLib

SHOWING = Atspi.StateType.SHOWING
STATES = {'focused': Atspi.StateType.FOCUSED, 'checked': Atspi.StateType.CHECKED, 'selected': Atspi.StateType.SELECTED,
          'sensitive': Atspi.StateType.SENSITIVE, 'active': Atspi.StateType.ACTIVE, 'expanded': Atspi.StateType.EXPANDED}
TEXTS = {'text', 'entry', 'password text', 'spin button', 'terminal'}
MOST_CHILDREN, MOST_DEPTH = 300, 40


def walk(node, app, window, depth, out):
    states = node.get_state_set()
    if not states.contains(SHOWING):
        return
    role = node.get_role_name()
    e = node.get_extents(Atspi.CoordType.SCREEN)
    if e.width > 0 and e.height > 0 and e.x > -10000:
        item = {'app': app, 'window': window, 'role': role, 'name': node.get_name() or '', 'box': [e.x, e.y, e.width, e.height],
                'states': [k for k, s in STATES.items() if states.contains(s)]}
        if role in TEXTS:
            try:
                item['text'] = Atspi.Text.get_text(node, 0, -1)
            except GLib.Error:
                pass
        out.append(item)
    if depth < MOST_DEPTH:
        for i in range(min(node.get_child_count(), MOST_CHILDREN)):
            child = node.get_child_at_index(i)
            if child is not None:
                walk(child, app, window, depth + 1, out)


def main(wanted):
    Atspi.init()
    out, root = [], Atspi.get_desktop(0)
    for i in range(root.get_child_count()):
        app = root.get_child_at_index(i)
        try:  # an application may end while we look
            name = app.get_name() or ''
            if wanted and not any(w in name for w in wanted):
                continue
            for j in range(app.get_child_count()):
                window = app.get_child_at_index(j)
                if window is not None:
                    walk(window, name, window.get_name() or '', 0, out)
        except (GLib.Error, AttributeError):
            continue
    json.dump(out, sys.stdout)


main(sys.argv[1:])
