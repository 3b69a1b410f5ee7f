/**
 * Model servers that answer as vLLM does, after the time that a model of 7 B takes. What is asked is read whole and counted;
 * what is answered was written beforehand: 60 tokens with 8 alternatives each.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { ANSWER_MS, between, type DrawnTime, type HarnessRequest } from './wire.js';

export interface Asked {
  requests: number;
  bytes: number;
  images: number;
}
/** Share of answers that end the episode: 20 steps on average. */
const ENDS = 1 / 20;
const TOKENS = 60,
  ALTERNATIVES = 8;
const IMAGE = Buffer.from('"data:image/png;base64,');

export function serveModels(o: {
  readonly drawn: DrawnTime;
  readonly draw: () => number;
  readonly asked: Asked;
  readonly hurry: HarnessRequest['hurry'];
  readonly slow: number;
}): Server {
  let first: number | undefined;
  const answerMs = (): number => {
    first ??= performance.now();
    return o.slow * between(o.draw, ANSWER_MS) * (performance.now() - first < o.hurry.ms ? o.hurry.factor : 1);
  };
  const answers = Array.from({ length: 64 }, () => answer(act(o.draw), o.draw)),
    ends = answer("Thought: The task is done.\nAction: finished(content='done')", o.draw);
  return createServer((req, res) => {
    read(req, (bytes, images) => {
      o.asked.requests++;
      o.asked.bytes += bytes;
      o.asked.images += images;
      o.drawn.wait(answerMs(), () => {
        const text = o.draw() < ENDS ? ends : answers[Math.floor(o.draw() * answers.length)]!;
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
        res.end(text);
      });
    });
  });
}

/** Bytes of a request and its images. A piece that is cut in two at a mark is counted with the next one. */
function read(req: IncomingMessage, done: (bytes: number, images: number) => void): void {
  let bytes = 0,
    images = 0,
    tail: Buffer = Buffer.alloc(0);
  req.on('data', (d: Buffer) => {
    bytes += d.length;
    const seam = Buffer.concat([tail, d.subarray(0, IMAGE.length - 1)]);
    if (seam.includes(IMAGE) && !tail.includes(IMAGE)) images++;
    for (let at = d.indexOf(IMAGE); at >= 0; at = d.indexOf(IMAGE, at + 1)) images++;
    tail = Buffer.from(d.subarray(Math.max(0, d.length - IMAGE.length + 1)));
  });
  req.on('end', () => done(bytes, images));
}

const act = (draw: () => number): string => {
  const x = Math.floor(100 + draw() * 1000),
    y = Math.floor(60 + draw() * 600);
  return `Thought: The next thing to press is the button beside the list, so I move there and click it once.\nAction: click(start_box='(${x},${y})')`;
};

/** Its text cut into tokens of equal length, each with a log-prob and alternatives. */
function answer(text: string, draw: () => number): Buffer {
  const size = Math.ceil(text.length / TOKENS);
  const content = Array.from({ length: Math.ceil(text.length / size) }, (_, i) => {
    const token = text.slice(i * size, (i + 1) * size);
    return {
      token,
      logprob: -draw() / 4,
      bytes: [...Buffer.from(token)],
      top_logprobs: Array.from({ length: ALTERNATIVES }, (_, k) => ({
        token: k === 0 ? token : `t${Math.floor(draw() * 1000)}`,
        logprob: k === 0 ? -0.1 : -3 - 6 * draw(),
        bytes: [116, 49, 50],
      })),
    };
  });
  return Buffer.from(
    JSON.stringify({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      model: 'scale@v0',
      choices: [
        { index: 0, message: { role: 'assistant', content: text }, logprobs: { content }, finish_reason: 'stop' },
      ],
      usage: { prompt_tokens: 6000, completion_tokens: content.length },
    }),
  );
}
