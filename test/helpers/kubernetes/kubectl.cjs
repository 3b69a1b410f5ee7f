/*
 * Stands in for kubectl in tests of Attach to Runtime: answers from `cluster.json` beside it, writes down what it was
 * asked in `asked.jsonl`, and forwards real connections. Whoever ends its process cuts them.
 */
const { appendFileSync, readFileSync } = require('node:fs'),
  { connect, createServer } = require('node:net'),
  { dirname, join } = require('node:path');

const here = dirname(__filename),
  asked = process.argv.slice(2),
  cluster = JSON.parse(readFileSync(join(here, 'cluster.json'), 'utf8')),
  [verb] = asked;
appendFileSync(join(here, 'asked.jsonl'), `${JSON.stringify({ pid: process.pid, asked })}\n`);
const fail = (words) => {
  process.stderr.write(`${words}\n`);
  process.exit(1);
};
if (cluster.fault) fail(cluster.fault);
const mustLive = (pod) => {
  if (!cluster.pods.includes(pod)) fail(`Error from server (NotFound): pods "${pod}" not found`);
};
if (verb === 'config') process.stdout.write(cluster.contexts.map((c) => `${c}\n`).join(''));
else if (verb === 'get')
  process.stdout.write(
    JSON.stringify({
      items: cluster.pods.map((name) => ({ metadata: { name, creationTimestamp: '2026-01-01T00:00:00Z' } })),
    }),
  );
else if (verb === 'exec') {
  mustLive(asked.find((a, i) => i > 0 && !a.startsWith('-')));
  try {
    process.stdout.write(readFileSync(join(cluster.storage, 'daemon.json')));
  } catch {
    fail(`cat: ${asked.at(-1)}: No such file or directory`);
  }
} else if (verb === 'port-forward') {
  mustLive(asked.find((a) => a.startsWith('pod/')).slice(4));
  const port = Number(asked.at(-1).slice(1));
  const server = createServer((socket) => {
    const there = connect(port, '127.0.0.1');
    for (const [from, to] of [
      [socket, there],
      [there, socket],
    ])
      from
        .on('error', () => to.destroy())
        .on('close', () => to.destroy())
        .pipe(to);
  });
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`Forwarding from 127.0.0.1:${server.address().port} -> ${port}\n`);
  });
} else fail(`error: unknown command "${verb}"`);
