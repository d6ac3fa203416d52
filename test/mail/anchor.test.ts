/** The monthly mail with the end of the audit log, which the verifiers of an evidence package take. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startMailServer } from '#test/mail-server.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { allowSockets } from '#test/socket-guard.ts';
import { writeEntries } from '#test/write-entries.ts';
import { Mailer } from '../../apps/worker/mail/mailer.ts';
import { setupConsole } from '../console/setup.ts';
import { link, unpack, verify } from '../console/unpack-evidence.ts';

const patient = { timeout: 60_000, interval: 20 };

it('shows in both programs that a log was computed again, saved as its source or as its text', {
  timeout: 120_000,
}, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const { rows } = await t.owner.pool.query<{ month: string; at: Date }>(
    `select to_char(m, 'YYYY-MM') as month, (m + interval '3 days') at time zone 'UTC' as at
     from find_ended_month('UTC') m`,
  );
  const { month, at } = rows[0] ?? { month: '', at: new Date() };
  const entry = { orgId: ada.orgId, at, personId: ada.personId, action: 'role.change', status: null };
  await writeEntries(
    t.owner,
    Array.from({ length: 12 }, (_, n) => ({ ...entry, detail: { n } })),
  );
  await link(t);
  await t.owner.pool.query('select record_notices(1000)');
  await t.owner.pool.query('update mail set due_at = now()');
  const server = await startMailServer();
  // The mailer runs in the process of the console's test.
  allowSockets('test', server.url);
  const sender = { name: 'Console', address: 'no-reply@mail.example.org' };
  const mailer = new Mailer({
    pool: t.owner.pool,
    settings: { url: new URL(server.url), authorities: null, sender, origin: 'https://console.example.org' },
    keys: () => testSealingKeys,
    onTried: () => {},
    onDropped: () => {},
    onError: (cause) => expect.fail(String(cause)),
    everyMs: 20,
  });
  mailer.start();
  onTestFinished(() => mailer.stop());
  const find = () => server.mails.find(({ parsed }) => parsed.subject?.includes('End of the audit log'));
  await vi.waitFor(() => expect(find()).toBeDefined(), patient);
  const mail = find();
  expect(mail?.to).toBe(ada.email);
  const files = { 'mail.eml': mail?.raw ?? '', 'mail.txt': mail?.parsed.text ?? '' };

  const check = async () => {
    const folder = await unpack(t, ada, `?from=${month}&to=${month}`);
    return Object.entries(files).map(([file, text]) => {
      writeFileSync(path.join(folder, file), text);
      const { exitCode, lines } = verify(folder, file);
      return [exitCode, lines.find((line) => /anchor/.test(line))];
    });
  };
  const compared = 'anchors compared: 1, of other months or positions: 0';
  expect(await check()).toEqual([
    [0, compared],
    [0, compared],
  ]);
  // A person with full rights changes an entry, and computes the chain again.
  await t.owner.pool.query(
    `update audit_entry set detail = '{"n":99}' where organization_id = $1 and detail @> '{"n":4}'`,
    [ada.orgId],
  );
  await t.owner.pool.query(`delete from audit_link where organization_id = $1`, [ada.orgId]);
  await t.owner.pool.query(`delete from audit_chain where organization_id = $1`, [ada.orgId]);
  await t.owner.pool.query(`update audit_progress set linked_to = 0`);
  await link(t);
  expect(await check()).toEqual([
    [1, `NOT INTACT: ${month}, position 12: differs from the anchor of mail.eml`],
    [1, `NOT INTACT: ${month}, position 12: differs from the anchor of mail.txt`],
  ]);
});
