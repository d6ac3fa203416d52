import type { CoreV1Api, KubeConfig, KubernetesObjectApi, V1Secret } from '@kubernetes/client-node';
import { ReconcileFailed } from '../controller/contract.ts';
import { conflictsOf, describeConflicts } from '../kube/client.ts';
import { applyObject, ownerOf } from '../kube/objects.ts';
import { watchObjects } from '../kube/watch.ts';
import { nullOn } from '../null-on.ts';
import type { WebhookSubscription } from '../resources.ts';

/** Of every Secret that the operator publishes or reads for a webhook. */
const secretLabel = 'orgapi.dev/webhook-secret';
/** Id of the subscription that published a Secret. */
const ownerAnnotation = 'orgapi.dev/subscription-uid';
/** Key of a published Secret. */
const publishedKey = 'secret';

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
export function createSecrets(options: SecretsOptions) {
  const { core, objects, namespace, onChange } = options;
  // What this process applied and the watch has not shown yet.
  const applied = new Map<string, V1Secret>();
  const watched = watchObjects({
    kubeConfig: options.kubeConfig,
    kind: { group: '', version: 'v1', kind: 'Secret', plural: 'secrets' },
    namespace,
    labelSelector: secretLabel,
    list: () => core.listNamespacedSecret({ namespace, labelSelector: secretLabel }),
    onChange: (name) => {
      applied.delete(name);
      onChange(name);
    },
    onListed: options.onListed,
    onError: options.onError,
  });

  const get = (name: string): V1Secret | undefined => applied.get(name) ?? (watched.get(name) as V1Secret | undefined);

  return {
    start: watched.start,
    stop: watched.stop,

    /** Returns a labelled Secret; null when there is none of this name. */
    find(name: string, key = publishedKey) {
      const secret = get(name);
      if (secret === undefined) return null;
      const value = secret.data?.[key];
      return {
        /** The subscription that published it; null: none. */
        ownerUid: secret.metadata?.annotations?.[ownerAnnotation] ?? null,
        /** Whether it is deleted with its subscription. */
        hasOwnerReference: (secret.metadata?.ownerReferences ?? []).length > 0,
        value: value === undefined ? null : Buffer.from(value, 'base64').toString('utf8'),
      };
    },

    /**
     * Publishes the signing secret of a subscription. It is deleted with the subscription when that
     * deletes its webhook.
     *
     * @throws ReconcileFailed when the Secret is not of this subscription, or another manager owns
     * a field.
     */
    async publish(resource: WebhookSubscription, name: string, value: string): Promise<void> {
      await assertOwn(resource, name);
      const { uid } = resource.metadata;
      const secret: V1Secret = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: {
          name,
          namespace,
          labels: { [secretLabel]: '' },
          annotations: { [ownerAnnotation]: uid },
          ...(resource.spec.reclaimPolicy === 'delete' ? { ownerReferences: [ownerOf(resource)] } : {}),
        },
        type: 'Opaque',
        data: { [publishedKey]: Buffer.from(value).toString('base64') },
      };
      try {
        applied.set(name, await applyObject(objects, secret));
      } catch (cause) {
        const conflicts = conflictsOf(cause);
        if (conflicts.length === 0) throw cause;
        const message = `Secret ${name} is not published. ${describeConflicts(conflicts)}`;
        throw new ReconcileFailed('SecretConflict', message, { cause });
      }
    },
  };

  /** A Secret without the label is not in memory, so it is read before the first apply. */
  async function assertOwn({ metadata: { uid } }: WebhookSubscription, name: string): Promise<void> {
    const secret = get(name) ?? (await nullOn(404, core.readNamespacedSecret({ namespace, name })));
    if (secret === null || secret.metadata?.annotations?.[ownerAnnotation] === uid) return;
    throw new ReconcileFailed('SecretNotOwned', `A Secret ${name} exists and is not of this object.`);
  }
}

export type Secrets = ReturnType<typeof createSecrets>;
