/** Forms that are submitted several times at once and again, with fields that no form has. */
import { expect, it } from 'vitest';
import { hiddenFields, type Visited } from '#test/http-visitor.ts';
import { routes } from '../../apps/console/routes.ts';
import { type ConsoleInstallation, shareConsole } from '../console/setup.ts';
import { filledForms } from './console/forms.ts';
import { expectHarmless } from './console/judgments.ts';
import { buildRequest, openForm, send } from './console/requests.ts';
import { copyScenes, type Scene } from './console/scene.ts';
import { fingerprintTables } from './console/tables.ts';

const copy = copyScenes('Harbor', 'Elsewhere');
const shared = shareConsole();
const timeout = 180_000;

const sentAlone = routes.filter(({ method, name }) => method === 'POST' && !filledForms[name]?.notAlone);

/** Forms that only search, or start what another form finishes. */
const leaveNothing = new Set(['findCompromisedKey', 'startTotp', 'startPasskey']);

it.each(sentAlone.map((route) => ({ name: route.name, route })))(
  'a form that is sent three times at once and again is carried out once, and ignores added fields: $name',
  { timeout },
  async ({ name, route }) => {
    const { t, scenes } = await copy();
    const [mine, theirs] = scenes;
    const visitor = t.http(mine.owner);
    const request = buildRequest(route, mine);
    const hidden = await openForm(visitor, route, mine);
    const submit = (fields: Record<string, string> = hidden) =>
      send(visitor, route, request, { ...addedBy(theirs), ...fields });
    const [before, othersBefore] = [
      await fingerprintTables(t.owner.pool),
      await fingerprintTables(t.owner.pool, theirs.orgId),
    ];
    const withoutSource = await countWithoutSource(t, mine);
    const sent = await Promise.all([1, 2, 3].map(() => submit()));
    for (const each of sent) expectHarmless(name, each, 'Elsewhere');
    const done = sent.filter((each) => [200, 303].includes(each.status) && problemOn(each) === undefined);
    if (route.once) expect(sent.map(({ status }) => status === 409).sort()).toEqual([false, true, true]);
    expect(done.length).toBeGreaterThan(0);
    if (!leaveNothing.has(name)) expect(await fingerprintTables(t.owner.pool)).not.toEqual(before);
    expect(await fingerprintTables(t.owner.pool, theirs.orgId)).toEqual(othersBefore);
    expect(await countWithoutSource(t, mine)).toBe(withoutSource);

    // The log may say that something was asked for again.
    const state = async () => ({
      ...(await fingerprintTables(t.owner.pool)),
      ...(route.once ? {} : { audit_entry: '' }),
    });
    const after = await state();
    const again = await submit();
    expectHarmless(name, again, 'Elsewhere');
    if (route.once) {
      expect([again.status, again.text.includes('Already submitted')]).toEqual([409, true]);
      if (route.again !== null) expect(again.text).toContain('can’t be shown again');
      const { _form: _, ...rest } = hidden;
      expect((await submit(rest)).status).toBe(409);
    }
    expect(await state()).toEqual(after);
  },
);

it('two step-ups with one code at once carry out one change', async () => {
  const t = shared();
  const ada = await t.enrol();
  const path = '/account/recovery-codes';
  t.pass(6 * 60_000);
  const requested = await t.http(ada).submit('/account', path);
  const fields = { ...hiddenFields(requested.text, path), factorCode: t.nextCode(ada) };
  // Each with a form of its own, so that only the code is the same.
  const responses = await Promise.all(
    [1, 2].map(() => t.http(ada).post(path, { ...fields, _form: crypto.randomUUID() })),
  );
  expect(responses.filter(({ text }) => text.includes('only time they are shown'))).toHaveLength(1);
  const { rows } = await t.owner.pool.query(
    `select from audit_entry where person_id = $1 and action = 'recovery_codes.renew'`,
    [ada.personId],
  );
  expect(rows).toHaveLength(1);
});

/** Returns the number of entries of a scene's owner that say no address. */
async function countWithoutSource(t: ConsoleInstallation, { orgId, owner }: Scene): Promise<number> {
  const { rows } = await t.owner.pool.query<{ count: number }>(
    `select count(*)::int from audit_entry
      where organization_id = $1 and person_id = $2 and status is null and address is null`,
    [orgId, owner.personId],
  );
  return rows[0]?.count ?? 0;
}

/** Returns the error message of a form that was rendered again. */
const problemOn = ({ text }: Visited) =>
  /class="notice notice-bad"[^>]*>(.*?)<\/div>|class="problem" id[^>]*>(.*?)</.exec(text)?.[0];

/** Names of columns and of the domain's inputs, which no form has, with another organization's ids. */
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
