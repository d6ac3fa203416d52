import type { CoreV1Api, KubeConfig, KubernetesObjectApi, V1Secret } from '@kubernetes/client-node';
import type { CustomHeader } from '#domain/webhooks/seal.ts';
import { describeConflicts, listConflicts, nullOn } from '../kube/client.ts';
import { ReconcileError } from '../kube/custom-resource.ts';
import { applyObject, buildOwnerReference } from '../kube/objects.ts';
import type { WebhookSubscription } from '../kube/resources.ts';
import { ObjectWatch } from '../kube/watch.ts';

/**
 * Label of every Secret that the operator publishes or reads for a webhook. Its value is the name of
 * the one subscription that may use it, so who labels a Secret decides that, and not who names it.
 */
export const secretLabel = 'orgapi.dev/webhook-subscription';
/**
 * Annotation of a Secret of custom headers: the scheme, host and port that may get its values. So
 * who may change a subscription, but no Secret, cannot send them anywhere else.
 */
export const originAnnotation = 'orgapi.dev/webhook-origin';
/** Id of the subscription that published a Secret. */
const ownerAnnotation = 'orgapi.dev/subscription-uid';
const signingKey = 'secret';

interface SecretsOptions {
  kubeConfig: KubeConfig;
  core: CoreV1Api;
  objects: KubernetesObjectApi;
  namespace: string;
  /** Called with the name of a Secret that appeared, went, or changed. */
  onChange: (name: string) => void;
  onListed: () => void;
  onError: (cause: unknown) => void;
}

/**
 * Keeps the labelled Secrets of a namespace in memory, so that comparing one takes no request, and
 * publishes signing secrets by server-side apply.
 */
export class Secrets {
  readonly #options: SecretsOptions;
  /** What this process applied and the watch has not shown yet. */
  readonly #applied = new Map<string, V1Secret>();
  readonly #watched: ObjectWatch;

  constructor(options: SecretsOptions) {
    this.#options = options;
    const { core, namespace } = options;
    this.#watched = new ObjectWatch({
      kubeConfig: options.kubeConfig,
      kind: { group: '', version: 'v1', kind: 'Secret', plural: 'secrets' },
      namespace,
      labelSelector: secretLabel,
      list: () => core.listNamespacedSecret({ namespace, labelSelector: secretLabel }),
      onChange: (name) => {
        this.#applied.delete(name);
        options.onChange(name);
      },
      onListed: options.onListed,
      onError: options.onError,
    });
  }

  start(): Promise<void> {
    return this.#watched.start();
  }

  stop(): Promise<void> {
    return this.#watched.stop();
  }

  /**
   * Returns the value that a subscription references; null when there is no such Secret or key, or
   * the Secret is not labelled for exactly this subscription.
   */
  findReferenced({ metadata, spec }: WebhookSubscription): string | null {
    const secret = this.#get(spec.secret.secretRef?.name ?? '');
    if (secret?.metadata?.labels?.[secretLabel] !== metadata.name) return null;
    return readValue(secret);
  }

  /**
   * Returns the custom headers that a subscription declares; `missing` and `elsewhere` as
   * `HeadersState` explains them.
   */
  findHeaders({ metadata, spec }: WebhookSubscription): CustomHeader[] | 'missing' | 'elsewhere' {
    if (spec.headersSecretRef === undefined) return [];
    const secret = this.#get(spec.headersSecretRef.name);
    if (secret?.metadata?.labels?.[secretLabel] !== metadata.name) return 'missing';
    const origin = URL.parse(secret.metadata.annotations?.[originAnnotation] ?? '')?.origin;
    if (origin === undefined || origin !== URL.parse(spec.url)?.origin) return 'elsewhere';
    return Object.keys(secret.data ?? {}).map((name) => ({ name, value: readValue(secret, name)?.trim() ?? '' }));
  }

  /** Returns what was published under this name; null when no Secret with the label has it. */
  findPublished(name: string) {
    const secret = this.#get(name);
    if (secret === undefined) return null;
    return {
      /** Name of the subscription that may use it. */
      labelledFor: secret.metadata?.labels?.[secretLabel],
      /** Id of the subscription that published it; null: none. */
      ownerUid: secret.metadata?.annotations?.[ownerAnnotation] ?? null,
      /** Whether it is deleted with its subscription. */
      hasOwnerReference: (secret.metadata?.ownerReferences ?? []).length > 0,
      value: readValue(secret),
    };
  }

  /**
   * Publishes the signing secret of a subscription. It is deleted with the subscription when that
   * deletes its webhook.
   *
   * @throws ReconcileError when the Secret is not of this subscription, or another manager owns
   * a field.
   */
  async publish(resource: WebhookSubscription, name: string, value: string): Promise<void> {
    await this.#assertOwn(resource, name);
    const { uid, name: subscription } = resource.metadata;
    const secret: V1Secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name,
        namespace: this.#options.namespace,
        labels: { [secretLabel]: subscription },
        annotations: { [ownerAnnotation]: uid },
        ...(resource.spec.reclaimPolicy === 'delete' ? { ownerReferences: [buildOwnerReference(resource)] } : {}),
      },
      type: 'Opaque',
      data: { [signingKey]: Buffer.from(value).toString('base64') },
    };
    try {
      this.#applied.set(name, await applyObject(this.#options.objects, secret));
    } catch (cause) {
      const conflicts = listConflicts(cause);
      if (conflicts.length === 0) throw cause;
      const message = `Secret ${name} is not published. ${describeConflicts(conflicts)}`;
      throw new ReconcileError('SecretConflict', message, { cause });
    }
  }

  #get(name: string): V1Secret | undefined {
    return this.#applied.get(name) ?? (this.#watched.get(name) as V1Secret | undefined);
  }

  /** A Secret without the label is not in memory, so it is read before the first apply. */
  async #assertOwn({ metadata: { uid } }: WebhookSubscription, name: string): Promise<void> {
    const { core, namespace } = this.#options;
    const secret = this.#get(name) ?? (await nullOn(404, core.readNamespacedSecret({ namespace, name })));
    if (secret === null || secret.metadata?.annotations?.[ownerAnnotation] === uid) return;
    throw new ReconcileError('SecretNotOwned', `A Secret ${name} exists and is not of this object.`);
  }
}

function readValue(secret: V1Secret, key = signingKey): string | null {
  const value = secret.data?.[key];
  return value === undefined ? null : Buffer.from(value, 'base64').toString('utf8');
}
