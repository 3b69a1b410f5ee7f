/** JSON schemas of what OpenEnv's clients send and get. */

const metadata = { type: 'object', title: 'Metadata', additionalProperties: true };

export const ACTION_SCHEMA = {
  title: 'DesktopAction',
  type: 'object',
  additionalProperties: false,
  required: ['action'],
  properties: {
    action: {
      type: 'string',
      title: 'Action',
      description:
        "What to do, in pixels of the screen, as UI-TARS writes it: click(start_box='(x,y)'), left_double(start_box='(x,y)'), right_single(start_box='(x,y)'), drag(start_box='(x1,y1)', end_box='(x2,y2)'), scroll(start_box='(x,y)', direction='down'), hotkey(key='ctrl c'), type(content='text\\n'), wait(), finished(content='') when the task is done, fail() when it cannot be done. Several in a row are separated by an empty line.",
    },
    metadata,
  },
} as const;

export const OBSERVATION_SCHEMA = {
  title: 'DesktopObservation',
  type: 'object',
  additionalProperties: false,
  required: ['instruction', 'task', 'width', 'height', 'step', 'steps_left'],
  properties: {
    instruction: { type: 'string', description: 'What is to be done.' },
    task: { type: 'string', description: 'Its id; `reset` with `task` begins it again.' },
    width: { type: 'integer', description: 'Size of the screen, in pixels.' },
    height: { type: 'integer' },
    step: { type: 'integer', description: 'Steps taken so far.' },
    steps_left: { type: 'integer', description: 'Steps until the episode ends by itself.' },
    picture: { type: 'string', description: 'The screen as a PNG in base64; absent where none was asked for.' },
    verdict: { type: 'string', enum: ['success', 'failure'], description: 'Once the episode is over.' },
    truncated: { type: 'boolean', description: 'Once the episode is over: whether its steps were used up.' },
    done: { type: 'boolean' },
    reward: { type: ['number', 'null'] },
    metadata,
  },
} as const;

export const STATE_SCHEMA = {
  title: 'DesktopState',
  type: 'object',
  additionalProperties: true,
  properties: {
    episode_id: { type: ['string', 'null'] },
    step_count: { type: 'integer' },
    task: { type: ['string', 'null'] },
    done: { type: 'boolean' },
  },
} as const;

const body = (schema: object): object => ({ required: true, content: { 'application/json': { schema } } });
const answer = (description: string, schema: object = { type: 'object' }): object => ({
  '200': { description, content: { 'application/json': { schema } } },
});

/** OpenAPI 3.1 of the routes. */
export const openApi = (name: string, description: string, version: string): object => ({
  openapi: '3.1.0',
  info: { title: name, description, version },
  paths: {
    '/health': { get: { summary: 'Whether it serves.', responses: answer('status: healthy') } },
    '/metadata': { get: { summary: 'Name and description.', responses: answer('The environment.') } },
    '/schema': { get: { summary: 'Schemas of action, observation and state.', responses: answer('The schemas.') } },
    '/reset': {
      post: {
        summary: 'Begins an episode of the session that all HTTP clients share; /ws gives each client its own session.',
        requestBody: body({ type: 'object', additionalProperties: true }),
        responses: answer('The first observation.', OBSERVATION_SCHEMA),
      },
    },
    '/step': {
      post: {
        summary: 'Acts in it.',
        requestBody: body({ type: 'object', required: ['action'], properties: { action: ACTION_SCHEMA } }),
        responses: answer('The next observation.', OBSERVATION_SCHEMA),
      },
    },
    '/state': { get: { summary: 'The state of the episode.', responses: answer('The state.', STATE_SCHEMA) } },
    '/mcp': { post: { summary: 'JSON-RPC 2.0; there are no tools.', responses: answer('A JSON-RPC answer.') } },
  },
});
