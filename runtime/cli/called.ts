/** How this command line is called where it is not on PATH: `npm run -s cli --` from a checkout (scripts/cli.mjs). */
const called = process.env['DART_STUDIO_CALLED'];

/** A text with the commands in it as they can be typed here. Pure but for how this process was called. */
export const asCalled = (text: string, as = called): string =>
  as === undefined || as === '' ? text : text.replace(/(?<![\w./\\-])dart-studio (?=[a-z])/g, () => `${as} `);
