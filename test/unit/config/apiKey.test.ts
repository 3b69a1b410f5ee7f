import { describe, expect, it } from 'vitest';
import { apiKeyOf } from '../../../runtime/config/apiKey.js';

describe('API keys that a run file names', () => {
  const key = (name: string | undefined, env: Record<string, string>): string | undefined =>
    apiKeyOf('policy.vlm.apiKeyEnv', name, env);

  it('none is asked for, none is read', () => {
    expect(key(undefined, { DART_STUDIO_VLLM_KEY: 'k' })).toBeUndefined();
  });
  it('a variable of our own name, or one that is listed, is read', () => {
    expect(key('DART_STUDIO_VLLM_KEY', { DART_STUDIO_VLLM_KEY: 'k' })).toBe('k');
    expect(key('TINKER_API_KEY', { TINKER_API_KEY: 't', DART_STUDIO_API_KEYS: 'OPENAI_API_KEY, TINKER_API_KEY' })).toBe(
      't',
    );
  });
  it('any other variable of the machine stays here', () => {
    for (const name of ['AWS_SECRET_ACCESS_KEY', 'GITHUB_TOKEN', 'HOME', 'X_DART_STUDIO_A_KEY', 'OPENAI_API_KEY'])
      expect(() => key(name, { [name]: 'secret', DART_STUDIO_API_KEYS: 'OPENAI_API_KEY_2' })).toThrow(
        'not one of those that run files may name',
      );
  });
  it('one that is not set says so', () => {
    expect(() => key('DART_STUDIO_VLLM_KEY', {})).toThrow('is not set');
  });
});
