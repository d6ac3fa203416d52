/** The API's settings. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { InvalidSettingsError } from '#runtime/errors.ts';
import { testKeySecrets, testKeySettings } from '#test/secrets.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { readConfig } from '../../../apps/api/config.ts';

const needed = { REGION: 'us', API_DATABASE_URL: 'postgresql://api:pw@localhost/org_api', ...testKeySettings };

function listProblems(environment: Record<string, string>): readonly string[] {
  try {
    readConfig(environment);
  } catch (error) {
    if (error instanceof InvalidSettingsError) return error.problems;
  }
  return [];
}

it('the configuration has defaults for everything except region, database and key secrets, and is frozen', () => {
  const config = readConfig(needed);
  expect(config).toMatchObject({ region: 'us', port: 8080, metricsPort: 9090, redis: null, otlpEndpoint: null });
  expect(config.keys).toEqual(testKeySecrets);
  expect(Object.isFrozen(config)).toBe(true);
});

it('the configuration reports every problem at once by name, without a value', () => {
  const secret = 'hunter2-hunter2';
  const wrong: Record<string, string> = {
    REGION: secret,
    API_DATABASE_URL: `http://${secret}`,
    REDIS_URL: secret,
    KEY_PEPPERS: secret,
    KEY_TAG_SECRETS: secret,
    BASE_URL_US: secret,
    BASE_URL_CA: `ftp://${secret}`,
    PORT: `${secret}1`,
    METRICS_PORT: '70000',
    TRUSTED_PROXIES: `10.0.0.0/33,${secret}`,
    DATABASE_POOL_MAX: '0',
    DRAIN_DELAY_MS: '-1',
    LOG_LEVEL: secret,
    OTEL_EXPORTER_OTLP_ENDPOINT: secret,
  };
  const problems = listProblems(wrong);
  for (const name of Object.keys(wrong))
    expect(
      problems.some((problem) => problem.startsWith(name)),
      name,
    ).toBe(true);
  expect(problems.join('\n')).not.toContain('hunter2');
});

// `10.0.0.0/` was once parsed as a block of zero bits, which trusted every address.
it.each(['10.0.0.0/', '10.0.0.0/a', '10.0.0', '10.0.0.0/8/8', '::1/129', 'proxy.example'])(
  'rejects %s as a trusted proxy',
  (proxy) => {
    expect(listProblems({ ...needed, TRUSTED_PROXIES: proxy })).toEqual([expect.stringMatching(/^TRUSTED_PROXIES: /)]);
  },
);

it('the configuration says what each missing setting is for, and treats an empty one as missing', () => {
  const problems = listProblems({ REGION: '', KEY_PEPPERS: '' });
  expect(problems).toEqual([
    expect.stringMatching(/^REGION is missing: /),
    expect.stringMatching(/^API_DATABASE_URL is missing: /),
    expect.stringMatching(/^KEY_PEPPERS is missing: /),
    expect.stringMatching(/^KEY_TAG_SECRETS is missing: /),
  ]);
});

it('the configuration reads any setting from the file in NAME_FILE without the trailing newline; the setting itself wins', () => {
  const folder = temporaryFolder();
  const file = path.join(folder, 'secret');
  writeFileSync(file, `${testKeySettings.KEY_PEPPERS}\n`);
  const { KEY_PEPPERS: _, ...rest } = needed;
  expect(readConfig({ ...rest, KEY_PEPPERS_FILE: file }).keys.peppers).toEqual(testKeySecrets.peppers);
  expect(readConfig({ ...needed, KEY_PEPPERS_FILE: path.join(folder, 'none') }).keys.peppers).toEqual(
    testKeySecrets.peppers,
  );
  expect(listProblems({ ...rest, KEY_PEPPERS_FILE: path.join(folder, 'none') })).toEqual([
    expect.stringMatching(/^KEY_PEPPERS_FILE: the file cannot be read \(ENOENT\)/),
    expect.stringMatching(/^KEY_PEPPERS is missing/),
  ]);
});

it('the configuration rejects two peppers of one version, and one that is too short', () => {
  const long = Buffer.alloc(32, 7).toString('base64');
  expect(listProblems({ ...needed, KEY_PEPPERS: `1:${Buffer.alloc(8).toString('base64')}` })).toHaveLength(1);
  expect(listProblems({ ...needed, KEY_PEPPERS: `1:${long},1:${long}` })).toHaveLength(1);
});
