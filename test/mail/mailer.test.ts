/** The mailer with a real database and mail server: what it sends, waits for and records. */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type pg from 'pg';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { writeInvitation } from '#domain/identity/mail-invitation.ts';
import { mailKinds } from '#domain/mail/kinds.ts';
import { mailsOfActions } from '#domain/mail/notified-actions.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { smtpReply, startMailServer } from '#test/mail-server.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { guardSockets } from '#test/socket-guard.ts';
import { Mailer } from '../../apps/worker/mail/mailer.ts';

interface MailRow {
  state: string;
  attempts: number;
  reply: string | null;
  address: string | null;
  sealed: Buffer | null;
  waitSeconds: number | null;
  facts: object | null;
}

const patient = { timeout: 60_000, interval: 20 };

async function setUp(url: string | null) {
  guardSockets(onTestFinished, 'worker');
  const { owner, make, database } = await setupDatabase();
  const options = { server: parsePostgresUrl(database.urls.worker), applicationName: 'test', poolMax: 2 };
  const worker = await openDatabase({ ...options, connectTimeoutMs: 20_000, statementTimeoutMs: 60_000 });
  onTestFinished(() => worker.close());
  const orgId = await make.organization({ name: 'Müller & Söhne <b>Law</b>' });
  await make.member({ orgId, signedIn: true });
  const outcomes: string[] = [];
  const errors: unknown[] = [];
  const start = () => {
    const mailer = new Mailer({
      pool: worker.pool,
      settings: url === null ? null : createSettings(url),
      keys: () => testSealingKeys,
      onTried: (outcome) => void outcomes.push(outcome),
      onDropped: () => {},
      onError: (cause) => void errors.push(cause),
      everyMs: 20,
    });
    mailer.start();
    onTestFinished(() => mailer.stop());
    return mailer;
  };
  return {
    owner,
    make,
    orgId,
    outcomes,
    errors,
    start,
    async invite(email: string, organizationId = orgId) {
      const { personId, token } = await createEnrolment(owner, { organizationId, email, by: 'orgctl' });
      await owner.change((tx) => writeInvitation(tx, { organizationId, personId, email, token }, testSealingKeys));
      return token;
    },
    rows: async () =>
      (
        await owner.pool.query<MailRow>(
          `select state, attempts, reply, address, sealed, facts,
             extract(epoch from due_at - clock_timestamp())::float as "waitSeconds" from mail order by created_at, id`,
        )
      ).rows,
    makeDue: () => owner.pool.query(`update mail set due_at = now() where state = 'waiting'`),
  };
}

function createSettings(url: string) {
  const sender = { name: 'Org console', address: 'no-reply@mail.example.org' };
  return { url: new URL(url), authorities: null, sender, origin: 'https://console.example.org' };
}

/** Columns whose text a mail may have, addresses, without which there is none, and those of the mails themselves. */
const ofMails = `t.table_name in ('mail', 'notice') or c.column_name in ('display_name', 'time_zone', 'host', 'email')
  or t.table_name = 'organization' and c.column_name = 'name'`;

/** Fills with a text every column of every table that takes it. Returns those that took it. */
async function fillColumns(pool: pg.Pool, text: string): Promise<string[]> {
  const { rows } = await pool.query<{ table: string; column: string; value: string }>(
    `select t.table_name as table, c.column_name as column,
       case c.data_type when 'text' then '$1' when 'jsonb' then 'to_jsonb($1::text)' else 'array[$1]' end as value
     from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
     where t.table_schema = 'public' and t.table_type = 'BASE TABLE' and c.is_generated = 'NEVER'
       and (c.data_type in ('text', 'jsonb') or c.udt_name = '_text') and not (${ofMails})
     order by t.table_name, c.column_name`,
  );
  const filled: string[] = [];
  for (const { table, column, value } of rows) {
    // Keys and choices of a list do not take it.
    const { rowCount } = await pool
      .query(`update "${table}" set "${column}" = ${value}`, [text])
      .catch(() => ({ rowCount: 0 }));
    if (rowCount !== 0) filled.push(`${table}.${column}`);
  }
  return filled;
}

it('mails an invitation whose link works, and keeps neither address nor token', async () => {
  const server = await startMailServer();
  const t = await setUp(server.url);
  const token = await t.invite('new.person@example.org');
  t.start();
  await vi.waitFor(async () => expect(await t.rows()).toMatchObject([{ state: 'sent' }]), patient);
  const [mail] = server.mails;
  expect(mail?.to).toBe('new.person@example.org');
  expect(mail?.parsed.text).toContain(`https://console.example.org/enrol#${token}`);
  expect(mail?.parsed.html).toContain('Müller &amp; Söhne &lt;b&gt;Law&lt;/b&gt;');
  expect(mail?.parsed.headers.some(({ key }) => key === 'list-unsubscribe')).toBe(false);
  expect(await t.rows()).toMatchObject([{ state: 'sent', attempts: 1, address: null, sealed: null }]);
});

