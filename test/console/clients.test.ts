import { describe, expect, it } from 'vitest';
import { unescaped } from '#test/http-visitor.ts';
import { type ConsoleInstallation, shareConsole } from './setup.ts';

const shared = shareConsole();

/** The page as text: no markup, single spaces. */
const readText = (page: string): string =>
  unescaped(page.slice(page.indexOf('<main')).replace(/<[^>]*>/g, ' ')).replace(/\s+/g, ' ');

/**
 * An organization with an owner, a professional with a client, a webhook, and a number of seats.
 */
async function setupClients({ seats = 2 } = {}) {
  const t = shared();
  const orgId = await t.make.organization({ invoiced: seats });
  const ada = await t.enrol({ orgId, name: 'Ada Rivers' });
  const bo = await t.make.member({ orgId, name: 'Bo Lindqvist', roleKey: 'member' });
  const grant = await t.make.grant({
    professional: bo,
    familyId: await t.make.family({ orgId, name: 'Rossi family' }),
  });
  await t.make.webhook({ orgId });
  const at = (rest: string) => `/o/${orgId}${rest}`;
  return { ...t, orgId, ada, bo, grant, at, client: at(`/clients/${grant.id}`) };
}

/** Returns the events for the organization's webhooks, oldest first. */
const events = async ({ owner }: ConsoleInstallation, orgId: string) =>
  (
    await owner.pool.query<{ type: string; data: Record<string, unknown> }>(
      `select e.type, e.body::json -> 'data' as data from event e
        join delivery d on d.organization_id = e.organization_id and d.event_id = e.id
       where e.organization_id = $1 and d.settled_at is null
         and e.created_at > now() - interval '1 hour' order by e.id`,
      [orgId],
    )
  ).rows;

const lines = async ({ owner }: ConsoleInstallation, orgId: string) =>
  (
    await owner.pool.query<{ action: string; person: string; detail: Record<string, unknown> }>(
      `select action, person_id as person, detail from audit_entry
        where organization_id = $1 and action ~ '^(seat|grant)' order by at, id`,
      [orgId],
    )
  ).rows;

