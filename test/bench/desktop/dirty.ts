import type { Desktop } from '../../../runtime/cluster/types.js';

/**
 * Leave traces on a desktop: files, a held Shift key, programs of several kinds, a moved pointer, another root cursor
 * position.
 */
export async function dirty(d: Desktop, i: number): Promise<void> {
  await d.writeFile(`/home/user/Documents/left-${i}.txt`, Buffer.from(`left by episode ${i}`));
  await d.writeFile('/home/user/.config/mousepad/Thunar/x', Buffer.from('x'));
  const programs = [
    ['xterm'],
    ['mousepad', `/home/user/Documents/left-${i}.txt`],
    ['galculator'],
    ['sh', '-c', 'sleep 1000 & exec yad --text=left'],
  ];
  await d.spawn(programs[i % programs.length]!);
  await d.settle({ maxMs: 3000 });
  await d.perform({ type: 'click', at: { x: 40 + ((i * 37) % 400), y: 60 + ((i * 53) % 250) } });
  await d.perform({ type: 'type', text: 'left' });
  await d.exec(['xdotool', 'keydown', 'shift']);
}
