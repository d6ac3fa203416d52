/** The audit log over HTTP: filters, one entry, and CSV files of any length. */
import { get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { unescaped } from '#test/http-visitor.ts';
import { writeEntries } from '#test/write-entries.ts';
import { byteOrderMark } from '../../apps/console/web/csv.ts';
import { type ConsoleInstallation, type Enrolled, setupConsole } from './setup.ts';
import { insertWebhook } from './webhook-stories.ts';

const getLogPath = ({ orgId }: Pick<Enrolled, 'orgId'>, rest = '') => `/o/${orgId}/audit-log${rest}`;
const countRows = (text: string) => text.match(/<th scope="row"/g)?.length ?? 0;

/** Inserts answered reads, one per second, the newest a second ago. */
const writeReads = (t: ConsoleInstallation, orgId: string, count: number) =>
  t.owner.pool.query(
    `insert into audit_entry (at, organization_id, action, status)
      select now() - make_interval(secs => n), $1, 'api.getOrg', 200 from generate_series(1, $2) n`,
    [orgId, count],
  );

describe('the audit log', () => {
  it('has page links in both directions that keep the filter', async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    await writeReads(t, ada.orgId, 120);
    const visitor = t.http(ada);
    const findLink = (text: string, rel: string) =>
      unescaped(new RegExp(`<a rel="${rel}" href="([^"]*)"`).exec(text)?.[1] ?? '');
    const pages = [await visitor.get(getLogPath(ada, '?action=api.getOrg'))];
    for (
      let next = findLink(pages[0]?.text ?? '', 'next');
      next !== '';
      next = findLink(pages.at(-1)?.text ?? '', 'next')
    ) {
      expect(next).toContain('action=api.getOrg');
      pages.push(await visitor.get(next));
    }
    expect(pages.map(({ text }) => countRows(text))).toEqual([50, 50, 20]);
    const back = await visitor.get(findLink(pages[2]?.text ?? '', 'prev'));
    const listIds = (text: string) => text.match(/\/audit-log\/[0-9a-f-]{36}/g);
    expect(listIds(back.text)).toEqual(listIds(pages[1]?.text ?? ''));
    const first = await visitor.get(findLink(back.text, 'prev'));
    expect(listIds(first.text)).toEqual(listIds(pages[0]?.text ?? ''));
    expect(findLink(first.text, 'prev')).toBe('');
  });

  it('shows the page without its filter when a link is malformed, and no error', async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    await writeReads(t, ada.orgId, 3);
    for (const query of [
      '?key=x&person=%00&action=%3Cb%3E&result=no&from=yesterday&until=2026-99-99T00:00&zone=Mars/Olympus&at=older_x',
      '?at=older_2026-13-40T00:00:00.000000Z_00000000-0000-0000-0000-000000000000',
      '?from=2026-02-30T10:00&zone=Mars/Olympus',
      `?person=${'x'.repeat(5000)}`,
    ]) {
      const response = await t.http(ada).get(getLogPath(ada, query));
      expect([query, response.status]).toEqual([query, 200]);
      expect(countRows(response.text)).toBeGreaterThanOrEqual(3);
    }
  });

  it('reports an invalid time in the filter, and downloads no file for it', async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const { text } = await t.http(ada).get(getLogPath(ada, '?from=xx'));
    expect(text).toContain('Enter a date and a time. This filter was not applied.');
    expect((await t.http(ada).get(getLogPath(ada, '/csv?from=xx'))).to).toBe(getLogPath(ada, '?from=xx'));
  });

  it('reads times in the zone of the address', async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const at = new Date('2026-07-01T12:00:30Z');
    const [id] = await writeEntries(t.owner, [{ orgId: ada.orgId, at }]);
    const shows = async (from: string, until: string, zone: string) =>
      (await t.http(ada).get(getLogPath(ada, `?from=${from}&until=${until}&zone=${zone}`))).text.includes(`${id}`);
    expect(await shows('2026-07-01T12:00', '2026-07-01T12:01', '')).toBe(true);
    expect(await shows('2026-07-01T08:00', '2026-07-01T08:01', 'America/New_York')).toBe(true);
    expect(await shows('2026-07-01T12:00', '2026-07-01T12:01', 'America/New_York')).toBe(false);
    // Fixed offsets, as browsers name the zone of a system without an IANA name.
    for (const zone of ['+02:00', 'GMT+02:00', 'Etc/GMT-2']) {
      const query = encodeURIComponent(zone);
      expect([zone, await shows('2026-07-01T14:00', '2026-07-01T14:01', query)]).toEqual([zone, true]);
      expect([zone, await shows('2026-07-01T12:00', '2026-07-01T12:01', query)]).toEqual([zone, false]);
    }
  });

  it('applies no time in an unknown zone, says so, and names the zone in which times are read', async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const webhook = await insertWebhook(t, ada);
    const visitor = t.http(ada);
    const lists = ['audit-log', 'deliveries', `webhooks/${webhook.id}/deliveries`];
    const range = `webhooks/${webhook.id}/redeliver/review`;
    const readZone = (text: string) => [
      /name="zone" value="([^"]*)"/.exec(text)?.[1],
      /data-zone-name>([^<]*)</.exec(text)?.[1],
    ];
    for (const zone of ['Mars/Olympus', 'UTC+2', '+02:00:30', '+25:00', 'x'.repeat(100), '2026-01-01T00:00[UTC]'])
      for (const path of [...lists, range]) {
        const query = new URLSearchParams({ what: 'range', from: '2026-07-01T12:00', until: '2026-07-01T12:01', zone });
        const { text } = await visitor.get(`/o/${ada.orgId}/${path}?${query}`);
        const shown = zone.length > 64 ? 'unknown' : zone;
        const problems = text.split(`The time zone “${shown}” is unknown. Enter the time in UTC.`).length - 1;
        expect([zone, path, problems, ...readZone(text)]).toEqual([zone, path, 2, 'UTC', 'UTC']);
      }
    for (const path of lists) {
      // A time without a zone is one of UTC, also where a script would fill in the viewer's.
      const { text } = await visitor.get(`/o/${ada.orgId}/${path}?from=2026-07-01T12:00`);
      expect([path, ...readZone(text)]).toEqual([path, 'UTC', 'UTC']);
      expect(readZone((await visitor.get(`/o/${ada.orgId}/${path}`)).text)[0]).toBe('');
    }
    const csv = '?from=2026-07-01T12%3A00&zone=Mars%2FOlympus';
    expect((await visitor.get(getLogPath(ada, `/csv${csv}`))).to).toBe(getLogPath(ada, csv));
  });

  it('opens one of its entries, and answers 404 for another organization’s', async () => {
    const t = await setupConsole();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const key = await t.make.apiKey({
      creator: { orgId: ada.orgId, userId: ada.personId, roleId: null },
      label: 'Report',
    });
    const theirs = await t.make.organization();
    const entry = { personId: ada.personId, keyId: key.id, action: 'api.getFirmRoster', address: '203.0.113.5' };
    const [own, others] = await writeEntries(t.owner, [
      { orgId: ada.orgId, ...entry, status: 403, code: 'insufficient_scope' },
      { orgId: theirs, ...entry },
    ]);
    const page = await t.http(ada).get(getLogPath(ada, `/${own}`));
    expect(page.status).toBe(200);
    for (const part of [
      'Ada Rivers',
      'Report',
      'Was denied access to the roster of clients',
      '403 insufficient_scope',
      '203.0.113.5',
      `${own}`,
    ])
      expect(page.text).toContain(part);
    expect((await t.http(ada).get(getLogPath(ada, `/${others}`))).status).toBe(404);
    expect((await t.http(ada).get(getLogPath(ada))).text).not.toContain(`${others}`);
    expect((await t.http(ada).get(getLogPath(ada, '/csv'))).text).not.toContain(`${others}`);
  });
});

