import { isDeepStrictEqual } from 'node:util';
import {
  type CustomObjectsApi,
  type KubernetesObject,
  type KubernetesObjectApi,
  PatchStrategy,
  setHeaderOptions,
} from '@kubernetes/client-node';
import type { CustomResource, ResourceKind } from '../controller/contract.ts';

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
  const request = { ...addressOf(kind, resource), body, fieldManager, force: true };
  await api.patchNamespacedCustomObjectStatus(request, applyOptions);
  return true;
}

/**
 * Replaces the finalizers of an object. The API server refuses with 409 when the object changed
 * since it was read, and its next version comes from the watch.
 */
export async function setFinalizers(
  api: CustomObjectsApi,
  kind: ResourceKind,
  resource: CustomResource,
  finalizers: readonly string[],
): Promise<void> {
  const { resourceVersion } = resource.metadata;
  const body = { metadata: { resourceVersion, finalizers } };
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
 * Applies an object with exactly the fields that the operator owns. Without `force`, the API server
 * refuses with 409 when another manager owns one of them with another value.
 */
export function applyObject<T extends KubernetesObject>(
  api: KubernetesObjectApi,
  object: T,
  { force = false }: { force?: boolean } = {},
): Promise<T> {
  return api.patch(object, undefined, undefined, fieldManager, force, PatchStrategy.ServerSideApply);
}

/** An owner reference: the object is deleted with its owner. */
export function ownerOf({ apiVersion, kind, metadata: { name, uid } }: CustomResource) {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: false };
}
