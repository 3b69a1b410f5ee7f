export { cacheName, noAssets, openAssets, uuid5, type AssetStore } from './assets.js';
export { checkFolder, formatCheck, type CheckOptions } from './check.js';
export { createTaskEngine, type TaskEngineOptions } from './engine.js';
export { openFolder, type FolderSource, type FolderSourceOptions } from './folderSource.js';
export { DESK_IMAGE, type ImageContents } from './needs.js';
export { openTasks, type Tasks } from './open.js';
export { deskSuite } from './suites/desk/index.js';
export { loadTaskFile, parseTask } from './taskFile.js';
export type * from './types.js';
