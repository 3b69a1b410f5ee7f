/**
 * Fills `{0}`, `{1}` … of a message. Arguments are put in as they are: what they contain is not filled again; what is
 * missing is left to be seen. Pure.
 */
export const fill = (message: string, args: readonly (string | number)[]): string =>
  message.replace(/\{(\d+)\}/g, (placeholder, i: string) =>
    args[Number(i)] === undefined ? placeholder : String(args[Number(i)]),
  );