describe('a seat', () => {
  it('is assigned and ended, with an audit entry and an event each time', async () => {
    const t = await setupClients();
    const before = (await events(t, t.orgId)).length;
    const owner = t.http(t.ada);
    const page = await owner.get(t.at('/clients/seats'));
    expect(readText(page.text)).toMatch(/Seats 2 2 by invoice Used 0 .* Available 2/);
    const list = await owner.get(t.at('/clients/seats/assign'));
    expect(list.text).toContain(`href="${t.client}/seat?from=list"`);
    const confirm = await owner.get(`${t.client}/seat?from=list`);
    expect(readText(confirm.text)).toMatch(/Assign a seat to Rossi family\?.*gets one of 2 available seats/);
    expect(await lines(t, t.orgId)).toEqual([]);
    expect(await owner.submit(confirm, `${t.client}/seat`)).toMatchObject({
      to: t.at('/clients/seats/assign'),
    });
    const assigned = await owner.get(t.at('/clients/seats'));
    expect(readText(assigned.text)).toMatch(/Used 1 .* Available 1 .*Rossi family Bo Lindqvist/);
    const end = unescaped(/href="([^"]*\/end)"/.exec(assigned.text)?.[1] ?? '');
    expect(await owner.submit(end, end)).toMatchObject({ status: 303, to: t.at('/clients/seats') });
    expect(readText((await owner.get(t.at('/clients/seats?state=ended'))).text)).toMatch(
      /Rossi family .*Ended by your organization/,
    );

    const seatId = end.split('/').at(-2);
    const data = { seatId, grantId: t.grant.id };
    expect((await events(t, t.orgId)).slice(before)).toEqual([
      { type: 'seat.given', data },
      { type: 'seat.ended', data: { ...data, reason: 'ended_by_organization' } },
    ]);
    expect(await lines(t, t.orgId)).toEqual([
      { action: 'seat.give', person: t.ada.personId, detail: data },
      { action: 'seat.end', person: t.ada.personId, detail: data },
    ]);
    const twice = await owner.submit(end, end);
    expect([twice.status, readText(twice.text)]).toEqual([
      422,
      expect.stringContaining('This seat has already ended.'),
    ]);
  });

  it('that is the last one is assigned once by two browsers, and the other sees the reason', async () => {
    const t = await setupClients({ seats: 1 });
    const other = await t.make.grant({ professional: t.bo });
    const second = await t.enrol({ orgId: t.orgId });
    const clients = [t.client, t.at(`/clients/${other.id}`)];
    const opened = await Promise.all(
      [t.ada, second].map(async (person, index) => {
        const browser = t.http(person);
        return { browser, page: await browser.get(`${clients[index]}/seat`), client: clients[index] ?? '' };
      }),
    );
    const sent = await Promise.all(opened.map(({ browser, page, client }) => browser.submit(page, `${client}/seat`)));
    expect(sent.map(({ status }) => status).sort()).toEqual([303, 422]);
    expect(readText(sent.find(({ status }) => status === 422)?.text ?? '')).toContain(
      'All seats are assigned. End one, or buy more seats.',
    );
    expect(readText((await t.http(t.ada).get(t.at('/clients/seats'))).text)).toMatch(/Used 1 .* Available 0/);
  });

  it('can be assigned and ended with the role Billing, which does not see the roster', async () => {
    const t = await setupClients();
    const billing = t.http(await t.enrol({ orgId: t.orgId, roleKey: 'billing' }));
    const first = await billing.get(t.at(''));
    expect(first.text).toContain(`href="${t.at('/clients')}"`);
    expect(await billing.get(t.at('/clients'))).toMatchObject({ status: 303, to: t.at('/clients/seats') });
    expect(await billing.submit(`${t.client}/seat`, `${t.client}/seat`)).toMatchObject({ status: 303 });
    const analyst = t.http(await t.enrol({ orgId: t.orgId, roleKey: 'analyst' }));
    for (const path of ['/clients', '/clients/seats', `/clients/${t.grant.id}`])
      expect([path, (await analyst.get(t.at(path))).status]).toEqual([path, 403]);
  });
});

