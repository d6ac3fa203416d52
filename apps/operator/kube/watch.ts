import { setTimeout as sleep } from 'node:timers/promises';
import { type KubeConfig, Watch } from '@kubernetes/client-node';
import { backoffMs } from '#runtime/flow/backoff.ts';
import type { CustomResource, Metadata, ResourceKind } from './custom-resource.ts';

interface WatchOptions {
  kubeConfig: KubeConfig;
  /** Of group `''`: a core kind. */
  kind: ResourceKind;
  namespace: string;
  list: () => Promise<unknown>;
  labelSelector?: string;
  /** Called with the name of an added, deleted or changed object (spec or finalizers). */
  onChange: (name: string) => void;
  onListed: () => void;
  /** Of a list or watch that failed; both are repeated. */
  onError: (cause: unknown) => void;
}

/** After how long the objects are listed again. */
const relistMs = 300_000;
/** The first wait after a failure; each further one is twice as long. */
const firstRetryMs = 500;
const longestRetryMs = 30_000;

/**
 * Keeps the objects of one kind in memory: lists them, watches from there, and lists again after
 * each error and each `relistMs`. The library's `ListWatch` stops at most errors and never
 * lists again otherwise, so only its `Watch` is used. That one ends a connection that was silent
 * for 30 s; the next watch continues from the last version seen.
 *
 * `start` resolves after the first list, however long that takes. `stop` may be called twice.
 */
export class ObjectWatch {
  readonly #options: WatchOptions;
  readonly #watch: Watch;
  readonly #objects = new Map<string, CustomResource>();
  readonly #stopping = new AbortController();
  readonly #firstList = Promise.withResolvers<void>();
  #loop: Promise<void> | undefined;
  #resourceVersion = '';

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#watch = new Watch(options.kubeConfig);
  }

  get(name: string): CustomResource | undefined {
    return this.#objects.get(name);
  }

  list(): CustomResource[] {
    return [...this.#objects.values()];
  }

  async start(): Promise<void> {
    this.#loop ??= this.#run();
    await Promise.race([this.#firstList.promise, this.#loop]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let failures = 0;
    let listedAt = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      try {
        if (performance.now() - listedAt >= relistMs) {
          await this.#readList();
          listedAt = performance.now();
        }
        await this.#watchOnce();
        failures = 0;
      } catch (cause) {
        if (signal.aborted) return;
        listedAt = Number.NEGATIVE_INFINITY;
        failures += 1;
        this.#options.onError(cause);
      }
      const waitMs = backoffMs(firstRetryMs, longestRetryMs, failures - 1);
      await sleep(waitMs, undefined, { signal }).catch(() => {});
    }
  }

  async #readList(): Promise<void> {
    const { items, metadata } = (await this.#options.list()) as {
      items: CustomResource[];
      metadata: { resourceVersion: string };
    };
    const names = new Set(items.map((item) => item.metadata.name));
    for (const name of [...this.#objects.keys()].filter((known) => !names.has(known))) this.#apply(name, undefined);
    for (const item of items) this.#apply(item.metadata.name, item);
    this.#firstList.resolve();
    this.#options.onListed();
    this.#resourceVersion = metadata.resourceVersion;
  }

  /** Applies an object's state; undefined: it is gone. Only a change of it is reported. */
  #apply(name: string, object: CustomResource | undefined): void {
    const known = this.#objects.get(name);
    if (object === undefined) this.#objects.delete(name);
    else this.#objects.set(name, object);
    if (object === undefined || isChanged(known?.metadata, object.metadata)) this.#options.onChange(name);
  }

  /** Resolves when the watch has ended; rejects when it failed. */
  #watchOnce(): Promise<void> {
    const { kind, namespace, labelSelector } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const root = kind.group === '' ? '/api' : `/apis/${kind.group}`;
    const path = `${root}/${kind.version}/namespaces/${namespace}/${kind.plural}`;
    const query = {
      resourceVersion: this.#resourceVersion,
      allowWatchBookmarks: true,
      timeoutSeconds: Math.ceil(relistMs / 1_000),
      labelSelector,
    };
    const onEvent = (type: string, object: CustomResource) => {
      // Such as 410: the version is too old. The list that follows gives a new one.
      if (type === 'ERROR') return reject(new Error(`the API server ended a watch of ${kind.plural}`));
      this.#resourceVersion = object.metadata.resourceVersion;
      if (type !== 'BOOKMARK') this.#apply(object.metadata.name, type === 'DELETED' ? undefined : object);
    };
    const onEnd = (cause: unknown) => (cause == null || isSilence(cause) ? resolve() : reject(cause));
    const { signal } = this.#stopping;
    this.#watch.watch(path, query, onEvent, onEnd).then((connection) => {
      const abort = () => connection.abort();
      if (signal.aborted) abort();
      signal.addEventListener('abort', abort, { once: true });
      const disconnect = () => {
        signal.removeEventListener('abort', abort);
        abort();
      };
      promise.then(disconnect, disconnect);
    }, reject);
    return promise;
  }
}

/** A change of the status alone is the operator's own. */
function isChanged(before: Metadata | undefined, now: Metadata): boolean {
  return (
    before?.uid !== now.uid ||
    before.generation !== now.generation ||
    // Core kinds such as Secrets have no generation.
    (now.generation === undefined && before.resourceVersion !== now.resourceVersion) ||
    before.deletionTimestamp !== now.deletionTimestamp ||
    before.finalizers?.join() !== now.finalizers?.join()
  );
}

const isSilence = (cause: unknown): boolean => cause instanceof Error && cause.name === 'TimeoutError';
