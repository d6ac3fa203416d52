/** The console as a process: health, metrics, start and stop. */
import { describe, expect, it, vi } from 'vitest';
import { sealedVersion } from '#domain/encryption/envelope.ts';
import { InvalidSettingsError } from '#runtime/errors.ts';
import { mountSecret } from '#test/mounted-secret.ts';
import { testKeySettings, testWebhookSecretKeys } from '#test/secrets.ts';
import { readConfig } from '../../apps/console/config.ts';
import { setupConsole } from './setup.ts';

describe('the console', () => {
  it('answers its health checks, also with an API key, and counts requests by route', async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const headers = { authorization: 'Bearer aln_us_nonsense' };
    for (const path of ['/livez', '/readyz'])
      expect(await t.http().get(path, { headers })).toMatchObject({ status: 200 });
    await t.http(ada).get(`/o/${ada.orgId}`);
    await t.http(ada).post('/account/recovery-codes', {});
    const metrics = await (await fetch(`${t.console.metricsUrl}/metrics`)).text();
    expect(metrics).toMatch(/org_console_request_duration_seconds_count\{operation="showOverview",status="200"\} 1/);
    expect(metrics).toMatch(/org_console_rejected_forms_total\{code="form_out_of_date"\} 1/);
  });

  it('shows the request id of an internal error, and logs the error without names', async () => {
    const t = await setupConsole();
    const ada = await t.enrol({ name: 'Ada Unmistakable' });
    await t.owner.pool.query('alter table console_session rename to console_session_gone');
    const response = await t.http(ada).get(`/o/${ada.orgId}`);
    expect(response.status).toBe(500);
    expect(response.text).toContain(response.headers.get('request-id'));
    expect(response.text).not.toMatch(/console_session|select/);
    const log = t.logLines.join('');
    expect(log).toContain(response.headers.get('request-id'));
    expect(log).not.toContain('Unmistakable');
  });

  it('answers 503 with Retry-After while no database connection is free', {
    timeout: 60_000,
  }, async () => {
    const t = await setupConsole({ DATABASE_POOL_MAX: '2' });
    const people = [await t.enrol(), await t.enrol(), await t.enrol(), await t.enrol()] as const;
    const open = (person: (typeof people)[number]) => t.http(person).get(`/o/${person.orgId}`);
    const locker = await t.owner.pool.connect();
    try {
      await locker.query('begin');
      await locker.query('lock table console_session in access exclusive mode');
      // Two wait for the lock until their statements time out, the others for a connection of those
      // two.
      const responses = await Promise.all(people.map(open));
      expect(responses.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual(
        responses.map(() => [503, '5']),
      );
      for (const { text } of responses) expect(text).toContain('Temporarily unavailable');
    } finally {
      await locker.query('rollback');
      locker.release();
    }
    expect((await open(people[0])).status).toBe(200);
  });

  it('is not ready while it drains, finishes open requests, and can be stopped twice', async () => {
    const t = await setupConsole({ DRAIN_DELAY_MS: '300' });
    const ada = await t.enrol();
    const stopping = t.console.stop();
    const responses = await Promise.all([t.http().get('/readyz'), t.http(ada).get(`/o/${ada.orgId}`)]);
    expect(responses.map(({ status }) => status)).toEqual([503, 200]);
    expect(responses[1].headers.get('connection')).toBe('close');
    await Promise.all([stopping, t.console.stop()]);
    await expect(fetch(`${t.console.url}/livez`)).rejects.toThrow();
  });

  it('takes a new pepper and a new sealing key from their files while it runs', { timeout: 60_000 }, async () => {
    const old = { KEY_PEPPERS: testKeySettings.KEY_PEPPERS, WEBHOOK_SECRET_KEYS: testWebhookSecretKeys };
    const secret = mountSecret(old);
    const t = await setupConsole(secret.settings);
    const ada = await t.enrol();
    const newer = Buffer.from('another secret of the tests, 32b').toString('base64');
    secret.replace({
      KEY_PEPPERS: `9:${newer},${old.KEY_PEPPERS}`,
      WEBHOOK_SECRET_KEYS: `9:${newer},${old.WEBHOOK_SECRET_KEYS}`,
    });
    await vi.waitFor(() => expect(t.config.keys.peppers[0].version).toBe(9), { timeout: 20_000, interval: 100 });
    const visitor = t.http(ada);
    const keys = `/o/${ada.orgId}/keys/new`;
    const key = { name: 'Report', scopes: 'org.read', expiry: 'never', expiresOn: '' };
    expect((await visitor.submit(keys, keys, key)).status).toBe(200);
    const webhooks = `/o/${ada.orgId}/webhooks/new`;
    const webhook = { url: 'http://127.0.0.1:9/hook', eventTypes: ['client.started'], description: '' };
    expect((await visitor.submit(webhooks, webhooks, webhook)).status).toBe(200);
    const made = await t.owner.pool.query<{ pepper: number; sealed: Buffer }>(
      'select (select pepper_version from api_key) as pepper, (select sealed from webhook_secret) as sealed',
    );
    expect(made.rows.map(({ pepper, sealed }) => [pepper, sealedVersion(sealed)])).toEqual([[9, 9]]);
    expect(t.logLines.join('')).not.toContain(newer);
  });

  it('rejects a CONSOLE_URL without https or a host name, and reports every problem at once', () => {
    const good = {
      REGION: 'us',
      CONSOLE_DATABASE_URL: 'postgresql://a:b@localhost/c',
      API_URL: 'https://api.example.org',
      WEBHOOK_SECRET_KEYS: testWebhookSecretKeys,
      ...testKeySettings,
    };
    for (const url of ['https://console.example.org', 'https://console.example.org:8443/', 'http://localhost:8083'])
      expect(readConfig({ ...good, CONSOLE_URL: url }).origin).toBe(url.replace(/\/$/, ''));
    for (const url of [
      'http://console.example.org',
      'https://192.0.2.7',
      'https://[::1]',
      'http://127.0.0.1:8083',
      'https://a.example/x',
      'ftp://a',
      'x',
    ])
      expect(() => readConfig({ ...good, CONSOLE_URL: url })).toThrow(InvalidSettingsError);
    expect(() => readConfig({})).toThrow(
      /REGION[\s\S]*CONSOLE_DATABASE_URL[\s\S]*CONSOLE_URL[\s\S]*WEBHOOK_SECRET_KEYS/,
    );
  });
});
