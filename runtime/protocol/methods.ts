/**
 * The JSON-RPC types of every request (requests.ts) and notification (notifications.ts). Errors: JSON-RPC error with
 * `data: {kind, remedy}` (RunError without its message, which is the error's message); kinds are those of
 * domain/errors.ts and `DaemonErrorKind`.
 */
import { NotificationType, RequestType } from 'vscode-jsonrpc';
import type { ErrorData } from './errors.js';
import type { NotificationName, Notifications } from './notifications.js';
import type { Method, Params, Result } from './requests.js';

export type { DaemonErrorKind, ErrorData } from './errors.js';
export type { HelloParams, HelloResult, StartParams } from './requests.js';

/** A request's JSON-RPC type, which also knows its own name. */
export type Request<M extends Method> = RequestType<Params<M>, Result<M>, ErrorData> & { readonly method: M };
export type Notification<N extends NotificationName> = NotificationType<Notifications[N]> & { readonly method: N };
const request = <M extends Method>(method: M): Request<M> =>
  new RequestType<Params<M>, Result<M>, ErrorData>(method) as Request<M>;
const notification = <N extends NotificationName>(method: N): Notification<N> =>
  new NotificationType<Notifications[N]>(method) as Notification<N>;

// daemon, runs, trajectories, tasks, desktops, machine
export const hello = request('daemon/hello');
export const drain = request('daemon/drain');
export const shutdown = request('daemon/shutdown');
export const goingDown = notification('daemon/goingDown');
export const startRun = request('run/start');
export const resumeRun = request('run/resume');
export const stopRun = request('run/stop');
export const pauseRun = request('run/pause');
export const unpauseRun = request('run/unpause');
export const evaluate = request('run/evaluate');
export const evaluateProgress = notification('run/evaluateProgress');
export const listRuns = request('run/list');
export const getRun = request('run/get');
export const getFootprint = request('run/footprint');
export const getRunFile = request('run/file');
export const checkRun = request('run/check');
export const getSeries = request('run/series');
export const getCurves = request('run/curves');
export const getLanes = request('run/lanes');
export const getCuration = request('run/curation');
export const compareRuns = request('run/compare');
export const getFailures = request('run/failures');
export const runsChanged = notification('run/changed');
export const runStatus = notification('run/status');
export const runAlert = notification('run/alert');
export const runRecovered = notification('run/recovered');
export const listQueue = request('queue/list');
export const addToQueue = request('queue/add');
export const removeFromQueue = request('queue/remove');
export const moveInQueue = request('queue/move');
export const pauseQueue = request('queue/pause');
export const queueChanged = notification('queue/changed');
export const subscribe = request('events/subscribe');
export const unsubscribe = request('events/unsubscribe');
export const events = notification('events/batch');
export const listTrajectories = request('trajectory/list');
export const trajectoryColumns = request('trajectory/columns');
export const trajectoryFrames = request('trajectory/frames');
export const trajectoryStrips = request('trajectory/strips');
export const getTrajectory = request('trajectory/get');
export const getGroup = request('trajectory/group');
export const exportTrajectory = request('trajectory/export');
export const sharePage = request('share/page');
export const exportTable = request('run/exportTable');
export const thumbnails = request('frame/thumbnails');
export const pictures = request('frame/pictures');
export const listTasks = request('task/list');
export const listDesktops = request('desktop/list');
export const desktopChanged = notification('desktop/changed');
export const watchDesktop = request('desktop/watch');
export const unwatchDesktop = request('desktop/unwatch');
export const streamEnded = notification('desktop/streamEnded');
export const restartDesktop = request('desktop/restart');
export const listImages = request('desktop/images');
export const buildDesktop = request('desktop/build');
export const buildProgress = notification('desktop/buildProgress');
export const doctor = request('machine/doctor');
export const setAlerts = request('machine/alerts');
export const checkConfig = request('config/check');
export const template = request('config/template');
export const diagnostics = request('machine/diagnostics');

// demonstrations: control, annotations, pool, import and export
export const recordDemonstration = request('control/record');
export const takeOver = request('control/takeOver');
export const listControl = request('control/list');
export const attachControl = request('control/attach');
export const detachControl = request('control/detach');
export const controlInput = request('control/input');
export const controlAct = request('control/act');
export const dropStep = request('control/dropStep');
export const setControlMode = request('control/mode');
export const acceptProposal = request('control/accept');
export const finishControl = request('control/finish');
export const keepDemonstration = request('control/keep');
export const discardControl = request('control/discard');
export const tryPolicies = request('try/policies');
export const tryStart = request('try/start');
export const trySteps = request('try/steps');
export const tryStop = request('try/stop');
export const controlChanged = notification('control/changed');
export const getAnnotations = request('annotation/get');
export const editAnnotations = request('annotation/edit');
export const undoAnnotation = request('annotation/undo');
export const redoAnnotation = request('annotation/redo');
export const replayTrajectory = request('annotation/replay');
export const replayProgress = notification('annotation/replayProgress');
export const annotationChanged = notification('annotation/changed');
export const reviewQueue = request('review/queue');
export const listPool = request('pool/list');
export const setPool = request('pool/set');
export const addToPool = request('pool/add');
export const removeFromPool = request('pool/remove');
export const poolChanged = notification('pool/changed');
export const previewImport = request('interchange/preview');
export const importTrajectories = request('interchange/import');
export const exportTrajectories = request('interchange/export');
export const interchangeProgress = notification('interchange/progress');