describe('the access of a client', () => {
  it('ends together with its seat after a warning, with audit entries and events', async () => {
    const t = await setupClients();
    const seatId = await t.make.seat({ orgId: t.orgId, grant: t.grant });
    const before = (await events(t, t.orgId)).length;
    const owner = t.http(t.ada);
    const page = await owner.get(`${t.client}/end`);
    expect(readText(page.text)).toMatch(
      /access of Bo Lindqvist to Rossi family ends .*The client’s seat also ends .*client\.ended .*seat\.ended/,
    );
    expect(await owner.submit(page, `${t.client}/end`)).toMatchObject({ status: 303, to: t.client });
    expect(readText((await owner.get(t.client)).text)).toMatch(/Ended .*Only active access can have a seat/);
    const owed = (await events(t, t.orgId)).slice(before);
    expect(owed).toHaveLength(2);
    expect(owed).toContainEqual({
      type: 'client.ended',
      data: { grantId: t.grant.id, kind: 'attorney', reason: 'ended' },
    });
    expect(owed).toContainEqual({ type: 'seat.ended', data: { seatId, grantId: t.grant.id, reason: 'access_ended' } });
    expect(await lines(t, t.orgId)).toEqual([
      { action: 'grant.end', person: t.ada.personId, detail: { grantId: t.grant.id } },
      { action: 'grant.ended', person: null, detail: expect.objectContaining({ reason: 'ended', deliveries: 1 }) },
    ]);
    const twice = await owner.submit(`${t.client}/end`, `${t.client}/end`);
    expect([twice.status, readText(twice.text)]).toEqual([
      422,
      expect.stringContaining('This access has already ended.'),
    ]);
  });

  it('moves only to an active colleague', async () => {
    const t = await setupClients();
    await t.make.seat({ orgId: t.orgId, grant: t.grant });
    const suspended = await t.make.member({ orgId: t.orgId, name: 'Sam Suspended', status: 'suspended' });
    const stranger = await t.make.member({ name: 'Olga Elsewhere' });
    const before = (await events(t, t.orgId)).length;
    const owner = t.http(t.ada);
    const page = await owner.get(`${t.client}/move`);
    expect(readText(page.text)).toMatch(
      /The client’s seat also ends .*client\.ended .*moved .*client\.started .*Ada Rivers/,
    );
    expect(page.text).not.toMatch(/Sam Suspended|Elsewhere/);
    for (const to of [suspended.userId, stranger.userId, t.bo.userId, '', 'nobody']) {
      const rejected = await owner.submit(page, `${t.client}/move`, { to });
      expect([to, rejected.status]).toEqual([to, 422]);
    }
    const moved = await owner.submit(page, `${t.client}/move`, { to: t.ada.personId });
    expect(moved.status).toBe(303);
    const newGrantId = moved.to?.split('/').at(-1);
    expect(readText((await owner.get(moved.to ?? '')).text)).toMatch(
      /Rossi family .*Ada Rivers .*Active .*2 of 2 seats available/,
    );
    expect(
      (await events(t, t.orgId))
        .slice(before)
        .map(({ type, data }) => [type, data.grantId, data.reason])
        .sort(),
    ).toEqual([
      ['client.ended', t.grant.id, 'moved'],
      ['client.started', newGrantId, undefined],
      ['seat.ended', t.grant.id, 'access_ended'],
    ]);
    expect(await lines(t, t.orgId)).toEqual([
      {
        action: 'grant.move',
        person: t.ada.personId,
        detail: { grantId: t.grant.id, newGrantId, from: t.bo.userId, to: t.ada.personId },
      },
      { action: 'grant.ended', person: null, detail: expect.objectContaining({ reason: 'moved', deliveries: 1 }) },
    ]);
  });
});

describe('access that lies ahead', () => {
  it('is shown with its begin to members, moves, and is withdrawn after a warning, without an event', async () => {
    const t = await setupClients();
    const familyId = await t.make.family({ orgId: t.orgId, name: 'Verdi family' });
    const since = new Date(Date.now() + 7 * 86_400_000);
    const grant = await t.make.grant({ professional: t.bo, familyId, since });
    const before = await events(t, t.orgId);
    const owner = t.http(t.ada);
    const read = async (path: string) => readText((await owner.get(path)).text);
    const begin = `${since.toISOString().slice(0, 10)} ${since.toISOString().slice(11, 19)} UTC`;
    const list = (state: string) => read(t.at(`/clients${state}`));

    expect(await list('')).not.toContain('Verdi');
    for (const state of ['?state=scheduled', '?state=all'])
      expect(await list(state)).toMatch(new RegExp(`Verdi family .*Scheduled Begins on ${begin}`));
    expect(await list('?state=scheduled')).not.toContain('Rossi');
    expect(await read(t.at(''))).toMatch(/Clients 1 /);
    expect(await owner.get(t.at('/search?q=verdi'))).toMatchObject({ to: t.at('/clients?q=verdi&state=all') });
    expect(await read(t.at('/clients/seats/assign'))).not.toContain('Verdi');
    const client = t.at(`/clients/${grant.id}`);
    expect(await read(client)).toMatch(
      new RegExp(`Begins ${begin} .*Scheduled Begins on ${begin} .*has not begun\\. Only active .*Withdraw access`),
    );

    const moveForm = await owner.get(`${client}/move`);
    expect(readText(moveForm.text)).toMatch(new RegExp(`new access begins on ${begin} ?, .*receive nothing`));
    const moved = await owner.submit(moveForm, `${client}/move`, { to: t.ada.personId });
    expect(await read(client)).toMatch(/Withdrawn It never began/);
    const end = await owner.get(`${moved.to}/end`);
    expect(readText(end.text)).toMatch(
      new RegExp(
        `Withdraw Ada Rivers’s access to the Verdi family\\? .*Ada Rivers to Verdi family that begins on ${begin} is withdrawn`,
      ),
    );
    expect(end.text).not.toContain('client.ended');
    expect(await owner.submit(end, `${moved.to}/end`)).toMatchObject({ status: 303, to: moved.to });
    expect(await list('?state=all')).not.toContain('Verdi');
    expect(await read(`${moved.to}/end`)).toContain('This access was withdrawn before it began.');
    expect(await events(t, t.orgId)).toEqual(before);
  });
});

