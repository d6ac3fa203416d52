import { type HttpVisitor, hiddenFields, type Visited, type VisitOptions } from '#test/http-visitor.ts';
import type { Route } from '../../../apps/console/web/route.ts';
import { filledForms } from './forms.ts';
import type { Scene } from './scene.ts';

/**
 * A request for a form of a scene: the parts of its path and body, so that single parts can be
 * exchanged.
 */
export interface FormRequest {
  params: Record<string, string>;
  fields: Record<string, string | string[]>;
}

/** Values of a scene for the parts of a route's path; a form may name others. */
function listParams(route: Route, scene: Scene): Record<string, string> {
  const all: Record<string, string> = {
    orgId: scene.orgId,
    keyId: scene.key.id,
    personId: scene.member.userId,
    roleId: scene.roleId,
    webhookId: scene.webhook.id,
    eventId: scene.failedEventId,
    redeliveryId: scene.redeliveryId,
    grantId: scene.grant.id,
    seatId: scene.seatId,
    familyId: scene.familyId,
    entryId: scene.entryId,
    sessionId: scene.sessionId,
    factorId: scene.factorId,
    number: '1',
  };
  const names = [...route.path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
  return Object.fromEntries(names.flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]]])));
}

/** Returns the parts of the request for a page or a form, without hidden fields. */
export function buildRequest(route: Route, scene: Scene): FormRequest {
  const { params, fields } = filledForms[route.name] ?? {};
  return { params: { ...listParams(route, scene), ...params?.(scene) }, fields: fields?.(scene) ?? {} };
}

/** Returns the path of a route in a scene. */
export const pathIn = (route: Route, scene: Scene): string => pathWith(route, buildRequest(route, scene).params);

/** Sends the request of a route; a form with `more` beside its own fields. */
export function send(
  visitor: HttpVisitor,
  route: Route,
  { params, fields }: FormRequest,
  more: Record<string, string | string[]> = {},
  options: VisitOptions = {},
): Promise<Visited> {
  const path = pathWith(route, params);
  return route.method === 'GET' ? visitor.get(path, options) : visitor.post(path, { ...more, ...fields }, options);
}

/** Returns a path with its parts filled in. @throws when one is missing. */
export function pathWith(route: Route, params: Readonly<Record<string, string>>): string {
  return route.path.replace(/:(\w+)/g, (_part, name: string) => {
    const value = params[name];
    if (value === undefined) throw new Error(`${route.name}: the scene has nothing for :${name}`);
    return value;
  });
}

/** Opens the page of a form and returns its hidden fields, as a browser sends them. */
export async function openForm(visitor: HttpVisitor, route: Route, scene: Scene): Promise<Record<string, string>> {
  const action = pathWith(route, buildRequest(route, scene).params);
  const page = await visitor.get(filledForms[route.name]?.page?.(scene) ?? action);
  return hiddenFields(page.text, action);
}

/** Returns a token that is valid for every form of the visitor's session. */
export async function readToken(visitor: HttpVisitor): Promise<string> {
  return hiddenFields((await visitor.get('/account')).text, '/sign-out')._token ?? '';
}