it('has the same bytes at a repeat', async () => {
  const server = await startMailServer();
  const t = await setUp(server.url);
  server.rules.onMessage = async () => (server.mails.length < 3 ? smtpReply(451, '4.3.0 Later') : null);
  await t.invite('new.person@example.org');
  t.start();
  for (let n = 1; n <= 2; n += 1) {
    await vi.waitFor(async () => expect(await t.rows()).toMatchObject([{ attempts: n, facts: null }]), patient);
    await t.makeDue();
  }
  await vi.waitFor(async () => expect(await t.rows()).toMatchObject([{ state: 'sent', attempts: 3 }]), patient);
  expect(server.mails).toHaveLength(3);
  expect(new Set(server.mails.map(({ raw }) => raw)).size).toBe(1);
});

it('waits longer after each temporary rejection, and ends with a final one', async () => {
  const server = await startMailServer();
  const t = await setUp(server.url);
  let reply = smtpReply(450, '4.2.1 Later');
  server.rules.onRecipient = () => reply;
  await t.invite('new.person@example.org');
  t.start();
  const waits: number[] = [];
  for (let n = 1; n <= 4; n += 1) {
    const putOff = { attempts: n, reply: '450 4.2.1', facts: null };
    await vi.waitFor(async () => expect(await t.rows()).toMatchObject([putOff]), patient);
    waits.push(Math.ceil(((await t.rows())[0]?.waitSeconds ?? 0) / 60));
    if (n === 4) reply = smtpReply(550, '5.1.1 No such user new.person@example.org');
    await t.makeDue();
  }
  expect(waits).toEqual([1, 5, 15, 30]);
  const ended = { state: 'rejected', reply: '550 5.1.1', address: null, sealed: null };
  await vi.waitFor(async () => expect(await t.rows()).toMatchObject([ended]), patient);
});

it('waits no longer than its rule says when PostgreSQL’s clock was set back', async () => {
  const server = await startMailServer();
  const t = await setUp(server.url);
  for (const [name, attempts, ahead] of [
    ['new', 0, '1 hour'], // due when it was written
    ['tried', 9, '12 hours'],
    ['tried.before', 9, '13 hours'],
  ] as const) {
    const { userId } = await t.make.member({ orgId: t.orgId, signedIn: true }); // each has a queue of its own
    await t.owner.pool.query(
      `insert into mail (kind, person_id, address, attempts, due_at)
       values ('factor.add', $1, $2 || '@example.org', $3, now() + $4::interval)`,
      [userId, name, attempts, ahead],
    );
  }
  await t.owner.pool.query(`delete from mail where kind <> 'factor.add'`); // about the new owners
  t.start();
  const sent = ['new@example.org', 'tried.before@example.org'];
  await vi.waitFor(() => expect(server.mails.map(({ to }) => to)).toEqual(sent), patient);
  const withState = async (wanted: string) => (await t.rows()).filter(({ state }) => state === wanted);
  await vi.waitFor(async () => expect(await withState('sent')).toHaveLength(2), patient);
  expect(await withState('waiting')).toMatchObject([{ attempts: 9 }]);
});

it('tries one mail when the server rejects its sign-in, and gives none up for it', async () => {
  const server = await startMailServer({
    authOptional: false,
    allowInsecureAuth: true,
    onAuth: (_auth, _session, done) => done(smtpReply(535, '5.7.8 Wrong')),
  });
  const t = await setUp(server.url.replace('smtp://', 'smtp://user:secret@'));
  for (const name of ['a', 'b', 'c']) await t.invite(`${name}@example.org`);
  const mailer = t.start();
  await vi.waitFor(async () => expect((await t.rows()).filter(({ reply }) => reply !== null)).toHaveLength(1), patient);
  await wait(1_000); // many passes of the loop
  await mailer.stop();
  expect(t.outcomes).toEqual(['misconfigured']);
  expect(server.countSessions()).toBe(1);
  expect(new Set((await t.rows()).map(({ state }) => state))).toEqual(new Set(['waiting']));
});

