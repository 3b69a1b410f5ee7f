import type { TaskContext } from '../context.js';
import { look } from './system.js';

/** Longest walk over the tree, ms; applications that answer slowly are left out when it ends. */
const WALK_MS = 20_000;

/**
 * Walks AT-SPI and prints OSWorld's XML: an element per widget, named by its role, with states, place, value and text.
 * At most 50 levels and 1,024 children of each; what an application does not answer is left out.
 */
const WALK = `
import sys, time
from xml.sax.saxutils import escape, quoteattr
import pyatspi
END = time.monotonic() + float(sys.argv[1])
NS = {p: 'https://accessibility.ubuntu.example.org/ns/' + n for p, n in dict(
  st='state', attr='attributes', cp='component', doc='document', docattr='document/attributes', txt='text', val='value', act='action').items()}
out = []
def clean(s):
    return ''.join(c for c in s if c in '\\t\\n\\r' or ' ' <= c <= '\\ud7ff' or '\\ue000' <= c)
def name_of(s, first=False):
    s = ''.join(c if c.isascii() and (c.isalnum() or c in '-_.') else '-' for c in s) or 'unknown'
    return s if s[0].isalpha() else 'x' + s
def walk(node, depth):
    if depth > 50 or time.monotonic() > END: return
    try:
        tag = name_of(node.getRoleName().replace(' ', '-'))
        a = {'name': node.name or ''}
        # Getters of OSWorld look for the browser by the name it has on its own machine.
        if depth == 1 and a['name'] == 'Chromium': a['name'] = 'Google Chrome'
        for s in node.getState().getStates():
            a['st:' + name_of(pyatspi.stateToString(s).replace(' ', '-'))] = 'true'
        for pair in node.getAttributes() or []:
            k, _, v = pair.partition(':')
            if k: a['attr:' + name_of(k)] = v
        try:
            c = node.queryComponent()
            a['cp:screencoord'] = str(tuple(c.getPosition(pyatspi.XY_SCREEN)))
            a['cp:size'] = str(tuple(c.getSize()))
        except NotImplementedError: pass
        try: a['val:value'] = str(node.queryValue().currentValue)
        except NotImplementedError: pass
        text = ''
        try:
            t = node.queryText()
            text = t.getText(0, min(t.characterCount, 100000)).replace('\\ufffc', '')
        except NotImplementedError: pass
        count = min(node.childCount, 1024)
    except Exception:
        return
    head = ''.join(' %s=%s' % (k, quoteattr(clean(v))) for k, v in a.items())
    if depth == 0: head += ''.join(' xmlns:%s=%s' % (p, quoteattr(u)) for p, u in NS.items())
    out.append('<%s%s>%s' % (tag, head, escape(clean(text))))
    for i in range(count):
        try: child = node.getChildAtIndex(i)
        except Exception: continue
        if child is not None: walk(child, depth + 1)
    out.append('</%s>' % tag)
walk(pyatspi.Registry.getDesktop(0), 0)
sys.stdout.write(''.join(out))
`;

/** OSWorld's XML of what is on the screen; null where the desktop has no accessibility bus. */
export async function accessibilityTree(ctx: TaskContext): Promise<string | null> {
  const r = await look(
    bounded(ctx, WALK_MS),
    ['python3', '-c', WALK, String(WALK_MS / 1000 - 2)],
    'that walks the accessibility tree',
    'applications',
  );
  return r.code === 0 && !r.timedOut ? r.stdout.toString('utf8') : null;
}

/**
 * The text of a gnome-terminal, which is what OSWorld reads; null where there is none. Clients also ask it to see
 * whether the desktop is up.
 */
export async function terminalText(ctx: TaskContext): Promise<string | null> {
  const r = await look(
    bounded(ctx, 15_000),
    ['/bin/sh', '-c', 'pgrep -f gnome-terminal-server >/dev/null && python3 -c "$1"', 'sh', TERMINAL],
    'that reads the terminal',
    'applications',
  );
  return r.code === 0 && !r.timedOut && r.stdout.length > 0 ? r.stdout.toString('utf8').trimEnd() : null;
}
const bounded = (ctx: TaskContext, commandMs: number): TaskContext => ({
  ...ctx,
  settings: { ...ctx.settings, commandMs },
});
const TERMINAL = `
import sys, pyatspi
for app in pyatspi.Registry.getDesktop(0):
    if app is not None and app.name == 'gnome-terminal-server':
        for frame in app:
            if frame is not None and frame.getState().contains(pyatspi.STATE_ACTIVE):
                found = pyatspi.findDescendant(frame, lambda n: n.getRoleName() == 'terminal' and n.getState().contains(pyatspi.STATE_SHOWING))
                if found is not None:
                    t = found.queryText()
                    sys.stdout.write(t.getText(0, min(t.characterCount, 200000)))
`;
