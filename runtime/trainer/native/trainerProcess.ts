export async function runTrainerProcess(): Promise<void> { throw new Error('not built yet'); }
