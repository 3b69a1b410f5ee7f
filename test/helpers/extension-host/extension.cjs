// The end-to-end tests' hand in the extension host: POST /eval {fn, args} runs `fn(vscode, ...args)`. Loopback, one port a host, and a token
// that only the test knows; each host leaves a record in the folder E2E_HOSTS, where the test finds the newest of its window.
const vscode = require('vscode');
const { createServer } = require('node:http');
const { mkdirSync, renameSync, rmSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');

exports.activate = (context) => {
  const dir = process.env.E2E_HOSTS,
    token = process.env.E2E_TOKEN;
  if (!dir || !token) return;
  const server = createServer((req, res) => {
    const answer = (code, body) =>
      res.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (req.headers.origin !== undefined || req.headers.authorization !== `Bearer ${token}`)
      return void answer(401, { error: 'no' });
    const chunks = [];
    req
      .on('data', (d) => chunks.push(d))
      .on('end', async () => {
        try {
          const { fn, args } = JSON.parse(Buffer.concat(chunks).toString());
          answer(200, { value: await (0, eval)(`(${fn})`)(vscode, ...args) });
        } catch (e) {
          answer(500, { error: String((e && e.stack) || e) });
        }
      });
  });
  server.listen(0, '127.0.0.1', () => {
    mkdirSync(dir, { recursive: true });
    const file = join(dir, `${process.pid}.json`),
      folders = (vscode.workspace.workspaceFolders || []).map((f) => f.uri.fsPath);
    writeFileSync(
      `${file}.tmp`,
      JSON.stringify({ pid: process.pid, port: server.address().port, folders, at: Date.now() }),
    );
    renameSync(`${file}.tmp`, file);
    context.subscriptions.push({
      dispose: () => {
        server.close();
        rmSync(file, { force: true });
      },
    });
  });
};
