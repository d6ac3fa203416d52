import type { KubeConfig } from '@kubernetes/client-node';
import { runWithSignal } from '#runtime/flow/cancellation.ts';
import type { CustomResource } from '../kube/custom-resource.ts';
import { ObjectWatch } from '../kube/watch.ts';
import { type ReconcileOptions, reconcile } from './reconcile.ts';
import { WorkQueue } from './work-queue.ts';

interface RunnerOptions extends ReconcileOptions {
  kubeConfig: KubeConfig;
  namespace: string;
  /** Objects that are worked on at once. */
  concurrency: number;
  onListed: () => void;
  /** Called when an object appeared, changed or went. */
  onChange?: () => void;
  onWatchError: (cause: unknown) => void;
  onError: (name: string, cause: unknown, retryInMs: number) => void;
  onPass: () => void;
}

/** What the runners of every kind share. */
export type CommonRunnerOptions = Omit<RunnerOptions, 'controller' | 'api' | 'onChange'>;

/**
 * Runs a controller over the objects of its kind in a namespace. Every replica keeps the objects in
 * memory, so that a new leader starts at once; only a leader works on them.
 */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #objects: ObjectWatch;
  /** Null while another replica leads. */
  #queue: WorkQueue | null = null;

  constructor(options: RunnerOptions) {
    const { controller, api, kubeConfig, namespace } = options;
    const { group, version, plural } = controller.kind;
    this.#options = options;
    this.#objects = new ObjectWatch({
      kubeConfig,
      kind: controller.kind,
      namespace,
      list: () => api.listNamespacedCustomObject({ group, version, plural, namespace }),
      onChange: (name) => {
        this.#queue?.add(name);
        options.onChange?.();
      },
      onListed: options.onListed,
      onError: options.onWatchError,
    });
  }

  get(name: string): CustomResource | undefined {
    return this.#objects.get(name);
  }

  list(): CustomResource[] {
    return this.#objects.list();
  }

  start(): Promise<void> {
    return this.#objects.start();
  }

  stop(): Promise<void> {
    return this.#objects.stop();
  }

  /** Has an object worked on soon, for example because something it depends on changed. */
  touch(name: string): void {
    this.#queue?.add(name);
  }

  /**
   * Works on the objects until the signal is aborted, which ends a pass in the middle of a
   * statement or request. Resolves when the last pass has ended.
   */
  async lead(signal: AbortSignal): Promise<void> {
    const { controller, concurrency, onError } = this.#options;
    const queue = new WorkQueue({
      run: (name, ended) => this.#work(name, ended),
      concurrency,
      onError,
      longestRetryMs: controller.resyncMs,
    });
    this.#queue = queue;
    for (const { metadata } of this.#objects.list()) queue.add(metadata.name);
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await queue.stop();
    this.#queue = null;
  }

  async #work(name: string, signal: AbortSignal): Promise<void> {
    const { controller, onPass } = this.#options;
    const resource = this.#objects.get(name);
    if (resource === undefined) {
      this.#queue?.drop(name);
      return controller.onGone?.();
    }
    // Only finalizers keep it; without one there is nothing left to do.
    if (resource.metadata.deletionTimestamp !== undefined && !resource.metadata.finalizers?.length) return;
    onPass();
    const hasActed = await runWithSignal(signal, () => reconcile(resource, signal, this.#options));
    this.#queue?.addAfter(name, hasActed ? 1_000 : controller.resyncMs);
  }
}
