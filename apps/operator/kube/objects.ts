import { isDeepStrictEqual } from 'node:util';
import {
  type CustomObjectsApi,
  type KubernetesObject,
  type KubernetesObjectApi,
  PatchStrategy,
  setHeaderOptions,
} from '@kubernetes/client-node';
import type { CustomResource, ResourceKind } from '../controller/contract.ts';
import type { FieldConflict } from './client.ts';

/** Owner of the fields that the operator applies. */
export const fieldManager = 'org-api-operator';

const applyOptions = setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply);
const mergeOptions = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);

const addressOf = ({ group, version, plural }: ResourceKind, { metadata: { namespace, name } }: CustomResource) => ({
  group,
  version,
  plural,
  namespace,
  name,
});

/**
 * Applies the status of an object when it differs from the one it has. Returns whether it did. The
 * object's version is not part of it, so a change of the spec meanwhile is no conflict.
 *
 * @throws ApiException 409 when another manager owns a field with another value.
 */
export async function applyStatus(
  api: CustomObjectsApi,
  kind: ResourceKind,
  resource: CustomResource,
  status: Record<string, unknown>,
): Promise<boolean> {
  // Through JSON, as the API server has no `undefined`.
  if (isDeepStrictEqual(JSON.parse(JSON.stringify(status)), resource.status)) return false;
  const { apiVersion, metadata } = resource;
  const { name, namespace, uid } = metadata;
  // The uid keeps the status off an object that was deleted and created again.
  const body = { apiVersion, kind: kind.kind, metadata: { name, namespace, uid }, status };
  const request = { ...addressOf(kind, resource), body, fieldManager };
  await api.patchNamespacedCustomObjectStatus(request, applyOptions);
  return true;
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
 * Adds or removes a finalizer of an object. The API server refuses with 409 when the object changed
 * since it was read, and its next version comes from the watch.
 */
export async function changeFinalizer(
  api: CustomObjectsApi,
  kind: ResourceKind,
  resource: CustomResource,
  change: 'addFinalizer' | 'removeFinalizer',
  finalizer: string,
): Promise<void> {
  const { resourceVersion, finalizers = [] } = resource.metadata;
  const others = finalizers.filter((name) => name !== finalizer);
  const wanted = change === 'addFinalizer' ? [...others, finalizer] : others;
  const body = { metadata: { resourceVersion, finalizers: wanted } };
  await api.patchNamespacedCustomObject({ ...addressOf(kind, resource), body }, mergeOptions);
}

/** Deletes an object of a custom kind, if it is the one that was read. */
export async function deleteResource(
  api: CustomObjectsApi,
  kind: ResourceKind,
  resource: CustomResource,
): Promise<void> {
  const body = { preconditions: { uid: resource.metadata.uid } };
  await api.deleteNamespacedCustomObject({ ...addressOf(kind, resource), body });
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
export function ownerOf({ apiVersion, kind, metadata: { name, uid } }: CustomResource) {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: false };
}
