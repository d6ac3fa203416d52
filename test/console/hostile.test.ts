/** A member of one organization who attacks another, on every route. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Visited } from '#test/http-visitor.ts';
import { routes } from '../../apps/console/routes.ts';
import type { Route } from '../../apps/console/web/route.ts';
import { filledForms } from './hostile/forms.ts';
import { copyScenes, type Scene } from './hostile/scene.ts';
import { fingerprintTables } from './hostile/tables.ts';
import { type FormRequest, openForm, paramsOf, pathWith, requestOf, tokenOf } from './hostile/walk.ts';
import type { ConsoleInstallation } from './setup.ts';

const copy = copyScenes('Harbor', 'Elsewhere');
const timeout = 180_000;
const forms = routes.filter(({ method }) => method === 'POST');
const pages = routes.filter(({ method, access }) => method === 'GET' && access !== 'anyone' && access !== 'password');
const ofMembers = forms.filter(({ access, name }) => filledForms[name] && (access === 'person' || access === 'member'));
const sentAlone = forms.filter(({ name }) => filledForms[name] !== undefined && !filledForms[name].notAlone);

it('every form has valid input in these tests', () => {
  expect(forms.filter(({ name }) => filledForms[name] === undefined).map(({ name }) => name)).toEqual([]);
  for (const name of Object.keys(filledForms)) expect(forms.map((route) => route.name)).toContain(name);
});

/** Forms that only search, or start what another form finishes. */
const leaveNothing = new Set(['findCompromisedKey', 'startTotp', 'startPasskey']);

describe('a member of one organization', () => {
  it('sees a page for each of its ids, and 404 for each id of another organization', { timeout }, async () => {
    const { t, scenes } = await copy();
    const [mine, theirs] = scenes;
    const visitor = t.http(mine.owner);
    for (const route of pages) {
      const own = paramsOf(route, mine);
      const unseen = await fingerprintTables(t.owner.pool);
      const page = await visitor.get(pathWith(route, own));
      expect([route.name, page.status]).toEqual([route.name, route.name === 'showHome' ? 303 : 200]);
      expect(page.text).not.toContain('Elsewhere');
      const before = await fingerprintTables(t.owner.pool);
      // Reading leaves no row, except for downloading the log.
      if (route.name !== 'downloadAuditLog') expect([route.name, before]).toEqual([route.name, unseen]);
      for (const [name, value] of Object.entries(paramsOf(route, theirs))) {
        if (value === own[name]) continue;
        const strange = await visitor.get(pathWith(route, { ...own, [name]: value }));
        expect([route.name, name, strange.status]).toEqual([route.name, name, 404]);
        expect(strange.text).not.toContain('Elsewhere');
      }
      expect([route.name, await fingerprintTables(t.owner.pool)]).toEqual([route.name, before]);
    }
  });

  it('gets an error response to every form with another organization’s id in its path or fields, and nothing changes', {
    timeout,
  }, async () => {
    const { t, scenes } = await copy();
    const [mine, theirs] = scenes;
    const visitor = t.http(mine.owner);
    const _token = await tokenOf(visitor);
    const before = await fingerprintTables(t.owner.pool);
    const tried: string[] = [];
    for (const route of ofMembers) {
      const hidden = filledForms[route.name]?.notAlone ? { _token } : await openForm(visitor, route, mine);
      for (const [what, { params, fields }] of mixtures(route, mine, theirs)) {
        const response = await visitor.post(pathWith(route, params), { ...hidden, _form: randomUUID(), ...fields });
        expectRejected(what, response);
        expect([what, await fingerprintTables(t.owner.pool)]).toEqual([what, before]);
        tried.push(what);
      }
    }
    expect(tried).toEqual(expect.arrayContaining(someMixtures));
  });

  it.each(sentAlone.map((route) => ({ name: route.name, route })))(
    'can submit $name with their own ids, and added fields are ignored',
    { timeout },
    async ({ route }) => {
      const { t, scenes } = await copy();
      const [mine, theirs] = scenes;
      const visitor = t.http(mine.owner);
      const { params, fields } = requestOf(route, mine);
      const hidden = await openForm(visitor, route, mine);
      const [before, othersBefore] = [
        await fingerprintTables(t.owner.pool),
        await fingerprintTables(t.owner.pool, theirs.orgId),
      ];
      const unaddressed = () => countUnaddressed(t, mine);
      const unaddressedBefore = await unaddressed();
      const response = await visitor.post(pathWith(route, params), { ...addedBy(theirs), ...hidden, ...fields });
      // Each row contains its source, also those about webhooks, members, roles and seats.
      expect(await unaddressed()).toBe(unaddressedBefore);
      expect(problemOn(response)).toBeUndefined();
      expect([200, 303]).toContain(response.status);
      if (!leaveNothing.has(route.name)) expect(await fingerprintTables(t.owner.pool)).not.toEqual(before);
      expect(await fingerprintTables(t.owner.pool, theirs.orgId)).toEqual(othersBefore);
    },
  );
});

