import { jsonReply, type Reply } from '../http.js';
import type { TaskContext } from '../../tasks/context.js';

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

/** GET /accessibility. Desktops have an accessibility bus only where they were started with one. */
export async function accessibility(ctx: TaskContext): Promise<Reply> {
  const r = await ctx.desktop.exec(['python3', '-c', WALK, String(WALK_MS / 1000 - 2)], {
    timeoutMs: WALK_MS,
    signal: ctx.signal,
  });
  return r.code === 0 && !r.timedOut
    ? jsonReply({ AT: r.stdout.toString('utf8') })
    : jsonReply(
        {
          status: 'error',
          message:
            'This desktop has no accessibility tree. Serve desktops with --accessibility, on an image with AT-SPI.',
        },
        500,
      );
}
