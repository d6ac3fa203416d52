import type { Route } from './route.ts';

/** What a path leads to: the routes there, one per method, and the parts that the path names. */
export interface Found {
  routes: readonly Route[];
  params: Record<string, string>;
}

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const segmentForm = /^[\w.~-]{1,1024}$/;

/**
 * Finds the routes of a path, exactly: no trailing slash, no decoding (no path of ours needs any).
 * A parameter that ends in `Id` and is no UUID leads nowhere, so no statement ever sees one. Null:
 * there is nothing there.
 *
 * Decision (2026-11-20): 40 lines instead of @koa/router. Routes are data here, one list for the
 * server and for the tests that walk over it, and ids are checked where they are found.
 */
export function createRouter(routes: readonly Route[]): (path: string) => Found | null {
  const byShape = new Map<string, Route[]>();
  for (const route of routes) {
    const shape = route.path.replace(/:\w+/g, ':');
    const same = byShape.get(shape) ?? [];
    if (same.some(({ method, path }) => method === route.method || path !== route.path))
      throw new Error(`two routes want ${route.method} ${route.path}, or name its parts differently`);
    byShape.set(shape, [...same, route]);
  }
  const paths = [...byShape.values()].map((same) => ({ routes: same, parts: (same[0] as Route).path.split('/') }));
  // Fixed words before parameters, so that `/keys/new` is never taken for a key's id.
  paths.sort((a, b) => countParams(a.parts) - countParams(b.parts));

  return (path) => {
    const given = path.split('/');
    for (const { routes: there, parts } of paths) {
      const params = parts.length === given.length ? match(parts, given) : null;
      if (params !== null) return { routes: there, params };
    }
    return null;
  };
}

const countParams = (parts: readonly string[]) => parts.filter((part) => part.startsWith(':')).length;

function match(parts: readonly string[], given: readonly string[]): Record<string, string> | null {
  const params: Record<string, string> = {};
  for (const [index, part] of parts.entries()) {
    const text = given[index] ?? '';
    if (!part.startsWith(':')) {
      if (part !== text) return null;
      continue;
    }
    const name = part.slice(1);
    const form = name.endsWith('Id') && name !== 'personId' ? uuidForm : segmentForm;
    if (!form.test(text)) return null;
    params[name] = text;
  }
  return params;
}
