/** The probe of `orgctl doctor`, which `helm test` runs, against a real API, worker and Temporal. */
import { describe, expect, inject, it } from 'vitest';
import { callOrgctl, setupOrgctl } from '#test/orgctl.ts';
import { startTestApi } from '#test/setup.ts';
import { allowSockets } from '#test/socket-guard.ts';
import { mountSettings, startTemporalFront } from '#test/temporal-front.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { startTestWorker } from '#test/worker.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';

const timeout = 60_000;
/** What a frontend of Temporal answers while its history service is unavailable. */
const deadlineExceeded = 4;

interface ProbeSecret {
  organizationId: string;
  key: string;
  webhookId: string;
  webhookSecret: string;
}

describe('the operator’s probe', () => {
  it(
    'reads with its key, is rejected with a key of the other region, and receives one signed event',
    async () => {
      const { probe, run } = await setup();
      const { code, stdout } = await run(probe);
      const isOfProbe = (line: string) => /probe’s key|key of Canada|test event|arrived|signatures/.test(line);
      expect(stdout.split('\n').filter(isOfProbe)).toEqual([
        'ok     a read with the probe’s key answers 200',
        'ok     a key of Canada is rejected with 401, with its region',
        expect.stringMatching(/^ok {5}a worker delivered a test event in \d+ ms$/),
        'ok     it arrived once',
        'ok     both of its signatures verify',
      ]);
      expect(code).toBe(0);
    },
    timeout,
  );

  it(
    'fails with the reason when its key is revoked or its secret differs',
    async () => {
      const { probe, run, orgctl } = await setup();
      expect((await orgctl('key', 'revoke', '--key', probe.key)).code).toBe(0);
      const { code, stdout } = await run({ ...probe, webhookSecret: `whsec_${'A'.repeat(32)}` });
      expect(code).toBe(1);
      expect(stdout).toContain('FAILED a read with the probe’s key answers 401');
      expect(stdout).toContain('FAILED its service_signature, standard_signature failed');
      expect(stdout).not.toContain(probe.key);
      expect(stdout).not.toContain(probe.webhookSecret);
    },
    timeout,
  );

  it(
    'names Temporal when it answers, and starts no workflow',
    async () => {
      const { probe, run } = await setup();
      const front = await startTemporalFront(inject('temporalAddress'));
      front.reject('StartWorkflowExecution', deadlineExceeded);
      const { code, stdout } = await run(probe, mountSettings(front));
      expect(code).toBe(1);
      expect(stdout).toContain('ok     Temporal has the namespace');
      expect(stdout).toContain('FAILED Temporal did not start the test event');
      expect(stdout).toContain('can lack a service');
      expect(stdout).not.toContain('Report this as a bug');
    },
    timeout,
  );

  it('is created once; when it is created again, the earlier key is revoked and its webhook deleted', async () => {
    const { orgctl, owner, createProbe } = await setupProbe();
    const first = (await createProbe()).json<ProbeSecret>();
    const again = await createProbe();
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('A probe exists') });

    const renewed = (await createProbe('--renew', 'yes')).json<ProbeSecret>();

    expect(renewed.organizationId).toBe(first.organizationId);
    // A new type of the contract changes nothing for a probe.
    const types = await owner.pool.query(`select event_types as types from webhook order by created_at`);
    const four = ['client.started', 'client.ended', 'seat.given', 'seat.ended'];
    expect(types.rows).toEqual([{ types: four }, { types: four }]);
    const { rows } = await owner.pool.query(
      `select (select count(*)::int from organization) as organizations, (select count(*)::int from api_key
        where revoked_at is null) as keys,
        (select array_agg(id) from webhook where state <> 'deleted') as webhooks, (select count(*)::int
          from family) as families`,
    );
    expect(rows).toEqual([{ organizations: 1, keys: 1, webhooks: [renewed.webhookId], families: 0 }]);
    expect((await orgctl('key', 'list', '--org', first.organizationId)).json<{ state: string }[]>()).toMatchObject([
      { state: 'revoked' },
      { state: 'valid' },
    ]);
  });

  it('keeps its configuration when the address of a renewal is rejected', async () => {
    const { orgctl, createProbe, env } = await setupProbe();
    const { organizationId } = (await createProbe()).json<ProbeSecret>();
    const rejected = await orgctl('probe', 'create', '--url', 'http://10.0.0.1:8090/', '--renew', 'yes');
    expect(rejected).toMatchObject({ code: 1, stderr: expect.stringContaining('list the address in WEBHOOK_ALLOW') });
    expect(env.WEBHOOK_ALLOW).toBe('127.0.0.0/8');
    expect((await orgctl('key', 'list', '--org', organizationId)).json()).toMatchObject([{ state: 'valid' }]);
  });
});

async function setupProbe() {
  const installation = await setupOrgctl();
  const port = await getFreePort();
  allowSockets('probe', `http://127.0.0.1:${port}`);
  const orgctl = (...args: string[]) => installation.orgctl(...args, '--json');
  const createProbe = (...more: string[]) => orgctl('probe', 'create', '--url', `http://127.0.0.1:${port}/`, ...more);
  return { ...installation, orgctl, createProbe, port };
}

async function setup() {
  const { database, env, orgctl, createProbe, port } = await setupProbe();
  const probe = (await createProbe()).json<ProbeSecret>();
  const api = await startTestApi(database);
  // Only the probe's webhook may reach loopback here.
  await startTestWorker(database, {
    WEBHOOK_ALLOW: '',
    PROBE_WEBHOOK_ID: probe.webhookId,
    PROBE_WEBHOOK_ALLOW: '127.0.0.1',
  });
  const run = async (secret: ProbeSecret, more: object = {}): Promise<{ code: number | null; stdout: string }> => {
    const settings = {
      ORG_API_STATE: temporaryFolder(),
      REGION: 'us',
      API_URL: api.url,
      PROBE_PORT: String(port),
      PROBE_KEY: secret.key,
      PROBE_ORGANIZATION_ID: secret.organizationId,
      PROBE_WEBHOOK_ID: secret.webhookId,
      PROBE_WEBHOOK_SECRET: secret.webhookSecret,
      TEMPORAL_ADDRESS: env.TEMPORAL_ADDRESS ?? '',
      TEMPORAL_NAMESPACE: env.TEMPORAL_NAMESPACE ?? '',
      ...more,
    };
    return callOrgctl(settings, ['doctor']);
  };
  return { probe, run, orgctl };
}
