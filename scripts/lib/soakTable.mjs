// What the page of the soak says of memory in the recorded runs, from their files.

/** `runs`: [what it is called, the file]. A row a process; growth is a slope with two standard errors. */
export const soakTable = (runs, table) =>
  table(
    ['MB', 'mean', 'growth an hour', 'allowed', ''],
    runs.flatMap(([name, run]) =>
      run.bars
        .filter((b) => b.half !== undefined)
        .map((b) => {
          const process = /^memory of (.*), MB an hour$/.exec(b.name)[1],
            growth = Math.round(b.value);
          return [
            `${name}: ${process}`,
            Math.round(run.memory[process].mean_mb),
            `${growth > 0 ? '+' : ''}${growth} ± ${Math.round(b.half)}`,
            Math.round(b.goal),
            b.ok ? 'holds' : b.untold ? '**cannot be told**' : '**missed**',
          ];
        }),
    ),
  );
