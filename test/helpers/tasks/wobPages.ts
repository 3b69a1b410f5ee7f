import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The part of MiniWoB++'s core/core.js that pages and we use, written for the tests. */
const CORE = `
var core = { EPISODE_MAX_TIME: 10000 };
var WOB_DONE_GLOBAL = false, WOB_RAW_REWARD_GLOBAL = 0, WOB_REWARD_REASON = null;
Math.seedrandom = (text) => {
  let state = [...text].reduce((h, c) => Math.imul(h ^ c.charCodeAt(0), 0x9e3779b1), 7);
  Math.random = () => {
    state = (state + 0x6d2b79f5) | 0;
    const mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
};
core.startEpisodeReal = () => {
  document.getElementById('reward-display').textContent = 'time left ' + core.EPISODE_MAX_TIME;
  genProblem();
  WOB_DONE_GLOBAL = false;
  WOB_RAW_REWARD_GLOBAL = 0;
};
core.endEpisode = (reward, timed, reason) => {
  WOB_DONE_GLOBAL = true;
  WOB_RAW_REWARD_GLOBAL = reward;
  WOB_REWARD_REASON = reason || null;
};
core.getUtterance = () => document.getElementById('query').textContent.trim();
`;
const page = (problem: string): string => `<!DOCTYPE html><html><head><script src="../core/core.js"></script>
<style>body { margin: 0; font: 14px sans-serif } #wrap { width: 160px; height: 210px } #query { height: 50px; background: #ffa }
#area button { display: block; width: 140px; height: 40px; margin: 8px }</style></head>
<body><div id="wrap"><div id="query"></div><div id="area"></div></div><div id="reward-display"></div>
<script>${problem}</script></body></html>`;

/** Two buttons in an order that the seed draws; the one asked for is worth 1, the other -1. */
const TWO_BUTTONS = page(`
function genProblem() {
  const names = ['Yes', 'No'].sort(() => Math.random() - 0.5), wanted = Math.random() < 0.5 ? 'Yes' : 'No';
  document.getElementById('query').textContent = 'Click on the "' + wanted + '" button.';
  const area = document.getElementById('area');
  area.textContent = '';
  for (const n of names) {
    const b = document.createElement('button');
    b.textContent = n;
    b.onclick = () => core.endEpisode(n === wanted ? 1 : -1);
    area.append(b);
  }
}`);
/** Its text field is focused; Enter is worth 0.5 where it says "hi". */
const TYPING = page(`
function genProblem() {
  document.getElementById('query').textContent = 'Type hi and press Enter.';
  document.getElementById('area').innerHTML = '<input id="t" autofocus>';
  const t = document.getElementById('t');
  t.focus();
  t.onkeydown = (e) => { if (e.key === 'Enter') core.endEpisode(t.value === 'hi' ? 0.5 : 0, true, 'typed ' + t.value); };
}`);

/** A folder laid out as MiniWoB++'s html. */
export async function writePages(dir: string, more: Readonly<Record<string, string>> = {}): Promise<string> {
  await mkdir(join(dir, 'core'), { recursive: true });
  await mkdir(join(dir, 'miniwob'), { recursive: true });
  await writeFile(join(dir, 'core', 'core.js'), CORE);
  const pages = { 'two-buttons': TWO_BUTTONS, typing: TYPING, ...more };
  for (const [name, html] of Object.entries(pages)) await writeFile(join(dir, 'miniwob', `${name}.html`), html);
  return dir;
}
/** A page whose script is wrong, one that never begins, and one that says nothing. */
export const BROKEN_PAGES = {
  'no-problem': page(''),
  'never-begins': page('function genProblem() { for (;;) {} }'),
  silent: page('function genProblem() {}'),
};
