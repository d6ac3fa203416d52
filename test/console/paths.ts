import { randomUUID } from 'node:crypto';
import type { Route } from '../../apps/console/web/route.ts';

/**
 * Returns a path of a route, with the given organization and a random UUID (or a word) for every
 * other parameter.
 */
export function pathOf(route: Route, { orgId }: { orgId: string }): string {
  return route.path.replace(/:(\w+)/g, (_part, name: string) => {
    if (name === 'orgId') return orgId;
    return name.endsWith('Id') && name !== 'personId' ? randomUUID() : 'unknown';
  });
}
