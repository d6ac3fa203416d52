/** Every route of the console and every read of the API with ids of another organization. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { constants, patient } from '#test/constants.ts';
import type { HttpVisitor, Visited } from '#test/http-visitor.ts';
import { startTestApi } from '#test/setup.ts';
import { endpoints } from '../../apps/api/endpoints.ts';
import { routes } from '../../apps/console/routes.ts';
import type { Route } from '../../apps/console/web/route.ts';
import { setupConsole } from '../console/setup.ts';
import { filledForms } from './console/forms.ts';
import { expectHarmless, expectNoChange, expectQuietLog } from './console/judgments.ts';
import { buildRequest, type FormRequest, openForm, pathWith, readToken, send } from './console/requests.ts';
import { arrange, confirmSessions, type Scene } from './console/scene.ts';
import { reportTried, seed, tries } from './tried.ts';

const tried = reportTried('ids of another organization');
const mark = 'Elsewhere';
/** The forms of signing in and enrolling name no object. */
const walked = routes.filter(({ access }) => access === 'member' || access === 'person');
/** It searches for a text, and finds none. */
const findsNothing = 'findCompromisedKey key';

it('the console answers an id of another organization as an unknown one, to each role and to a stranger', async () => {
  const t = await setupConsole({ [constants]: patient });
  const [mine, theirs] = [await arrange(t, 'Harbor'), await arrange(t, mark)];
  const enrolled = (roleKey: string) => t.enrol({ orgId: mine.orgId, roleKey, name: `Harbor ${roleKey}` });
  const visitors: Record<string, HttpVisitor> = {
    owner: t.http(mine.owner),
    admin: t.http(await enrolled('admin')),
    member: t.http(await enrolled('member')),
    stranger: t.http(),
  };
  const tokens = new Map<HttpVisitor, string>();
  for (const visitor of Object.values(visitors).slice(0, 3)) tokens.set(visitor, await readToken(visitor));
  const foreign = [...new Set(Object.values(listIds(theirs)))];
  const choose = choices(seed);
  const names: string[] = [];
  for (const route of walked) {
    await confirmSessions(t);
    const expectSame = await expectNoChange(t);
    const isAlone = route.method === 'POST' && !filledForms[route.name]?.notAlone;
    const hidden = isAlone ? await openForm(visitors.owner as HttpVisitor, route, mine) : {};
    for (const exchange of exchanges(route, mine, theirs, () => choose(foreign))) {
      names.push(`${route.name} ${exchange.name}`);
      for (const [role, visitor] of Object.entries(visitors))
        await expectUnknown(route, exchange, role, (value) =>
          open(visitor, route, exchange.at(value), {
            ...hidden,
            _token: tokens.get(visitor) ?? '',
            _form: randomUUID(),
          }),
        );
    }
    if (route.name !== 'downloadAuditLog') await expectSame(route.name);
  }
  expect(names).toEqual(expect.arrayContaining(someExchanges));
  expectQuietLog(t, [mine, theirs]);
}, 600_000);

it('the API answers no id of another organization with anything of it, with any key or none', async () => {
  const t = await setupConsole({ [constants]: patient });
  const [mine, theirs] = [await arrange(t, 'Harbor'), await arrange(t, mark)];
  const api = await startTestApi(t.database, { [constants]: patient });
  const own = { orgId: mine.orgId, userId: mine.owner.personId, roleId: null };
  const keys = Array.from({ length: 4 }, () => t.make.apiKey({ creator: own }));
  const senders = [...(await Promise.all(keys)).map(({ key }) => key), mine.memberKey.key, undefined];
  for (const { resource, operationId } of endpoints) {
    for (const [index, id] of Object.values(listIds(theirs)).entries()) {
      const key = senders[index % senders.length];
      const response = await api.get(`/v1/orgs/${encodeURIComponent(id)}${resource}`, key === undefined ? {} : { key });
      tried('requests to the API');
      expect([operationId, id, [400, 401, 403, 404].includes(response.status)]).toEqual([operationId, id, true]);
      expect(await response.text()).not.toContain(mark);
    }
  }
}, 120_000);

