/** The settings of an organization over HTTP, and what its members see of them. */
import { describe, expect, it } from 'vitest';
import { unescaped } from '#test/http-visitor.ts';
import { type Enrolled, shareConsole } from './setup.ts';

const shared = shareConsole();

const at = ({ orgId }: Enrolled, rest = '/settings') => `/o/${orgId}${rest}`;
const nothingSet = { displayName: '', timeZone: '', securityContact: '', invitationDomains: '', sessionHours: '12' };

describe('settings', () => {
  it('show what is wrong with each field, keep what was typed, and are shown when they are saved', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http(ada);
    const wrong = { timeZone: 'Mars', securityContact: 'it desk', invitationDomains: '<b>x', sessionHours: '13' };
    const rejected = await visitor.submit(at(ada), at(ada), { ...nothingSet, ...wrong });
    expect(rejected.status).toBe(422);
    for (const text of [
      'Choose a time zone',
      'Enter a complete email address',
      '“<b>x” is not a domain',
      'value="it desk"',
    ])
      expect(unescaped(rejected.text)).toContain(text);
    const chosen = {
      displayName: 'Harbor & Co',
      timeZone: 'America/Toronto',
      securityContact: 'it@example.org',
      invitationDomains: 'example.org\nexample.com',
      sessionHours: '8',
    };
    expect((await visitor.submit(at(ada), at(ada), chosen)).status).toBe(303);
    const page = await visitor.get(at(ada));
    expect(page.text).toContain('<html lang="en" data-time-zone="America/Toronto">');
    expect(page.text).toContain('<title>Settings · Harbor &amp; Co · Organization console</title>');
    for (const text of ['value="Harbor & Co"', 'value="it@example.org"', '\nexample.com\nexample.org</textarea>'])
      expect(unescaped(page.text)).toContain(text);
    for (const value of ['America/Toronto', '8']) expect(page.text).toContain(`<option value="${value}" selected>`);
    const log = await visitor.get(at(ada, '/audit-log?action=organization.change'));
    const [, entry = ''] = /href="([^"]*\/audit-log\/[0-9a-f-]{36})"/.exec(log.text) ?? [];
    const details = unescaped((await visitor.get(entry)).text.replace(/<[^>]*>/g, ''));
    expect(details).toMatch(/Changed the settings of the organization: Display name, Time zone, Security contact/);
    expect(details).toContain('– → America/Toronto');
    expect(details).toContain('12 → 8');
  });

  it('are read by who manages members, changed by owners only, and closed to others', async () => {
    const t = shared();
    const ada = await t.enrol();
    const manager = await t.enrol({ orgId: ada.orgId, permissions: ['org.members.manage'] });
    const page = await t.http(manager).get(at(ada));
    expect(page.text).toContain('Only an owner can change these settings.');
    expect(page.text).not.toContain('<button type="submit">Save');
    const reader = await t.enrol({ orgId: ada.orgId, permissions: ['org.read'] });
    expect((await t.http(reader).get(at(ada))).status).toBe(403);
  });

  it('put times of the audit log’s CSV into the zone, beside UTC', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http(ada);
    const times = async () => {
      const { text } = await visitor.get(at(ada, '/audit-log/csv?action=key.create'));
      return /\r\n"([^"]*)","([^"]*)"/.exec(text)?.slice(1);
    };
    await t.owner.pool.query(
      `insert into audit_entry (organization_id, at, action) values ($1, '2026-11-01T05:30:00.25Z', 'key.create')`,
      [ada.orgId],
    );
    expect(await times()).toEqual(['2026-11-01T05:30:00.250Z', '2026-11-01T05:30:00+00:00']);
    await visitor.submit(at(ada), at(ada), { ...nothingSet, timeZone: 'America/Toronto' });
    expect(await times()).toEqual(['2026-11-01T05:30:00.250Z', '2026-11-01T01:30:00-04:00']);
  });

  it('name the allowed domains where a member is invited, and reject another address at its field', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http(ada);
    await visitor.submit(at(ada), at(ada), { ...nothingSet, invitationDomains: 'firm.example' });
    const path = at(ada, '/members/invite');
    expect((await visitor.get(path)).text).toContain('Only addresses at firm.example can be invited.');
    const invite = (email: string) => visitor.submit(path, path, { email, name: 'Bo', title: '', roles: ['member'] });
    const rejected = await invite('bo@example.org');
    expect(rejected.status).toBe(422);
    expect(rejected.text).toMatch(/id="field-email-problem">The organization invites only addresses at firm\.example/);
    expect((await invite('bo@firm.example')).status).toBe(200);
  });

  it('close every page of the organization to a member without the passkey that it requires', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http(ada);
    const require = () => visitor.submit(at(ada), at(ada), { ...nothingSet, passkeysRequired: 'on' });
    const first = await require();
    expect([first.status, unescaped(first.text).includes('Add a passkey to your account before')]).toEqual([422, true]);
    await t.owner.pool.query(
      `insert into second_factor (person_id, kind, name, created_at, credential_id, public_key, counter, transports)
       values ($1, 'passkey', 'Laptop', now(), $1, '', 0, '{}')`,
      [ada.personId],
    );
    expect((await require()).status).toBe(303);
    const bo = await t.enrol({ orgId: ada.orgId });
    for (const rest of ['', '/keys', '/settings', '/audit-log/csv']) {
      const page = await t.http(bo).get(at(ada, rest));
      expect([rest, page.status]).toEqual([rest, 403]);
      expect(page.text).toContain('Add a passkey first');
    }
    const account = await t.http(bo).get('/account');
    expect([account.status, account.text.includes('Add a passkey')]).toEqual([200, true]);
    expect((await visitor.get(at(ada))).status).toBe(200);
  });
});