/** Inserts entries about an assigned seat and a paused webhook. */
async function setupObjects() {
  const t = await setupConsole();
  const ada = await t.enrol({ name: 'Ada Rivers' });
  const { orgId } = ada;
  const professional = { orgId, userId: ada.personId, roleId: null };
  const familyId = await t.make.family({ orgId, name: 'Nguyen' });
  const grant = await t.make.grant({ professional, familyId });
  const webhook = await t.make.webhook({ orgId, description: 'Case management' });
  const [seatLine, webhookLine] = await writeEntries(t.owner, [
    {
      orgId,
      personId: ada.personId,
      action: 'seat.give',
      status: null,
      detail: { grantId: grant.id },
      address: '203.0.113.9',
    },
    { orgId, action: 'webhook.pause', status: null, detail: { webhookId: webhook.id } },
  ]);
  return { ...t, ada, orgId, grant, webhook, seatLine: `${seatLine}`, webhookLine: `${webhookLine}` };
}

describe('an entry of the audit log', () => {
  it('names its object and links it', async () => {
    const t = await setupObjects();
    const { text } = await t.http(t.ada).get(getLogPath(t.ada));
    expect(text).toContain(
      `Assigned a seat to <a href="/o/${t.orgId}/clients/${t.grant.id}"><bdi>the Nguyen family</bdi></a>`,
    );
    expect(text).toContain(
      `Paused webhook <a href="/o/${t.orgId}/webhooks/${t.webhook.id}"><bdi>Case management</bdi></a>`,
    );
    expect(text).toContain(`href="/o/${t.orgId}/members/person/${t.ada.personId}"><bdi>Ada Rivers</bdi></a>`);
  });

  it('names no family to a member who may not see clients, nor finds it by that name', async () => {
    const t = await setupObjects();
    const auditor = await t.enrol({ orgId: t.orgId, permissions: ['org.activity.read'] });
    for (const rest of ['', '/csv', `/${t.seatLine}`, '?q=Nguyen']) {
      const { status, text } = await t.http(auditor).get(getLogPath(t.ada, rest));
      expect(status).toBe(200);
      // What the auditor typed comes back in the field, its chip and links.
      const own = /value="Nguyen"|q=Nguyen|Search:\s*<bdi>Nguyen<\/bdi>/g;
      expect(text.replaceAll(own, '')).not.toContain('Nguyen');
    }
    expect((await t.http(auditor).get(getLogPath(t.ada, '?q=Nguyen'))).text).not.toContain(t.seatLine);
    expect((await t.http(t.ada).get(getLogPath(t.ada, '/csv'))).text).toContain('Assigned a seat to the Nguyen family');
  });

  it('is found by text, object and address, and a malformed address is reported', async () => {
    const t = await setupObjects();
    const finds = async (query: string) => {
      const { text } = await t.http(t.ada).get(getLogPath(t.ada, `?${query}`));
      return [t.seatLine, t.webhookLine].map((id) => text.includes(id));
    };
    expect(await finds('q=nguyen')).toEqual([true, false]);
    expect(await finds('q=Case+man')).toEqual([false, true]);
    expect(await finds('q=paused')).toEqual([false, true]);
    expect(await finds('q=100%25')).toEqual([false, false]);
    expect(await finds(`object=${t.grant.id}`)).toEqual([true, false]);
    expect(await finds(`object=${t.grant.id.toUpperCase()}`)).toEqual([true, false]);
    expect(await finds(`q=${t.grant.id.toUpperCase()}`)).toEqual([true, false]);
    expect(await finds(`object=${t.webhook.id}&action=webhook.pause`)).toEqual([false, true]);
    expect(await finds('address=203.0.113.9')).toEqual([true, false]);
    expect(await finds('address=203.0.113.0/24&q=Ada')).toEqual([true, false]);
    expect((await t.http(t.ada).get(getLogPath(t.ada, '?address=203.0'))).text).toContain(
      'Enter an IP address or a range',
    );
    const file = await t.http(t.ada).get(getLogPath(t.ada, '/csv?q=Nguyen'));
    expect([file.text.includes(t.seatLine), file.text.includes(t.webhookLine)]).toEqual([true, false]);
    const { rows } = await t.owner.pool.query(`select detail from audit_entry where action = 'audit_log.download'`);
    expect(rows).toEqual([{ detail: { hasText: true } }]);
    await t.http(t.ada).get(getLogPath(t.ada, '/csv?object=Nguyen'));
    await t.http(t.ada).get(getLogPath(t.ada, `/csv?object=${t.grant.id}`));
    const { rows: later } = await t.owner.pool.query(
      `select detail from audit_entry where action = 'audit_log.download' order by id desc limit 2`,
    );
    expect(later).toEqual([{ detail: { objectId: t.grant.id } }, { detail: { hasObject: true } }]);
  });

  it('of a person with any id is found by it, on the page and in the file', async () => {
    const t = await setupObjects();
    for (const id of ['U-17', 'ünï "quoted" <b>', 'two words', '日'.repeat(255)]) {
      await t.owner.pool.query('insert into person (id) values ($1)', [id]);
      await t.owner.pool.query(
        `insert into membership (organization_id, person_id, name, email, status)
          values ($1, $2, 'Imported', 'i@example.org', 'active')`,
        [t.orgId, id],
      );
      const [line = ''] = await writeEntries(t.owner, [{ orgId: t.orgId, personId: id }]);
      for (const field of ['person', 'object', 'q'])
        for (const list of ['', '/csv']) {
          const { text } = await t
            .http(t.ada)
            .get(getLogPath(t.ada, `${list}?${new URLSearchParams({ [field]: id })}`));
          const found = [line, t.seatLine, t.webhookLine].map((entry) => text.includes(entry));
          expect([field, id, list, ...found]).toEqual([field, id, list, true, false, false]);
        }
    }
  });

  it('is on a page that states how long entries are kept', async () => {
    const t = await setupObjects();
    expect((await t.http(t.ada).get(getLogPath(t.ada))).text).not.toContain('Entries are kept');
    await t.owner.pool.query(`select drop_old_audit_entries(730)`);
    expect((await t.http(t.ada).get(getLogPath(t.ada))).text).toContain('Entries are kept for at least 730 days');
  });
});

