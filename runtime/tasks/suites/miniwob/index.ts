/** MiniWoB++, the user's own copy of it, on desktops of the image `web`. */
export { MiniwobEngine } from './engine.js';
export { isMiniwob, openPages, type Pages } from './pages.js';
export { MiniwobSource } from './source.js';
