import { everything, listAuditEntries } from '#domain/audit-log/search.ts';
import type { JudgedPage } from './page.ts';

export const pages: readonly JudgedPage[] = [
  {
    route: 'listAuditEntries',
    picture: 'audit-log',
    async path(t, { orgId, personId }) {
      const key = await t.make.apiKey({ creator: { orgId, userId: personId, roleId: null }, label: 'Nightly export' });
      await t.owner.pool.query(
        `insert into audit_entry (at, organization_id, person_id, key_id, action, status, code, address, count)
         select now() - make_interval(mins => n), $1, $2, $3, u.action, u.status, u.code, '203.0.113.9', u.count
         from (values (1, 'api.getFirmRoster', 200, null, 1), (2, 'api.getFirmOutcomes', 403, 'insufficient_scope',
           1), (3, 'api.rate_limited', 429, 'rate_limited', 12),
           (4, 'a.thing_of_tomorrow', null, null, 1)) u (n, action, status, code, count)`,
        [orgId, personId, key.id],
      );
      await t.make.keyRevoked(key);
      return `/o/${orgId}/audit-log`;
    },
  },
  {
    route: 'listAuditEntries',
    picture: 'audit-log-filtered',
    path: (_t, { orgId }) => `/o/${orgId}/audit-log?result=denied&from=2026-01-01T08:00&zone=America/New_York`,
  },
  {
    route: 'listAuditEntries',
    picture: 'audit-log-nothing-fits',
    path: (_t, { orgId }) => `/o/${orgId}/audit-log?action=role.delete&until=2026-01-01T08:00`,
  },
  { route: 'showUsage', picture: 'usage', path: (_t, { orgId }) => `/o/${orgId}/usage?span=30d` },
  {
    route: 'showAuditEntry',
    picture: 'audit-log-entry',
    async path(t, { orgId }) {
      const filter = { ...everything, action: 'key.revoke' };
      const { entries } = await listAuditEntries(t.owner, orgId, filter, null, 1);
      return `/o/${orgId}/audit-log/${entries[0]?.id}`;
    },
  },
  {
    route: 'showEvidence',
    picture: 'audit-log-evidence',
    async path(t, { orgId }) {
      await t.owner.pool.query('select append_audit_chain(20000)');
      return `/o/${orgId}/audit-log/evidence`;
    },
  },
];