describe('an export of the audit log', () => {
  it('has the entries of the filter as text that no spreadsheet runs as a formula, and records its download', async () => {
    const t = await setupConsole();
    const ada = await t.enrol({ name: '=HYPERLINK("http://evil.example")' });
    const creator = { orgId: ada.orgId, userId: ada.personId, roleId: null };
    const { id } = await t.make.apiKey({ creator, label: '＠SUM(1)\t=2' });
    await writeEntries(t.owner, [
      {
        orgId: ada.orgId,
        personId: ada.personId,
        keyId: id,
        address: '2001:db8::1',
        at: new Date('2026-11-20T08:00:00.123Z'),
      },
      { orgId: ada.orgId, personId: ada.personId, action: '+danger', status: null, detail: { x: ';=1' } },
    ]);
    const file = await t.http(ada).get(getLogPath(ada, `/csv?person=${ada.personId}`));
    expect(file.status).toBe(200);
    expect(file.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    expect(file.headers.get('content-disposition')).toMatch(/^attachment; filename="audit-log-\d{4}-\d\d-\d\d\.csv"$/);
    // fetch() removes the byte order mark, as a reader does; the bytes are checked below.
    const lines = file.text.split('\r\n');
    expect(lines[0]?.replace(byteOrderMark, '')).toMatch(
      /^"time_utc","time_local","actor","description","action","result",/,
    );
    expect(file.text).toContain('"2026-11-20T08:00:00.123Z"');
    expect(file.text).toContain(`"'=HYPERLINK(""http://evil.example"")"`);
    expect(file.text).toContain(`"'＠SUM(1)\t'=2"`);
    expect(file.text).toContain(`"'+danger"`);
    expect(file.text).toContain(`{""x"":"";'=1""}`);
    expect(file.text).not.toMatch(/(^|,)"?\s*[=+\-@＝＋－＠]/m);
    expect(lines.at(-1)).toBe('');
    const { rows } = await t.owner.pool.query(
      `select person_id, detail, host(address) as address from audit_entry where action = 'audit_log.download'`,
    );
    expect(rows).toEqual([{ person_id: ada.personId, detail: { personId: ada.personId }, address: '127.0.0.1' }]);
  });

  it('begins with a byte order mark, and has only headings for an empty filter', async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const cookie = [...t.http(ada).jar].map((pair) => pair.join('=')).join('; ');
    const response = await fetch(`${t.origin}${getLogPath(ada, '/csv?action=role.delete')}`, { headers: { cookie } });
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes.subarray(0, 3).toString('hex')).toBe('efbbbf');
    expect(bytes.toString().match(/\r\n/g)?.length).toBe(1);
  });

  it('is rejected without the permission, and records nothing', async () => {
    const t = await setupConsole();
    const bo = await t.enrol({ permissions: ['org.read'] });
    expect((await t.http(bo).get(getLogPath(bo, '/csv'))).status).toBe(403);
    expect((await t.owner.pool.query(`select from audit_entry where action = 'audit_log.download'`)).rows).toEqual([]);
  });

  it('answers HEAD with its headers, and records nothing', async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    await writeReads(t, ada.orgId, 300);
    const head = await t.http(ada).get(getLogPath(ada, '/csv'), { method: 'HEAD' });
    expect([head.status, head.headers.get('content-type'), head.text]).toEqual([
      200,
      'text/csv; charset=utf-8; header=present',
      '',
    ]);
    expect(head.headers.get('content-disposition')).toMatch(/^attachment; filename="audit-log-/);
    const downloads = () => t.owner.pool.query(`select from audit_entry where action = 'audit_log.download'`);
    expect((await downloads()).rows).toEqual([]);
    // The request read nothing from the table either: without the table it answers the same, and a
    // GET does not.
    await t.owner.pool.query('alter table audit_entry rename to audit_entry_moved');
    expect((await t.http(ada).get(getLogPath(ada, '/csv'), { method: 'HEAD' })).status).toBe(200);
    expect((await t.http(ada).get(getLogPath(ada, '/csv'))).status).toBe(500);
    await t.owner.pool.query('alter table audit_entry_moved rename to audit_entry');
    const bo = await t.enrol({ permissions: ['org.read'] });
    expect((await t.http(bo).get(getLogPath(bo, '/csv'), { method: 'HEAD' })).status).toBe(403);
  });

  it.each(['close', 'reset'] as const)(
    'whose browser disconnects (%s) causes no error and leaves no statement running',
    {
      timeout: 120_000,
    },
    async (how) => {
      const t = await setupConsole();
      const ada = await t.enrol();
      await writeReads(t, ada.orgId, 60_000);
      const cookie = [...t.http(ada).jar].map((pair) => pair.join('=')).join('; ');
      // Often enough that some clients disconnect while a statement runs and others while the
      // socket is full.
      for (let n = 0; n < 5; n += 1) {
        const socket = connect(Number(new URL(t.origin).port), 'localhost');
        socket.write(`GET ${getLogPath(ada, '/csv')} HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookie}\r\n\r\n`);
        let taken = 0;
        await new Promise<void>((resolve) => {
          socket.on('data', ({ length }) => {
            taken += length;
            if (taken > 100_000 * n) resolve();
          });
        });
        if (how === 'reset') socket.resetAndDestroy();
        else socket.destroy();
      }
      const ended = () => t.logLines.filter((line) => line.includes('"operation":"downloadAuditLog"')).length;
      await expect.poll(ended, { timeout: 20_000 }).toBe(5);
      const countBusy = async () => {
        const { rows } = await t.owner.pool.query<{ busy: number }>(
          `select (count(*) filter (where state <> 'idle'))::int as busy from pg_stat_activity
           where datname = current_database() and application_name = 'org-console'`,
        );
        return rows[0]?.busy;
      };
      await expect.poll(countBusy, { timeout: 20_000 }).toBe(0);
      expect(t.logLines.filter((line) => JSON.parse(line).level >= 40)).toEqual([]);
      expect((await t.http(ada).get(getLogPath(ada))).status).toBe(200);
    },
  );

  it('logs an error when the database cuts it off, and the download is incomplete', {
    timeout: 120_000,
  }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    await writeReads(t, ada.orgId, 60_000);
    const cookie = [...t.http(ada).jar].map((pair) => pair.join('=')).join('; ');
    const request = get(`${t.origin}${getLogPath(ada, '/csv')}`, { headers: { cookie } });
    const response = await new Promise<IncomingMessage>((resolve) => request.once('response', resolve));
    await new Promise((resolve) => response.once('readable', resolve));
    await t.owner.pool.query('alter table audit_entry rename to audit_entry_moved');
    const ended = new Promise((resolve) => response.once('error', resolve));
    response.resume();
    expect(await ended).toMatchObject({ code: 'ECONNRESET' });
    const isTold = () =>
      t.logLines.some((line) => line.includes('"internal error"') && line.includes('downloadAuditLog'));
    await expect.poll(isTold, { timeout: 20_000 }).toBe(true);
  });

  it('of 150,000 entries waits for its reader, and stops reading from the database after the reader disconnects', {
    timeout: 120_000,
  }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    await writeReads(t, ada.orgId, 150_000);
    const cookie = [...t.http(ada).jar].map((pair) => pair.join('=')).join('; ');
    const request = get(`${t.origin}${getLogPath(ada, '/csv')}`, { headers: { cookie } });
    request.on('error', () => {});
    const response = await new Promise<IncomingMessage>((resolve) => request.once('response', resolve));
    await new Promise((resolve) => response.once('readable', resolve));
    // The client does not read: buffers fill, and the console stops reading from the database.
    const ofConsole = async () => {
      const { rows } = await t.owner.pool.query<{ last: string; active: number }>(
        `select max(query_start)::text as last, (count(*) filter (where state = 'active'))::int as active
         from pg_stat_activity where datname = current_database() and application_name = 'org-console'`,
      );
      return JSON.stringify(rows[0]);
    };
    let paused = '';
    const standsStill = async () => {
      const before = paused;
      paused = await ofConsole();
      return paused === before && paused.includes('"active":0');
    };
    await expect.poll(standsStill, { timeout: 60_000, interval: 500 }).toBe(true);
    const isOver = () => t.logLines.some((line) => line.includes('downloadAuditLog'));
    expect(isOver()).toBe(false);
    request.destroy();
    await expect.poll(isOver, { timeout: 20_000 }).toBe(true);
    expect(await ofConsole()).toBe(paused);
  });
});
