import type { KubeConfig } from '@kubernetes/client-node';
import { runWithSignal } from '#runtime/flow/cancellation.ts';
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
export function createRunner(options: RunnerOptions) {
  const { controller, api, namespace, concurrency, onError } = options;
  const { group, version, plural } = controller.kind;
  let queue: WorkQueue | null = null;
  const objects = new ObjectWatch({
    kubeConfig: options.kubeConfig,
    kind: controller.kind,
    namespace,
    list: () => api.listNamespacedCustomObject({ group, version, plural, namespace }),
    onChange: (name) => {
      queue?.add(name);
      options.onChange?.();
    },
    onListed: options.onListed,
    onError: options.onWatchError,
  });

  async function work(name: string, signal: AbortSignal): Promise<void> {
    const resource = objects.get(name);
    if (resource === undefined) {
      queue?.drop(name);
      return controller.onGone?.();
    }
    // Only finalizers keep it; without one there is nothing left to do.
    if (resource.metadata.deletionTimestamp !== undefined && !resource.metadata.finalizers?.length) return;
    options.onPass();
    const hasActed = await runWithSignal(signal, () => reconcile(resource, signal, options));
    queue?.addAfter(name, hasActed ? 1_000 : controller.resyncMs);
  }

  return {
    get: (name: string) => objects.get(name),
    list: () => objects.list(),
    start: () => objects.start(),
    stop: () => objects.stop(),
    /** Has an object worked on soon, for example because something it depends on changed. */
    touch: (name: string): void => queue?.add(name),
    /**
     * Works on the objects until the signal is aborted, which ends a pass in the middle of a
     * statement or request. Resolves when the last pass has ended.
     */
    async lead(signal: AbortSignal): Promise<void> {
      const own = new WorkQueue({ run: work, concurrency, onError, longestRetryMs: controller.resyncMs });
      queue = own;
      for (const { metadata } of objects.list()) own.add(metadata.name);
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      await own.stop();
      queue = null;
    },
  };
}

export type Runner = ReturnType<typeof createRunner>;
