import { type Noun, OwnRun } from '../command.ts';
import { type DoctorConfig, readConfig } from './config.ts';
import { createFindings, type Finding, showFinding } from './finding.ts';
import { checkNames, checkTrustedProxies } from './network.ts';

/** `orgctl doctor` */
export const doctor: Noun = {
  noun: 'doctor',
  summary: 'check servers, logins, clocks, DNS, proxies and certificates, and say what to do',
  commands: [
    {
      verb: '',
      summary:
        'check what the settings name: PostgreSQL, Redis, Temporal, clocks, DNS, trusted proxies, certificates, ' +
        'and with a probe a read and a delivery; exit code 1 when a check fails',
      options: {},
      run: new OwnRun(async (region, environment) => {
        const findings = await examine(readConfig({ ...environment, REGION: region }));
        const failures = findings.filter(({ state }) => state === 'failed').length;
        return {
          json: { ok: failures === 0, findings },
          text: findings.map(showFinding).join('\n'),
          ...(failures > 0 && { failure: `${failures} of ${findings.length} checks failed.` }),
        };
      }),
    },
  ],
};

/** Runs every check. One that cannot be run is a finding, too. */
async function examine(config: DoctorConfig): Promise<Finding[]> {
  const { region, logins, redis, temporal, probe } = config;
  const checks: Record<string, () => Promise<Finding[]>> = {
    dns: () => checkNames(config.hosts),
    'trusted-proxies': async () => [checkTrustedProxies(config.trustedProxies)],
    postgresql: async () =>
      logins.length === 0
        ? skip('postgresql', 'no login of PostgreSQL is set (DATABASE_URL, API_DATABASE_URL, …)')
        : (await import('./postgresql.ts')).checkPostgres(logins),
    redis: async () =>
      redis === null ? skip('redis', 'REDIS_URL is not set') : (await import('./redis.ts')).checkRedis(redis, region),
    // Temporal's client takes as long to load as everything else.
    temporal: async () =>
      temporal === null
        ? skip('temporal', 'TEMPORAL_ADDRESS is not set')
        : (await import('./temporal.ts')).checkTemporal(temporal),
    probe: async () =>
      probe === null
        ? skip('probe', 'there is no probe (docs/operations/test-a-region.md)')
        : (await import('./probe.ts')).checkProbe(probe, temporal),
  };
  const found = await Promise.all(
    Object.entries(checks).map(([check, run]) =>
      run().catch((error: Error) => [
        createFindings(check).failed(
          `the check could not run: ${error.message.split('\n')[0]}`,
          'Report this as a bug.',
        ),
      ]),
    ),
  );
  return found.flat();
}

const skip = (check: string, message: string): Finding[] => [createFindings(check).skipped(message)];
