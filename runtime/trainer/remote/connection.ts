import { StudioError, toRunError } from '../../domain/index.js';
import { ignoreFailure } from '../../concurrency/failures.js';
import { withDeadline } from '../../concurrency/deadline.js';
import { TrainingClient, type ClientOptions, type ModelOptions, type RemoteModel } from './client.js';

/** Weights and optimizer on a server's disk, and those of the reference policy (null: the base model's). */
export interface Handle {
  readonly uri: string;
  readonly reference: string | null;
}
export interface ConnectionOptions {
  readonly server: ClientOptions;
  readonly model: ModelOptions;
  /** A second model is kept whose log-probs are the reference of the KL term. */
  readonly reference: boolean;
  /** The probe's `leaveModels`. */
  readonly leaveModels: boolean;
}
/** A model that is let go may take so long; its server drops it with the session otherwise. */
const UNLOAD_MS = 2000;

/**
 * A session with a fresh model of our own, from saved weights or the base. It is given up whole at the first failure:
 * what a call cut off has left behind (part of a gradient, a step nobody heard of) dies with its model.
 */
export class Connection {
  readonly client: TrainingClient;
  readonly model: RemoteModel;
  readonly reference: RemoteModel | undefined;
  readonly #leaveModels: boolean;
  private constructor(
    client: TrainingClient,
    model: RemoteModel,
    reference: RemoteModel | undefined,
    leaveModels: boolean,
  ) {
    this.client = client;
    this.model = model;
    this.reference = reference;
    this.#leaveModels = leaveModels;
  }

  static async open(o: ConnectionOptions, from: Handle | undefined, signal: AbortSignal): Promise<Connection> {
    const client = await TrainingClient.connect(o.server, signal),
      made: RemoteModel[] = [];
    try {
      const model = await client.createModel(o.model, signal);
      made.push(model);
      if (from) await model.load(from.uri, true, signal);
      const reference = o.reference ? await referenceModel(client, o.model, signal) : undefined;
      if (reference) made.push(reference);
      if (reference && from?.reference) await reference.load(from.reference, false, signal);
      return new Connection(client, model, reference, o.leaveModels);
    } catch (e) {
      letGo(client, made);
      throw e;
    }
  }

  /** Lets the models go, unless saved weights would go with them; does not wait for the server. */
  close(): void {
    const models = [this.model, this.reference].filter((m) => m !== undefined);
    letGo(
      this.client,
      models.filter((m) => !(this.#leaveModels && m.saved)),
    );
  }
}

/** Ends the session, and asks for these models to be unloaded. */
function letGo(client: TrainingClient, models: readonly RemoteModel[]): void {
  for (const { id } of models)
    ignoreFailure(
      withDeadline(UNLOAD_MS, [], (signal) => client.calls.json('unload_model', { model_id: id }, signal)),
      'a server that does not know the call drops the model with its session',
    );
  client.close();
}

async function referenceModel(client: TrainingClient, m: ModelOptions, signal: AbortSignal): Promise<RemoteModel> {
  try {
    return await client.createModel(m, signal);
  } catch (e) {
    const { kind, message } = toRunError(e);
    if (kind === 'cancelled' || kind === 'trainer.lost') throw e;
    throw new StudioError(
      'config.invalid',
      `trainer.klBeta needs log-probs of the reference policy, and the training server holds no second model: ${message}`,
      'Set trainer.klBeta to 0, or train on a server that holds two models.',
      { cause: e },
    );
  }
}
