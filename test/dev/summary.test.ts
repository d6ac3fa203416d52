import { expect, it } from 'vitest';
import { formatSummary } from '../../apps/dev/summary.ts';

const stack = {
  region: 'us' as const,
  api: 'http://127.0.0.1:1',
  console: 'http://127.0.0.1:2',
  metrics: 'http://127.0.0.1:3',
  databaseUrl: 'postgres://owner@127.0.0.1:4/us',
  platformDatabaseUrl: 'postgres://org_api_us_us_platform:secret@127.0.0.1:4/us',
  receiver: 'http://127.0.0.1:5',
  temporalAddress: '127.0.0.1:6',
  temporalNamespace: 'org-api-us',
};
const organization = { id: '5a11f000-0000-4000-8000-000000000001', name: 'Harbor' };

it.each([
  ['no organization', []],
  ['an organization without a key', [{ ...organization, ownerUserId: null, sampleKey: null }]],
  ['a sample key', [{ ...organization, ownerUserId: 'usr_ada', sampleKey: 'aln_us_x' }]],
])('npm start prints how to call the platform’s functions once, with %s', (_, organizations) => {
  const started = { stack: { ...stack, organizations }, sampleOwner: null, ends: [], inbox: null, provider: null };
  const text = formatSummary([started], 'stack.json');
  expect(text.split(`psql '${stack.platformDatabaseUrl}'`)).toHaveLength(2);
});

it('npm start names the inbox, in which all mails to members arrive', () => {
  const started = { stack: { ...stack, organizations: [] }, sampleOwner: null, ends: [], provider: null };
  expect(formatSummary([{ ...started, inbox: 'http://127.0.0.1:7/' }], 'stack.json')).toMatch(
    /^ {2}Inbox {6}http:\/\/127\.0\.0\.1:7\/ {3}\(mails/m,
  );
  expect(formatSummary([{ ...started, inbox: null }], 'stack.json')).not.toContain('Inbox');
});
