export async function runIndexWorker(): Promise<void> { throw new Error('not built yet'); }
