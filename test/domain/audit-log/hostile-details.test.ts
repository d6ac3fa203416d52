/** Entries of the audit log with details that no part of the service writes. */
import { expect, it } from 'vitest';
import { everything, findAuditEntry, listAuditEntries } from '#domain/audit-log/search.ts';
import { listTestOutcomes } from '#domain/webhooks/test-event.ts';
import { setupDatabase } from '#test/setup.ts';

it('an entry with hostile details, from a time without constraints, fails no page of the log', async () => {
  const t = await setupDatabase();
  const { orgId } = await t.make.member();
  const webhook = await t.make.webhook({ orgId });
  await t.owner.pool.query(
    `alter table audit_entry drop constraint if exists audit_entry_detail_ids,
       drop constraint if exists audit_entry_detail_size,
       drop constraint if exists audit_entry_detail_object`,
  );
  await t.owner.pool.query('delete from audit_entry');
  const insert = (action: string, detail: unknown) =>
    t.owner.pool.query('insert into audit_entry (organization_id, action, detail) values ($1, $2, $3::jsonb)', [
      orgId,
      action,
      JSON.stringify(detail),
    ]);
  const hostile = ['x', '', '{}', '00000000-0000-0000-0000-00000000000', 7, null, [], {}, '\u2028', 'x'.repeat(20_000)];
  for (const id of hostile)
    await insert('webhook.tested', { webhookId: id, grantId: id, roleId: id, memberId: id, delivered: id, status: id });
  for (const detail of [[1], 1, 'x']) await insert('webhook.tested', detail);
  const db = t.owner;
  const { entries } = await listAuditEntries(db, orgId, everything, null, 50);
  expect(entries.length).toBe(hostile.length + 3);
  for (const filter of [{ objectId: webhook.id }, { text: { ids: [webhook.id], actions: [], exact: 'x' } }])
    await listAuditEntries(db, orgId, { ...everything, ...filter }, null, 50);
  for (const { id } of entries) expect(await findAuditEntry(db, orgId, id)).toMatchObject({ id });
  await insert('webhook.tested', { webhookId: webhook.id, delivered: 'x', status: '1e9', eventType: 'seat.given' });
  const request = { organizationId: orgId, webhookId: webhook.id, by: 'orgctl' } as const;
  expect(await listTestOutcomes(db, request, 5)).toMatchObject([{ delivered: false, status: null }]);
});
