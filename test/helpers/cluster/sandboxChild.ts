/**
 * `node child.js FD...`: starts a local desktop from a process that inherited these descriptors, and says which of them
 * the sandbox's PID 1 has open.
 */
import { createLocalProvider } from '../../../runtime/cluster/index.js';

const provider = createLocalProvider();
const desktop = await provider.create({ screen: { width: 640, height: 400 }, memoryMb: 512, pids: 128 });
const open: string[] = [];
for (const fd of process.argv.slice(2))
  await desktop.readFile(`/proc/self/fdinfo/${fd}`).then(
    () => open.push(fd),
    () => undefined,
  );
// What PID 1 may open, programs may try to.
const seen = (await desktop.exec(['sh', '-c', 'ls /proc/[0-9]*/fd/ 2>/dev/null | sort -un | tr "\\n" " "'])).stdout;
process.stdout.write(JSON.stringify({ open, seen: seen.toString().trim().split(/\s+/).map(Number) }));
await provider.dispose();
