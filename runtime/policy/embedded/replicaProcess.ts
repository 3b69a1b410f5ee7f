export async function runReplicaProcess(): Promise<void> { throw new Error('not built yet'); }