it('delays the mail of one address that the server blocks, and pauses when it blocks three in a row', async () => {
  const server = await startMailServer();
  const t = await setUp(server.url);
  server.rules.onRecipient = (address) => (address.startsWith('ok') ? null : smtpReply(550, '5.7.1 Blocked'));
  for (const name of ['a', 'ok1', 'b', 'c', 'ok2', 'd', 'e', 'f', 'g']) await t.invite(`${name}@example.org`);
  await t.owner.pool.query(`update mail set due_at = now() - interval '1 minute' + interval '1 second' * n.line
    from (select id as mail_id, row_number() over (order by created_at, id) as line from mail) n
    where n.mail_id = mail.id`);
  const startedMs = performance.now();
  t.start();
  await vi.waitFor(() => expect(t.outcomes).toHaveLength(8), patient);
  // At most five a second.
  expect(performance.now() - startedMs).toBeGreaterThan(7 * 199);
  expect(t.outcomes.slice(0, 7)).toEqual(['blocked', 'sent', 'blocked', 'blocked', 'sent', 'blocked', 'blocked']);
  expect(t.outcomes[7]).toBe('misconfigured');
  const rows = await t.rows();
  // The first waits for a minute, by itself. The one that shows that it is the sender waits for the repair.
  expect([rows[0]?.waitSeconds, rows[7]?.waitSeconds].map((seconds) => Math.ceil((seconds ?? 0) / 60))).toEqual([1, 5]);
  expect(rows[8]).toMatchObject({ attempts: 0, state: 'waiting' });
});

it('takes the mails of one organization in turn with those of others', async () => {
  const server = await startMailServer();
  const t = await setUp(server.url);
  for (let n = 0; n < 12; n += 1) await t.invite(`flood${n}@example.org`);
  const other = await t.make.organization();
  await t.invite('other@example.org', other);
  await t.make.member({ orgId: other, userId: 'usr_person', signedIn: true });
  await t.owner.pool.query(
    `insert into audit_entry (organization_id, person_id, action) values ($1, 'usr_person', 'password.change')`,
    [other],
  );
  t.start();
  await vi.waitFor(() => expect(server.mails.length).toBeGreaterThanOrEqual(6), patient);
  const first = server.mails.slice(0, 4).map(({ to }) => to);
  expect(first).toContain('other@example.org');
  expect(first).toContain('usr_person@example.org');
  // In order within the organization.
  const flood = server.mails.map(({ to }) => to).filter((to) => to.startsWith('flood'));
  expect(flood).toEqual(flood.map((_, index) => `flood${index}@example.org`));
});

it('offers to turn off with one click what a member may turn off, and nothing else', async () => {
  const server = await startMailServer();
  const t = await setUp(server.url);
  const { id } = await t.make.webhook({ orgId: t.orgId });
  await t.owner.pool.query(`update receiver set failing_since = now() - interval '2 hours' where webhook_id = $1`, [
    id,
  ]);
  await t.owner.pool.query('select record_notices(1000)');
  await t.owner.pool.query(`insert into audit_entry (organization_id, person_id, action)
    select organization_id, person_id, 'audit_log.download' from membership`);
  await t.owner.pool.query(
    `insert into mail (organization_id, kind, person_id, address, about)
     select organization_id, 'webhook.resume', person_id, email, $1 from membership`,
    [id],
  );
  await t.makeDue();
  t.start();
  await vi.waitFor(() => expect(server.mails).toHaveLength(3), patient);
  const stops = server.mails.map(({ parsed }) => parsed.headers.find(({ key }) => key === 'list-unsubscribe')?.value);
  expect(stops.filter(Boolean)).toHaveLength(2);
  const failing = server.mails.find(({ parsed }) => parsed.subject?.includes('failing'));
  const header = (name: string) => failing?.parsed.headers.find(({ key }) => key === name)?.value;
  expect(header('list-unsubscribe')).toMatch(/^<https:\/\/console\.example\.org\/mail\/stop\/[\w-]+\.[\w-]{43}>$/);
  expect(header('list-unsubscribe-post')).toBe('List-Unsubscribe=One-Click');
});

it('does not stop others for a mail whose key is missing', async () => {
  const server = await startMailServer();
  const t = await setUp(server.url);
  await t.invite('first@example.org');
  await t.owner.pool.query(`update mail set sealed = set_byte(sealed, 2, 99)`);
  await t.invite('second@example.org');
  t.start();
  await vi.waitFor(() => expect(server.mails.map(({ to }) => to)).toEqual(['second@example.org']), patient);
  expect(t.errors).toHaveLength(1);
});

it('drops what waits when no mail server is configured', async () => {
  const t = await setUp(null);
  await t.invite('new@example.org');
  await t.owner.pool.query(`update mail set created_at = created_at - interval '2 minutes'`);
  t.start();
  await vi.waitFor(async () => expect(await t.rows()).toMatchObject([{ state: 'dropped', address: null }]), patient);
});

