import { parseRunFile } from '../../../runtime/config/index.js';
import { chooseProvider, specOf } from '../../../runtime/cluster/provide.js';

/** Chromium's processes that draw pages, on a desktop in Docker: how many are in a sandbox of the browser's own. */
export interface BrowserSandbox {
  readonly network: 'none' | 'internet';
  readonly renderers: number;
  /** Of these, in a process namespace of their own and behind more filters of system calls than the browser. */
  readonly sandboxed: number;
}

export async function browserSandbox(network: 'none' | 'internet'): Promise<BrowserSandbox> {
  const { desktops } = parseRunFile({}, { desktops: { image: 'osworld', provider: 'docker', network } }),
    provider = await chooseProvider(desktops);
  try {
    const d = await provider.create(specOf(desktops));
    await d.spawn(['google-chrome', 'about:blank']);
    const seen = await d.exec(['python3', '-c', RENDERERS], { timeoutMs: 60_000 });
    if (seen.code !== 0) throw new Error(`Chromium's processes are not seen: ${seen.stderr.toString('utf8')}`);
    return { network, ...(JSON.parse(seen.stdout.toString('utf8')) as Omit<BrowserSandbox, 'network'>) };
  } finally {
    await provider.dispose();
  }
}

/** Waits for a page of Chromium, and reads the state of all that draw one. */
const RENDERERS = `
import glob, json, time
def status(pid):
    return dict(l.rstrip('\\n').split(':\\t', 1) for l in open('/proc/%s/status' % pid) if ':\\t' in l)
def processes():
    for p in glob.glob('/proc/[0-9]*/cmdline'):
        try:
            words = open(p).read().replace('\\0', ' ')
            # Not this program, whose text names them too.
            if words.split(' ')[0].endswith('/chromium'):
                yield words, status(p.split('/')[2])
        except OSError:
            pass
filters = lambda s: int(s['Seccomp_filters'])
end = time.monotonic() + 20
while True:
    all = list(processes())
    drawn = [s for w, s in all if '--type=renderer' in w]
    browser = [s for w, s in all if '--type=' not in w]
    within = [s for s in drawn if len(s['NSpid'].split()) > len(browser[0]['NSpid'].split()) and filters(s) > filters(browser[0])] if browser else []
    # One that has just begun has not closed its sandbox yet.
    if drawn and len(within) == len(drawn) or time.monotonic() > end:
        break
    time.sleep(0.2)
print(json.dumps({'renderers': len(drawn), 'sandboxed': len(within)}))
`;