/** Expects the same response for an id of the other organization as for one that names nothing. */
async function expectUnknown(
  route: Route,
  { name, id, where }: Exchange,
  role: string,
  request: (value: string) => Promise<Visited>,
): Promise<void> {
  if (where === 'query' && role !== 'owner') return; // who may read everything
  const what = `${role} ${route.name} ${name} ${id}`;
  const strange = await request(id);
  tried('requests to the console');
  expectHarmless(what, strange, mark);
  if (where === 'query') return; // a list, or none
  const unknown = unknownLike(id);
  const none = await request(unknown);
  expect(strange.status, what).toBe(none.status);
  expect(plain(strange, id), what).toBe(plain(none, unknown));
  if (role === 'owner') expect(strange.status, what).toBeOneOf(rejections(route, name, where));
}

/** Returns the statuses of an owner's request with one id that is not theirs. */
function rejections({ name: route, access }: Route, name: string, where: Exchange['where']): number[] {
  if (`${route} ${name}` === findsNothing) return [200];
  if (where === 'form') return [400, 404, 409, 422];
  // The account is shown again, and says that a session or second factor does not exist; 404 is for other ids.
  return access === 'member' ? [404] : [404, 422];
}

/** Some of what is tried: the part of a path, the field of a form, or of a query. */
const someExchanges = [
  'showOverview :orgId',
  'revokeKey :keyId',
  findsNothing,
  'assignRole :personId',
  'assignRole roleId',
  'inviteMember roles',
  'verifyWebhook :webhookId',
  'sendDeliveryAgain :eventId',
  'cancelRedelivery :redeliveryId',
  'moveGrant to',
  'listMembers ?role',
  'listClients ?professional',
];

/** A request of which one id is exchanged: the id's name, and the request with a value in its place. */
interface Exchange {
  name: string;
  id: string;
  at: (value: string) => FormRequest & { query?: string };
  where: 'path' | 'form' | 'query';
}

/**
 * Returns a route's requests with one id of the other scene each: in the path, of the same kind and of
 * any kind; in the field of a form, where the other scene has another value; and in each field of a
 * query.
 */
function exchanges(route: Route, mine: Scene, theirs: Scene, chooseId: () => string): Exchange[] {
  const [own, same] = [buildRequest(route, mine), buildRequest(route, theirs)];
  const inPath = Object.keys(own.params)
    .filter((name) => name.endsWith('Id'))
    .flatMap((name) =>
      [same.params[name] ?? '', ...Array.from({ length: tries(1) }, chooseId)].map((id) => ({
        name: `:${name}`,
        id,
        at: (value: string) => ({ ...own, params: { ...own.params, [name]: value } }),
        where: 'path' as const,
      })),
    );
  const inForm = Object.entries(same.fields).flatMap(([name, strange]) =>
    [strange].flat().flatMap((id, index) => {
      if (JSON.stringify(strange) === JSON.stringify(own.fields[name]) || [own.fields[name]].flat()[index] === id)
        return [];
      const at = (value: string) => ({
        ...own,
        fields: { ...own.fields, [name]: Array.isArray(strange) ? strange.with(index, value) : value },
      });
      return [{ name, id, at, where: 'form' as const }];
    }),
  );
  const queried = route.method === 'GET' ? Object.keys(route.schema.shape) : [];
  const inQuery = queried.flatMap((name) =>
    Object.values(listIds(theirs)).map((id) => ({
      name: `?${name}`,
      id,
      at: (value: string) => ({ ...own, query: `${new URLSearchParams([[name, value]])}` }),
      where: 'query' as const,
    })),
  );
  return [...inPath, ...inForm, ...inQuery];
}

const open = (
  visitor: HttpVisitor,
  route: Route,
  request: FormRequest & { query?: string },
  hidden: Record<string, string>,
): Promise<Visited> =>
  request.query === undefined
    ? send(visitor, route, request, hidden)
    : visitor.get(`${pathWith(route, request.params)}?${request.query}`);

/** Returns a text of the same form that names nothing. */
const unknownLike = (id: string) =>
  /^[0-9a-f-]{36}$/.test(id)
    ? randomUUID()
    : id.startsWith('usr_')
      ? `usr_1_${randomUUID().slice(0, 8)}`
      : id.replace(/[0-9a-f]{8}/g, () => randomUUID().slice(0, 8));

/** Ids of every kind of a scene. */
function listIds(scene: Scene): Record<string, string> {
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
