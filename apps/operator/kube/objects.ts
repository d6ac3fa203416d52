import { isDeepStrictEqual } from 'node:util';
import {
  type CustomObjectsApi,
  type KubernetesObject,
  type KubernetesObjectApi,
  PatchStrategy,
  setHeaderOptions,
} from '@kubernetes/client-node';
import type { FieldConflict } from './client.ts';
import type { CustomResource, ResourceKind } from './custom-resource.ts';

/** Owner of the fields that the operator applies. */
const fieldManager = 'org-api-operator';

const applyOptions = setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply);
/** Options of a request that merges its body into the object. */
export const mergeOptions = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);

/** Makes the calls for the objects of a custom kind. */
export function customObjects(api: CustomObjectsApi, { group, version, plural }: ResourceKind) {
  const getAddress = ({ metadata: { namespace, name } }: CustomResource) => ({
    group,
    version,
    plural,
    namespace,
    name,
  });
  return {
    /**
     * Applies the status of an object when it differs from the one it has. Returns whether it did.
     * The object's version is not part of it, so a change of the spec meanwhile is no conflict.
     *
     * @throws ApiException 409 when another manager owns a field with another value.
     */
    async applyStatus(resource: CustomResource, status: Record<string, unknown>): Promise<boolean> {
      // Through JSON, as the API server has no `undefined`.
      if (isDeepStrictEqual(JSON.parse(JSON.stringify(status)), resource.status)) return false;
      const { apiVersion, kind } = resource;
      const { name, namespace, uid } = resource.metadata;
      // The uid keeps the status off an object that was deleted and created again.
      const body = { apiVersion, kind, metadata: { name, namespace, uid }, status };
      await api.patchNamespacedCustomObjectStatus({ ...getAddress(resource), body, fieldManager }, applyOptions);
      return true;
    },

    /**
     * Adds or removes a finalizer. The API server rejects with 409 when the object changed since it
     * was read, and its next version comes from the watch.
     */
    async changeFinalizer(
      resource: CustomResource,
      change: 'addFinalizer' | 'removeFinalizer',
      finalizer: string,
    ): Promise<void> {
      const { resourceVersion, finalizers: found = [] } = resource.metadata;
      const others = found.filter((name) => name !== finalizer);
      const finalizers = change === 'addFinalizer' ? [...others, finalizer] : others;
      const body = { metadata: { resourceVersion, finalizers } };
      await api.patchNamespacedCustomObject({ ...getAddress(resource), body }, mergeOptions);
    },
  };
}

/**
 * Returns a status with the values that other managers gave to their fields, so that applying it
 * changes none of them.
 */
export function keepForeignFields(
  { status: found }: CustomResource,
  status: Record<string, unknown>,
  conflicts: readonly FieldConflict[],
): Record<string, unknown> {
  return conflicts.reduce((kept, { field }) => {
    const [, ...path] = [...field.matchAll(/\.(\w+)|\[type="(\w+)"\]/g)].map(([, name, type]) => name ?? type ?? '');
    return keepField(kept, found, path) as Record<string, unknown>;
  }, status);
}

/** Each step is the name of a field, or the type of a condition. */
function keepField(wanted: unknown, found: unknown, [step, ...rest]: readonly string[]): unknown {
  if (step === undefined) return found;
  if (!Array.isArray(wanted))
    return { ...(wanted as object), [step]: keepField(at(wanted, step), at(found, step), rest) };
  return wanted.map((one) => (one.type === step ? keepField(one, at(found, step), rest) : one));
}

function at(value: unknown, step: string): unknown {
  if (Array.isArray(value)) return value.find(({ type }) => type === step);
  return (value as Record<string, unknown> | undefined)?.[step];
}

/**
 * Applies an object with exactly the fields that the operator owns.
 *
 * @throws ApiException 409 when another manager owns one of them with another value.
 */
export function applyObject<T extends KubernetesObject>(api: KubernetesObjectApi, object: T): Promise<T> {
  return api.patch(object, undefined, undefined, fieldManager, false, PatchStrategy.ServerSideApply);
}

/** An owner reference: the object is deleted with its owner. */
export function buildOwnerReference({ apiVersion, kind, metadata: { name, uid } }: CustomResource) {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: false };
}
