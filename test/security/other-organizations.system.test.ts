/** Every route of the console and every read of the API with ids of another organization. */
import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import type { HttpVisitor, Visited } from '#test/http-visitor.ts';
import { startTestApi } from '#test/setup.ts';
import { endpoints } from '../../apps/api/endpoints.ts';
import { routes } from '../../apps/console/routes.ts';
import type { Route } from '../../apps/console/web/route.ts';
import { filledForms } from '../console/hostile/forms.ts';
import { arrange, type Scene } from '../console/hostile/scene.ts';
import { fingerprintTables } from '../console/hostile/tables.ts';
import { paramsOf, pathWith, requestOf, tokenOf } from '../console/hostile/walk.ts';
import { setupConsole } from '../console/setup.ts';
import { reportTried, seed, tries } from './tried.ts';

const tried = reportTried('ids of another organization');
const mark = 'Elsewhere';
/** The forms of signing in and enrolling name no object. */
const walked = routes.filter(
  ({ access, name, method }) => (access === 'member' || access === 'person') && (method === 'GET' || filledForms[name]),
);

it('the console answers an id of another organization as an unknown one, to each role and to a stranger', async () => {
  const t = await setupConsole();
  const [mine, theirs] = [await arrange(t, 'Harbor'), await arrange(t, mark)];
  const enrolled = (roleKey: string) => t.enrol({ orgId: mine.orgId, roleKey, name: `Harbor ${roleKey}` });
  const visitors: Record<string, HttpVisitor> = {
    owner: t.http(mine.owner),
    admin: t.http(await enrolled('admin')),
    member: t.http(await enrolled('member')),
    stranger: t.http(),
  };
  await t.owner.pool.query('update console_session set second_factor_at = now(), last_seen_at = now()');
  const before = await fingerprintTables(t.owner.pool, theirs.orgId);
  const foreign = [...new Set(Object.values(idsOf(theirs)))];
  const choose = choices(seed);
  for (const [role, visitor] of Object.entries(visitors)) {
    const _token = role === 'stranger' ? '' : await tokenOf(visitor);
    for (const { route, name, own, id } of walked.flatMap((each) =>
      replacedIds(each, mine, theirs, () => choose(foreign)),
    )) {
      const send = (value: string) => visit(visitor, route, { ...own, [name]: value }, _token);
      const unknown = unknownLike(id);
      const [strange, none] = [await send(id), await send(unknown)];
      tried('requests to the console', 2);
      expect([role, route.name, name, strange.status]).toEqual([role, route.name, name, none.status]);
      expect(plain(strange, id)).toBe(plain(none, unknown));
      expect(strange.text).not.toContain(mark);
      expect(strange.status).toBeLessThan(500);
    }
  }
  expect(await fingerprintTables(t.owner.pool, theirs.orgId)).toEqual(before);
}, 240_000);

it('the API answers no id of another organization with anything of it, with any key or none', async () => {
  const t = await setupConsole();
  const [mine, theirs] = [await arrange(t, 'Harbor'), await arrange(t, mark)];
  const api = await startTestApi(t.database, {}, [], onTestFinished);
  const own = { orgId: mine.orgId, userId: mine.owner.personId, roleId: null };
  const keys = Array.from({ length: 4 }, () => t.make.apiKey({ creator: own }));
  const senders = [...(await Promise.all(keys)).map(({ key }) => key), mine.memberKey.key, undefined];
  for (const { resource, operationId } of endpoints) {
    for (const [index, id] of Object.values(idsOf(theirs)).entries()) {
      const key = senders[index % senders.length];
      const response = await api.get(`/v1/orgs/${encodeURIComponent(id)}${resource}`, key === undefined ? {} : { key });
      tried('requests to the API');
      expect([operationId, id, [400, 401, 403, 404].includes(response.status)]).toEqual([operationId, id, true]);
      expect(await response.text()).not.toContain(mark);
    }
  }
}, 120_000);

interface ReplacedId {
  route: Route;
  /** The part of the path that is replaced, the other parts, and the id in its place. */
  name: string;
  own: Record<string, string>;
  id: string;
}

/** Returns a route's paths with one id of the other scene: of the same kind, and of any kind. */
function replacedIds(route: Route, mine: Scene, theirs: Scene, chooseId: () => string): ReplacedId[] {
  const own = filledForms[route.name] ? requestOf(route, mine).params : paramsOf(route, mine);
  const same = paramsOf(route, theirs);
  const names = Object.keys(own).filter((name) => name.endsWith('Id'));
  return names.flatMap((name) =>
    [same[name] ?? '', ...Array.from({ length: tries(1) }, chooseId)].map((id) => ({ route, name, own, id })),
  );
}

/** Returns an id of the same form that exists nowhere. */
const unknownLike = (id: string) => (/^[0-9a-f-]{36}$/.test(id) ? randomUUID() : `usr_1_${randomUUID().slice(0, 8)}`);

/** Ids of every kind of a scene. */
function idsOf(scene: Scene): Record<string, string> {
  const { orgId, roleId, spareRoleId, sessionId, factorId, seatId, familyId, entryId, redeliveryId } = scene;
  const { owner, member, invited, key, webhook, failedEventId, grant } = scene;
  const [ownerId, memberId, invitedId] = [owner.personId, member.userId, invited.userId];
  const objects = { keyId: key.id, webhookId: webhook.id, failedEventId, grantId: grant.id };
  const people = { ownerId, memberId, invitedId };
  return {
    orgId,
    roleId,
    spareRoleId,
    sessionId,
    factorId,
    seatId,
    familyId,
    entryId,
    redeliveryId,
    ...objects,
    ...people,
  };
}

function visit(visitor: HttpVisitor, route: Route, params: Record<string, string>, _token: string): Promise<Visited> {
  const path = pathWith(route, params);
  return route.method === 'GET' ? visitor.get(path) : visitor.post(path, { _token, _form: randomUUID() });
}

/** Returns a response without the id that was sent and what differs between two renderings. */
const plain = ({ text, to }: Visited, id: string) =>
  `${to ?? ''} ${text}`
    .replaceAll(id, 'ID')
    .replaceAll(encodeURIComponent(id), 'ID')
    .replace(/name="_(token|form)" value="[^"]*"/g, '')
    .replace(/<time[^>]*>[^<]*<\/time>/g, 'TIME');

/** Returns a function that chooses by a seed (mulberry32). */
function choices(from: number): <T>(values: readonly T[]) => T {
  let state = from;
  return (values) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return values[((mixed ^ (mixed >>> 14)) >>> 0) % values.length] as (typeof values)[number];
  };
}
