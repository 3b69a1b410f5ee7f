import { describe, expect, it } from 'vitest';
import type { DaemonClient } from '../../../extension/daemon/client.js';
import * as methods from '../../../runtime/protocol/methods.js';
import { requests, type Method, type Result } from '../../../runtime/protocol/requests.js';
import type { ControlState, RunDetail, TrajectoryView } from '../../../runtime/protocol/types.js';
import { pageMethods, type PageKind, type PageMethod, type Requester } from '../../../webview/protocol.js';

/** Never called: the compiler reads it. A line below `@ts-expect-error` that compiles fails `npm run typecheck`. */
export async function wrongTypesDoNotCompile(
  host: Requester<PageMethod<'live'>>,
  client: DaemonClient,
): Promise<unknown[]> {
  const view: TrajectoryView = await host.request('trajectory/get', { run: '/r', rollout: 'x' }),
    state: ControlState = await host.request('control/attach', { session: 's' }),
    detail: RunDetail = await client.request(methods.getRun, { run: '/r' });
  // @ts-expect-error another method's result
  const wrong: RunDetail = await host.request('trajectory/get', { run: '/r', rollout: 'x' });
  // @ts-expect-error the daemon client's too
  const other: TrajectoryView = await client.request(methods.getRun, { run: '/r' });
  // @ts-expect-error a result that the caller asserts
  const asserted = await host.request<RunDetail>('trajectory/get', { run: '/r', rollout: 'x' });
  // @ts-expect-error a parameter is missing
  await host.request('trajectory/get', { run: '/r' });
  // @ts-expect-error not a method of this page
  await host.request('run/get', { run: '/r' });
  // @ts-expect-error not a method at all
  await client.call('run/none', {});
  // @ts-expect-error another notification's parameters
  client.on(methods.runsChanged, (p: { readonly stream: number }) => p.stream);
  return [view, state, detail, wrong, other, asserted];
}
/** A page method that the daemon does not have would make this `false`. */
const pageMethodsAreRequests: PageMethod extends Method ? true : false = true;
const drained: Result<'daemon/drain'> = { waitingFor: [], busy: true };

describe('the wire', () => {
  it('has one JSON-RPC type for each request, under its own name', () => {
    const typed = Object.values(methods)
      .filter((m) => m.constructor.name === 'RequestType')
      .map((m) => m.method);
    expect(typed.sort()).toEqual(Object.keys(requests).sort());
    expect(pageMethodsAreRequests && drained.busy).toBe(true);
  });
  it('says which of the requests of a page change something', () => {
    const writing = (kind: PageKind): string[] => pageMethods[kind].filter((m) => requests[m].writes);
    expect(writing('dashboard')).toEqual([]);
    expect(writing('compare')).toEqual([]);
    expect(writing('inspector')).toEqual([
      'annotation/edit',
      'annotation/undo',
      'annotation/redo',
      'annotation/replay',
      'pool/add',
    ]);
    expect(writing('live')).toEqual(pageMethods.live.filter((m) => m.startsWith('control/')));
  });
});
