import type { Endpoint } from './endpoint.ts';

const prefix = '/v1/orgs/';

/** A path of the API: its read, and the text that stands where the organization's id belongs. */
export interface Route {
  endpoint: Endpoint;
  orgIdText: string;
}

/**
 * Finds a path's read, exactly: no trailing slash, no decoding. Null for a path that is not the
 * API's.
 */
export function createRouter(endpoints: readonly Endpoint[]): (path: string) => Route | null {
  const byResource = new Map(endpoints.map((endpoint) => [endpoint.resource, endpoint]));
  return (path) => {
    if (!path.startsWith(prefix)) return null;
    const slash = path.indexOf('/', prefix.length);
    const orgIdText = slash === -1 ? path.slice(prefix.length) : path.slice(prefix.length, slash);
    const endpoint = byResource.get(slash === -1 ? '' : path.slice(slash));
    return endpoint === undefined || orgIdText === '' ? null : { endpoint, orgIdText };
  };
}
