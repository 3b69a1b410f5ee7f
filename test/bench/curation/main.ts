// npm run bench:curation [-- --quick] [-- --seeds 1,2,3,4] [-- --minutes 5] [-- --words 144] [-- --heldout 48] [-- --json
// FILE] [-- --out DIR] [-- --work DIR] [-- --provider docker] [-- --report] [-- --mix]: what each mechanism of curation and of
// the trainer does to success; goes on where it was stopped. --report: only the report of what is recorded in --out.
// --mix: goes on with a record of another plan or of other sources.
import { sessionArgs } from '../lib/session.js';
import { sorted } from './mechanisms.js';
import { curationSession } from './session.js';

const args = sessionArgs(),
  { quick } = args,
  { known, leftOut } = sorted(),
  minutes = Number(args.option('--minutes') ?? 5);
if (!(minutes >= 1)) throw new Error('--minutes: 1 or more, since the start and demonstrations take half of one');
await curationSession(
  {
    seeds: args.numbers('--seeds', quick ? [1] : [1, 2, 3, 4]),
    mechanisms: known,
    minutes,
    words: args.numbers('--words', [144])[0]!,
    heldout: args.numbers('--heldout', [48])[0]!,
    quick,
  },
  leftOut,
  args,
);
