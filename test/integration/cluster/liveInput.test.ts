import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDockerProvider } from '../../../runtime/cluster/providers/docker.js';
import type { Desktop, DesktopInput, DesktopProvider } from '../../../runtime/cluster/types.js';
import { localProvider, sh, SMALL, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { engineHere } from '../../helpers/cluster/engine.js';

const why = await whyNoLocalDesktops(),
  docker = await engineHere();

/** What an application sees of a person's events, on every way into a desktop. */
describe.each([
  ['local', why === undefined, () => localProvider()],
  ['docker, fast', docker !== undefined && process.getuid?.() === 0, () => createDockerProvider({ path: 'fast' })],
  ['docker, portable', docker !== undefined, () => createDockerProvider({ path: 'portable' })],
] as const)('live input: %s', (_name, there, make) => {
  let p: DesktopProvider,
    d: Desktop,
    skip = 0,
    xev = '';
  beforeAll(async () => {
    if (!there) return;
    p = make();
    d = await p.create(SMALL);
    await d.spawn(['sh', '-c', 'exec xev -geometry 400x200+50+50 > /tmp/xev.log 2>&1']);
    await sh(d, 'until grep -q MapNotify /tmp/xev.log 2>/dev/null; do sleep 0.02; done');
    await d.settle();
    await d.perform({ type: 'click', at: { x: 200, y: 150 } });
    await log();
  });
  afterAll(() => p?.dispose());
  async function log(): Promise<string[]> {
    await d.settle();
    const all = await d.readFile('/tmp/xev.log'),
      text = all.subarray(skip).toString();
    skip = all.length;
    xev = text;
    return text.split('\n\n').flatMap((e) => {
      const kind = /^(\w+) event/m.exec(e)?.[1]?.replace('Button', '').replace('Key', '');
      if (kind === 'Press' || kind === 'Release') {
        const b = /button (\d+)/.exec(e)?.[1];
        return [
          `${b ? `b${b}` : /keysym 0x[0-9a-f]+, ([^)]+)\)/.exec(e)![1]} ${kind} ${/state (0x[0-9a-f]+)/.exec(e)![1]}`,
        ];
      }
      return [];
    });
  }
  const send = async (...events: DesktopInput[]): Promise<string[]> => {
    await d.input!(events);
    return log();
  };
  const key = (k: string, down = true): DesktopInput => ({ type: 'key', key: k, down });

  it.skipIf(!there)('buttons and the wheel, at the nearest place on the screen', async () => {
    expect(
      await send(
        { type: 'move', x: 100, y: 150 },
        { type: 'button', x: 100, y: 150, button: 'left', down: true },
        { type: 'move', x: 130, y: 150 },
        { type: 'button', x: 130, y: 150, button: 'left', down: false },
      ),
    ).toEqual(['b1 Press 0x0', 'b1 Release 0x100']);
    expect(
      await send(
        { type: 'button', x: 100, y: 150, button: 'right', down: true },
        { type: 'button', x: 100, y: 150, button: 'right', down: true },
        { type: 'button', x: 100, y: 150, button: 'right', down: false },
        { type: 'button', x: 100, y: 150, button: 'right', down: false },
      ),
    ).toEqual(['b3 Press 0x0', 'b3 Release 0x400']);
    expect(await send({ type: 'wheel', x: 100, y: 150, dx: 1, dy: -2 }), xev).toEqual([
      'b4 Press 0x0',
      'b4 Release 0x800',
      'b4 Press 0x0',
      'b4 Release 0x800',
      'b7 Press 0x0',
      'b7 Release 0x0',
    ]);
    await d.input!([{ type: 'move', x: 1e5, y: NaN }]).then(
      () => {
        throw new Error('a place that is no number was taken');
      },
      (e: unknown) => {
        expect(e).toMatchObject({ error: { kind: 'policy.invalid' } });
      },
    );
    expect(await send({ type: 'move', x: 1e5, y: -7 }, { type: 'move', x: 200, y: 150 })).toEqual([]);
  });

  it.skipIf(!there)(
    'characters of any keyboard, keys with names, chords; modifiers stay down until they are let go',
    async () => {
      expect(await send(key('a'), key('a', false), key('Shift'), key('A'), key('Shift', false))).toEqual([
        'a Press 0x0',
        'a Release 0x0',
        'Shift_L Press 0x0',
        'A Press 0x1',
        'A Release 0x1',
        'Shift_L Release 0x1',
      ]);
      // Another layout: shifted there, not here, and the other way round.
      expect((await send(key('Shift'), key('/'), key('Shift', false))).filter((l) => l.startsWith('slash'))).toEqual([
        'slash Press 0x0',
        'slash Release 0x0',
      ]);
      expect((await send(key('?'))).filter((l) => l.startsWith('question'))).toEqual([
        'question Press 0x1',
        'question Release 0x1',
      ]);
      expect(await send(key('Control'), key('S'), key('Control', false))).toEqual([
        'Control_L Press 0x0',
        's Press 0x4',
        's Release 0x4',
        'Control_L Release 0x4',
      ]);
      expect(
        (await send(key('ArrowUp'), key('F5'), key('Shift'), key('Tab'), key('Shift', false))).map((l) =>
          l.replace(/ 0x.*/, ''),
        ),
      ).toEqual([
        'Up Press',
        'Up Release',
        'F5 Press',
        'F5 Release',
        'Shift_L Press',
        'ISO_Left_Tab Press',
        'ISO_Left_Tab Release',
        'Shift_L Release',
      ]);
      expect(
        (await send(key('日'), { type: 'text', text: 'ñ!' }, key('Nonsense'), key('CapsLock')))
          .filter((l) => l.includes('Press'))
          .map((l) => l.split(' ')[0]),
      ).toEqual(['U65E5', 'ntilde', 'Shift_L', 'exclam']);
    },
  );

  it.skipIf(!there)('everything that is down can be let go at once', async () => {
    await send(key('Control'), key('Shift'), { type: 'button', x: 100, y: 150, button: 'left', down: true });
    expect((await send({ type: 'release' })).map((l) => l.replace(/ 0x.*/, ''))).toEqual([
      'b1 Release',
      'Shift_L Release',
      'Control_L Release',
    ]);
    expect(await send({ type: 'release' })).toEqual([]);
  });

  it.skipIf(!there)('changes are told: what is drawn, and the pointer; and nothing when nothing is', async () => {
    const stop = new AbortController(),
      quiet = await d.changes!(stop.signal);
    let told = false;
    void quiet.drawn.then(() => {
      told = true;
    });
    await sh(d, 'sleep 0.3');
    expect(told).toBe(false);
    await d.input!([{ type: 'move', x: 5, y: 5 }]);
    await quiet.drawn;
    const next = await d.changes!(stop.signal);
    await d.spawn(['xterm', '-geometry', '20x5+400+250']);
    await next.drawn;
    await d.settle();
    const last = await d.changes!(stop.signal);
    stop.abort();
    await last.drawn;
  });
});