/** Returns the rows of a scene's owner without a source. */
async function countUnaddressed(t: ConsoleInstallation, { orgId, owner }: Scene): Promise<number> {
  const { rows } = await t.owner.pool.query<{ count: number }>(
    'select count(*)::int from audit_entry where organization_id = $1 and person_id = $2 and status ' +
      'is null and address is null',
    [orgId, owner.personId],
  );
  return rows[0]?.count ?? 0;
}

/** Forms of signed-in people without a fresh second factor: none of them is sensitive. */
const withoutStepUp: Readonly<Record<string, string>> = {
  joinOrganization: 'accepts an invitation by its link, in a session of both factors',
  findCompromisedKey: 'changes nothing; revoking what it finds wants one',
  assignSeat: 'daily work, taken back by the next',
  endSeat: 'daily work, taken back by the one before',
  testWebhook: 'sends a made-up event to the receiver that is subscribed already',
  verifyWebhook: 'the same, twice',
  sendDeliveryAgain: 'sends the receiver once more what it was to have anyway',
  redeliver: 'the same, of many',
  redeliverSelected: 'the same, of those that are selected',
  cancelRedelivery: 'stops that',
};

describe('every change of keys, webhooks, members, roles, factors, passwords and sessions', () => {
  it('requires a fresh second factor', () => {
    const without = forms.filter(({ access, stepUp }) => (access === 'member' || access === 'person') && !stepUp);
    expect(without.map(({ name }) => name).sort()).toEqual(Object.keys(withoutStepUp).sort());
  });

  it('asks for it when it is older than 5 minutes, and changes nothing before', {
    timeout,
  }, async () => {
    const { t, scenes } = await copy();
    const [mine] = scenes;
    const visitor = t.http(mine.owner);
    t.pass(6 * 60_000);
    const _token = await tokenOf(visitor);
    const before = await fingerprintTables(t.owner.pool);
    const wanting = forms.filter(({ name, stepUp }) => stepUp && filledForms[name]);
    expect(wanting.length).toBeGreaterThan(20);
    for (const route of wanting) {
      const { params, fields } = requestOf(route, mine);
      const requested = await visitor.post(pathWith(route, params), { _token, ...fields });
      expect([route.name, requested.status, /<h1>(.*?)<\/h1>/.exec(requested.text)?.[1]]).toEqual([
        route.name,
        200,
        'Confirm your identity',
      ]);
    }
    expect(await fingerprintTables(t.owner.pool)).toEqual(before);
  });
});

/** Whether a form is among those that are tried, by name. */
const someMixtures = [
  'revokeKey :keyId',
  'findCompromisedKey key',
  'assignRole :personId',
  'assignRole roleId',
  'inviteMember roles',
  'verifyWebhook :webhookId',
  'sendDeliveryAgain :eventId',
  'cancelRedelivery :redeliveryId',
  'moveGrant to',
];

/**
 * Returns the request with single parts of another scene in place of its own: one request for each
 * part that differs between the two.
 */
function* mixtures(route: Route, mine: Scene, theirs: Scene): Generator<[string, FormRequest]> {
  const [own, strange] = [requestOf(route, mine), requestOf(route, theirs)];
  for (const [name, value] of Object.entries(strange.params))
    if (value !== own.params[name])
      yield [`${route.name} :${name}`, { ...own, params: { ...own.params, [name]: value } }];
  for (const [name, value] of Object.entries(strange.fields))
    if (JSON.stringify(value) !== JSON.stringify(own.fields[name]))
      yield [`${route.name} ${name}`, { ...own, fields: { ...own.fields, [name]: value } }];
}

function expectRejected(what: string, response: Visited): void {
  expect(response.text).not.toContain('Elsewhere');
  // The search for a text that is no key succeeds and finds none.
  if (what === 'findCompromisedKey key') expect(response.text).toContain('API key not found');
  else expect([what, response.status >= 400 && response.status < 500]).toEqual([what, true]);
}

/** Returns the error message of a form that was rendered again. */
const problemOn = ({ text }: Visited) =>
  /class="notice notice-bad"[^>]*>(.*?)<\/div>|class="problem" id[^>]*>(.*?)</.exec(text)?.[0];

/**
 * Fields that no form has: names of columns and of the domain's inputs, with another organization's
 * ids.
 */
const addedBy = (theirs: Scene) => ({
  orgId: theirs.orgId,
  organizationId: theirs.orgId,
  organization_id: theirs.orgId,
  creatorId: theirs.owner.personId,
  personId: theirs.owner.personId,
  by: 'orgctl',
  byOrgctl: 'true',
  keyId: theirs.key.id,
  id: theirs.webhook.id,
  webhookId: theirs.webhook.id,
  grantId: theirs.grant.id,
  seatId: theirs.seatId,
  number: '1',
  state: 'active',
  __proto__x: 'x',
  constructor: 'x',
  'scopes[]': 'org.read',
  'roles[0]': 'owner',
  isOwner: 'on',
});