it('sends nothing that a person typed but the organization’s names and a webhook’s host', async () => {
  const server = await startMailServer();
  const t = await setUp(server.url);
  const marker = `Zq${randomUUID().slice(0, 8)}`;
  const hook = await t.make.webhook({ orgId: t.orgId });
  const suspended = await t.make.webhook({ orgId: t.orgId });
  const creator = await t.owner.pool.query<{ id: string }>('select person_id as id from membership');
  const member = { orgId: t.orgId, userId: creator.rows[0]?.id ?? '', roleId: null };
  const key = await t.make.apiKey({ creator: member, expiresAt: new Date(Date.now() + 30 * 86_400_000) });
  await t.make.family({ orgId: t.orgId, name: marker });
  const run = (text: string, values: unknown[] = []) => t.owner.pool.query(text, values);
  await run(`update api_key set created_at = now() - interval '90 days', expires_at = now() + interval '2 days'`);
  await run(`update webhook set state = 'suspended', suspended_reason = 'gone' where id = $1`, [suspended.id]);
  await run(
    `insert into audit_chain (organization_id, month, length, hash)
     values ($1, date_trunc('month', now() at time zone 'UTC') - interval '1 month', 7, sha256('x'))`,
    [t.orgId],
  );
  await run(
    `insert into sso_provider (organization_id, issuer, client_id, secret_sealed, is_required, created_at)
     values ($1, 'https://' || $2, $2, 'x', false, now())`,
    [t.orgId, marker],
  );
  const filled = await fillColumns(t.owner.pool, marker);
  for (const column of [
    'api_key.description',
    'api_key.label',
    'family.name',
    'membership.name',
    'membership.title',
    'role.description',
    'role.name',
    'sso_provider.client_id',
    'webhook.description',
  ])
    expect(filled).toContain(column);
  await run(`update webhook set url = 'https://host.example.org/' || $1 || '?x=' || $1`, [marker]);
  await run(`update receiver set failing_since = now() - interval '2 hours' where webhook_id = $1`, [hook.id]);
  await run(
    `insert into organization_setting (organization_id, display_name, time_zone, security_contact, invitation_domains)
     values ($1, 'Harbor', 'Asia/Tokyo', 'security@example.org', array[$2 || '.example.org', 'example.org'])`,
    [t.orgId, marker.toLowerCase()],
  );
  await run('select record_notices(1000)');
  const changes = { securityContact: { from: `old@example.org`, to: 'security@example.org' }, from: marker, to: false };
  const webhook = { webhookId: suspended.id, isNewBrowser: true, label: marker, changed: ['allowedAddresses', marker] };
  const detail = { ...webhook, ...changes };
  const told = Object.entries(mailsOfActions).flatMap(([action, kinds]) => (typeof kinds === 'string' ? [] : action));
  const evidence = { action: 'audit_log.download', detail: { ...detail, format: 'evidence' } };
  await run(
    `insert into audit_entry (organization_id, person_id, key_id, action, detail)
     select $1, $2, $3, e.action, e.detail from jsonb_to_recordset($4) e (action text, detail jsonb)`,
    [t.orgId, member.userId, key.id, JSON.stringify([...told.map((action) => ({ action, detail })), evidence])],
  );
  const another = await t.make.member({ orgId: t.orgId, name: marker });
  await run(`update membership set status = 'suspended' where person_id = $1`, [another.userId]);
  await t.invite('other@example.org');
  const waiting = (await t.rows()).length;
  await t.makeDue();
  t.start();
  await vi.waitFor(async () => {
    expect((await t.rows()).filter(({ state }) => state === 'waiting')).toEqual([]);
  }, patient);
  expect((await run(`select kind, state from mail where state <> 'sent'`)).rows).toEqual([]);
  expect(server.mails.length).toBe(waiting);
  const { rows: sent } = await t.owner.pool.query<{ kind: string }>('select distinct kind from mail');
  const missing = mailKinds.filter((kind) => !sent.some((one) => one.kind === kind));
  // There was no suspension to end, no address was changed, and the provider was not required.
  expect(missing).toEqual(['sign_in.change_address', 'webhook.resume', 'sso.require']);
  for (const { raw, parsed } of server.mails) {
    const text = `${raw}${parsed.text}${parsed.html}${parsed.subject}`;
    expect(text.toLowerCase()).not.toContain(marker.toLowerCase());
    expect(parsed.subject).not.toBe('');
  }
  const failing = server.mails.find(({ parsed }) => parsed.subject === 'A webhook of Harbor is failing')?.parsed.text;
  expect(failing).toMatch(/Webhook \d+: host\.example\.org, failing since .+ \(Asia\/Tokyo\)/);
});
