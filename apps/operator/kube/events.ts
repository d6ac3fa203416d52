import { type EventsV1Api, V1MicroTime } from '@kubernetes/client-node';
import type { CustomResource, Note } from './custom-resource.ts';

/** Records Events about objects. A lost Event harms nothing, so it never fails its caller. */
export function createEvents(options: {
  api: EventsV1Api;
  /** Name of this process, for example its pod's. */
  identity: string;
  onError: (cause: unknown) => void;
}) {
  const { api, identity, onError } = options;
  return async (resource: CustomResource, type: 'Normal' | 'Warning', { reason, message }: Note): Promise<void> => {
    const { name, namespace, uid, resourceVersion } = resource.metadata;
    try {
      await api.createNamespacedEvent({
        namespace,
        body: {
          metadata: { generateName: `${name}-`, namespace },
          eventTime: new V1MicroTime(),
          type,
          reason,
          action: reason,
          note: message.slice(0, 1_000),
          regarding: { apiVersion: resource.apiVersion, kind: resource.kind, name, namespace, uid, resourceVersion },
          reportingController: 'org-api-operator',
          reportingInstance: identity.slice(0, 128),
        },
      });
    } catch (cause) {
      onError(cause);
    }
  };
}

export type RecordEvent = ReturnType<typeof createEvents>;