describe('the roster', () => {
  it('is filtered by state, by professional and by a part of a name, in which % is a letter', async () => {
    const t = await setupClients();
    const { orgId } = t;
    const cleo = await t.make.member({ orgId, name: 'Cléo Martin' });
    await t.make.grant({
      professional: cleo,
      familyId: await t.make.family({ orgId, name: '100% Öztürk' }),
      kind: 'neutral',
    });
    await t.make.grant({
      professional: cleo,
      familyId: await t.make.family({ orgId, name: 'Past family' }),
      endsAt: new Date(),
      endReason: 'ended',
    });
    const names = async (query: string) =>
      [
        ...(await t.http(t.ada).get(t.at(`/clients${query}`))).text.matchAll(
          /<th scope="row"[^>]*>[\s\S]*?<bdi>([^<]*)/g,
        ),
      ]
        .map(([, name]) => name)
        .sort();
    expect(await names('')).toEqual(['100% Öztürk', 'Rossi family']);
    expect(await names('?state=ended')).toEqual(['Past family']);
    // A search finds all, unless it says which.
    expect(await names('?q=past')).toEqual(['Past family']);
    expect(await names('?q=past&state=')).toEqual(['Past family']);
    expect(await names('?q=past&state=active')).toEqual([]);
    const ended = (await t.http(t.ada).get(t.at('/clients?state=ended'))).text;
    expect(readText(ended)).toMatch(/ Ended Status Seat Reason .*(Moved to a colleague|Ended)/);
    expect(ended).toContain(`href="${t.at('/clients')}">Clear</a>`);
    expect(await names(`?state=all&professional=${cleo.userId}`)).toEqual(['100% Öztürk', 'Past family']);
    expect(await names('?q=%25')).toEqual(['100% Öztürk']);
    for (const typed of ['öZT', 'ozturk', 'O\u0308ztu\u0308rk'])
      expect(await names(`?q=${encodeURIComponent(typed)}`)).toEqual(['100% Öztürk']);
    expect(await names(`?state=all&q=${encodeURIComponent('cléo')}`)).toEqual(['100% Öztürk', 'Past family']);
    expect(await names('?q=unknown&state=nonsense&after=nonsense')).toEqual([]);
    expect((await t.http(t.ada).get(t.at('/clients?q=a%00b'))).status).toBe(200);
  });

  it('is complete and in order on all pages, also when several entries began at the same moment', async () => {
    const t = await setupClients({ seats: 1_000 });
    await t.owner.pool.query(
      `with f as (insert into family (organization_id, id, name) select $1, gen_random_uuid(), 'Family ' || n
        from generate_series(1, 130) n returning id)
       insert into client_grant (organization_id, professional_id, family_id, kind, since)
       select $1, $2, id, 'attorney', timestamptz '2026-01-01 00:00:00.123456Z' + make_interval(secs =>
         (row_number() over () / 40)::int) from f`,
      [t.orgId, t.bo.userId],
    );
    await t.owner.pool.query(
      `insert into seat (organization_id, grant_id, family_id, given_at)
        select organization_id, id, family_id, since from client_grant
       where organization_id = $1 and id <> $2`,
      [t.orgId, t.grant.id],
    );
    const walk = async (first: string) => {
      const owner = t.http(t.ada);
      const seen: string[] = [];
      let path: string | undefined = first;
      while (path !== undefined) {
        const { text }: { text: string } = await owner.get(path);
        seen.push(
          ...[...text.matchAll(/<th scope="row"[^>]*><a href="[^"]*\/clients\/([\w-]{36})"/g)].map(([, id = '']) => id),
        );
        path = unescaped(/rel="next" href="([^"]*)"/.exec(text)?.[1] ?? '') || undefined;
      }
      return seen;
    };
    const inOrder = async (sql: string) =>
      (await t.owner.pool.query<{ id: string }>(sql, [t.orgId])).rows.map(({ id }) => id);
    const roster = await inOrder('select id from client_grant where organization_id = $1 order by since desc, id desc');
    expect(roster).toHaveLength(131);
    expect(await walk(t.at('/clients'))).toEqual(roster);
    expect(await walk(t.at('/clients/seats'))).toEqual(
      await inOrder('select grant_id as id from seat where organization_id = $1 order by given_at desc, seat.id desc'),
    );
    await t.owner.pool.query(
      `update seat set ended_at = now(), end_reason = 'ended_by_organization' where organization_id = $1`,
      [t.orgId],
    );
    expect(await walk(t.at('/clients/seats/assign'))).toEqual(roster);
    expect((await walk(t.at('/clients/seats?state=ended'))).sort()).toEqual(
      roster.filter((id) => id !== t.grant.id).sort(),
    );
    // What ended last comes first, whenever it began; an end that is planned is none.
    await t.owner.pool.query(
      `update client_grant set status = 'ended', end_reason = 'ended', ends_at = now() - make_interval(secs => n)
       from (select id, (row_number() over (order by random()) / 40)::int as n from client_grant) o
       where organization_id = $1 and client_grant.id = o.id and o.id <> $2`,
      [t.orgId, t.grant.id],
    );
    await t.owner.pool.query(`update client_grant set ends_at = now() + interval '1 day' where id = $1`, [t.grant.id]);
    const ended = await inOrder(
      `select id from client_grant where organization_id = $1 and status = 'ended' order by ends_at desc, id desc`,
    );
    expect(ended).toHaveLength(130);
    expect(await walk(t.at('/clients?state=ended'))).toEqual(ended);
  });

  it('shows names of HTML, of 10,000 characters and of any direction as text', async () => {
    const t = await setupClients();
    const { orgId } = t;
    const evil = '<script>alert(1)</script>"onload="x';
    const grants = [];
    for (const name of [evil, '\u202E'.repeat(10_000), '=cmd|x'])
      grants.push(await t.make.grant({ professional: t.bo, familyId: await t.make.family({ orgId, name }) }));
    const seatId = await t.make.seat({ orgId, grant: grants[0] ?? t.grant });
    const paths = [
      '',
      '/seats',
      '/seats/assign',
      `/seats/${seatId}/end`,
      ...grants.flatMap(({ id }) => [`/${id}`, `/${id}/end`, `/${id}/move`]),
    ];
    for (const path of paths) {
      const page = await t.http(t.ada).get(t.at(`/clients${path}`));
      expect([path, page.status]).toEqual([path, 200]);
      expect(page.text).not.toContain('<script>alert');
      expect(page.text).not.toContain('"onload="');
      // Isolated, so that a right-to-left name cannot reorder the text beside it.
      expect(
        page.text.replace(
          /<(bdi|title|h1)>[^<]*<\/\1>|<a href="[^"]*">[^<]*<\/a>|<span class="visually-hidden">[^<]*<\/span>/g,
          '',
        ),
      ).not.toContain('\u202E');
    }
  });
});
