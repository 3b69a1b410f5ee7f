/**
 * Commands to a page of MiniWoB++, in its own terms (html/core/core.js). As BrowserGym does, the time limit is put out
 * of reach, since it counts a policy's thinking, and reward and time are taken off the screen.
 */

/** BrowserGym's EPISODE_MAX_TIME, ms. */
const LIMIT_MS = 1_000_000;
const OFF = ['reward-display', 'click-canvas', 'sync-task-cover'];

/**
 * A new episode of the page that is open; its value is what to do. The text that says so is hidden and keeps its place,
 * so that the policy has it as its instruction alone.
 */
export const begin = (seed: number): string => `(() => {
  document.documentElement.style.display = '';
  Math.seedrandom(${JSON.stringify(String(seed))});
  core.EPISODE_MAX_TIME = ${LIMIT_MS};
  core.startEpisodeReal();
  for (const id of ${JSON.stringify(OFF)}) document.getElementById(id)?.style.setProperty('display', 'none', 'important');
  const said = core.getUtterance();
  document.getElementById('query')?.style.setProperty('visibility', 'hidden', 'important');
  return typeof said === 'string' ? said : said.utterance;
})()`;

/** How the episode stands: its raw reward is that before the share of time left is taken off. */
export const state = `({ done: WOB_DONE_GLOBAL === true, raw: WOB_RAW_REWARD_GLOBAL, reason: String(WOB_REWARD_REASON ?? '') })`;
