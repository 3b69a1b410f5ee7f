import { afterEach, describe, expect, it } from 'vitest';
import { StudioError, id, type ReplicaId } from '../../../runtime/domain/index.js';
import { startEndpointReplica, type AdapterWeights } from '../../../runtime/policy/remote/endpointReplica.js';
import { ageingError, datedBy } from '../../../runtime/policy/remote/versions.js';
import type { ReferenceServer } from '../../helpers/engine/server.js';
import { closePolicies, servePolicy, trained } from '../../helpers/engine/trained.js';

afterEach(closePolicies);
const never = new AbortController().signal;
const vllm = [{ id: 'm', owned_by: 'vllm' }];

describe('the age of a model server', () => {
  it.each([
    ['0.10.1.1', 'older'],
    ['0.10.2rc1', 'spoken'],
    ['0.9', 'older'],
    ['v0.32.0.post1+cpu', 'spoken'],
    ['0.33.0', 'newer'],
    ['1', undefined],
    ['dev', undefined],
    // Built from sources without tags.
    ['0.1.dev1+g51ddd8e2', undefined],
    ['0.0.0.dev0', undefined],
    ['0.10.1.dev12+g51ddd8e2', 'older'],
  ])('%s is %s', (version, age) => {
    expect(datedBy({ version }, vllm)).toEqual({ server: 'vLLM', version, ...(age ? { age } : {}) });
  });
  it('is not known of others, or where nothing is said', () => {
    expect(datedBy({ version: '0.2.0' }, [{ owned_by: 'dart_engine' }])).toBeUndefined();
    for (const odd of [undefined, null, 7, [], {}, { version: 3 }]) expect(datedBy(odd, vllm)).toBeUndefined();
    expect(datedBy({ version: '0.32.0' }, [null, 3, {}, { owned_by: 'toString' }])).toBeUndefined();
  });
  it('is told of a newer one with what went wrong, and of no other', () => {
    const e = new StudioError('policy.remote', 'No.', 'Look.'),
      newer = ageingError(e, { server: 'SGLang', version: '0.6.0', age: 'newer' });
    expect(newer).toMatchObject({
      kind: 'policy.remote',
      message: expect.stringMatching(/^No\. .*it says that it is SGLang 0\.6\.0, newer than 0\.5\.23/) as string,
      error: { remedy: 'Look. Update DART Studio, or use SGLang 0.5.17 to 0.5.23.' },
    });
    expect(ageingError(e, { server: 'vLLM', version: '0.32.0', age: 'spoken' })).toBe(e);
    const lost = new StudioError('policy.lost', 'Away.', 'Look.');
    expect(ageingError(lost, { server: 'vLLM', version: '9.0.0', age: 'newer' })).toBe(lost);
  });
});

describe('a replica', () => {
  const start = (s: ReferenceServer, weights: AdapterWeights): Promise<unknown> =>
    startEndpointReplica({ id: id<ReplicaId>('e'), run: 'run', start: 'a', url: `${s.url}/v1`, weights }, never);

  it('of a server that is too old does not start, and loads nothing there', async () => {
    const s = await servePolicy({ vllm: '0.8.5' }),
      weights = await (await trained(s)).save(1);
    await expect(start(s, weights)).rejects.toMatchObject({
      kind: 'policy.remote',
      message: expect.stringContaining('it says that it is vLLM 0.8.5, and 0.10.2 is the first') as string,
    });
    expect(s.count('/load_lora_adapter')).toBe(0);
  });
  it('of a newer one that refuses an adapter says that it is newer', async () => {
    const s = await servePolicy({ vllm: '2.0.0' }),
      weights = await (await trained(s)).save(1);
    s.next('/load_lora_adapter', { status: 404, body: { detail: 'Not Found' } });
    await expect(start(s, weights)).rejects.toMatchObject({
      message: expect.stringContaining('it says that it is vLLM 2.0.0, newer than 0.32.0') as string,
    });
  });
});
