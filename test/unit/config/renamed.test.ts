import { describe, expect, it } from 'vitest';
import { jsonSchema, parseRunFile, RENAMED_OPTIONS, withNewNames } from '../../../runtime/config/index.js';

describe('options with a new name', () => {
  it('are still read by the old one, with a note that says what to write', () => {
    const notes: string[] = [];
    const c = parseRunFile({ curation: { probe: 4, planner: 'variance' } }, {}, (n) => notes.push(n));
    expect([c.curation.pilot, c.curation.planner]).toEqual([4, 'variance']);
    expect(c.curation).not.toHaveProperty('probe');
    expect(notes).toEqual([
      'curation.probe is deprecated: it is called curation.pilot now. Rename it in the run file.',
    ]);
  });
  it('hold by the new one where both stand', () => {
    const { content, notes } = withNewNames({ curation: { probe: 4, pilot: 2 } });
    expect(content).toEqual({ curation: { pilot: 2 } });
    expect(notes).toHaveLength(1);
  });
  it('leave a run file of today alone', () => {
    const notes: string[] = [];
    const file = { seed: 3, curation: { pilot: 2 }, trainer: {} };
    expect(withNewNames(file)).toEqual({ content: file, notes: [] });
    parseRunFile(file, {}, (n) => notes.push(n));
    expect(notes).toEqual([]);
  });
  it('are in the JSON schema as deprecated, so that an editor says what to write instead', () => {
    for (const { from, to } of RENAMED_OPTIONS) {
      const at = (path: string): Record<string, unknown> | undefined =>
        path
          .split('.')
          .reduce<Record<string, unknown> | undefined>(
            (s, k) => (s?.['properties'] as Record<string, Record<string, unknown>> | undefined)?.[k],
            jsonSchema(),
          );
      expect(at(from)).toMatchObject({ deprecated: true, deprecationMessage: expect.stringContaining(to) as string });
      expect(at(to)).toBeDefined();
      expect(at(to)).not.toHaveProperty('deprecated');
    }
  });
});
