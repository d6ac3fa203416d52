import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { defaultBaseUrls } from '../../../apps/api/config.ts';
import { openApiDocument } from '../../../apps/api/openapi/document.ts';
import { findBreaks } from './compatibility.ts';

const file = 'apps/api/openapi/openapi.json';

/**
 * What the document lost. After a release an entry is a broken promise and belongs in CHANGELOG
 * too. Before it, components were renamed and written out with which generated clients did not
 * compile; what is sent did not change.
 */
const forgiven = new Set(
  [
    'schemas.Client',
    ...['Client', 'Seat'].map((what) => `schemas.${what}EndedEvent`),
    ...['ClientStarted', 'SeatGiven'].map((what) => `schemas.${what}Event`),
    'parameters.Service-Signature',
    ...['id', 'timestamp', 'signature', 'endpoint', 'attempt', 'sequence'].map((name) => `parameters.webhook-${name}`),
  ].map((component) => `components.${component}: was removed`),
);

/** The document, with types that let a test change it. */
interface Draft {
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into an OpenAPI document at will
  [keyword: string]: any;
}

const getEventSchema = ({ webhooks }: Draft, type: string) =>
  webhooks[type].post.requestBody.content['application/json'].schema;
const getOrg = (draft: Draft) => draft.paths['/v1/orgs/{orgId}'].get;

const rejected: [what: string, change: (draft: Draft) => void, path: string][] = [
  ['a field removed', ({ components }) => delete components.schemas.Organization.properties.slug, 'properties.slug'],
  [
    'a field renamed',
    ({ components }) => rename(components.schemas.Roster.properties, 'clients', 'families'),
    'clients',
  ],
  [
    'a type changed',
    ({ components }) => set(components.schemas.SeatCounts.properties.total, 'type', 'string'),
    'total.type',
  ],
  [
    'a type widened',
    ({ components }) => set(components.schemas.SeatCounts.properties.total, 'type', 'number'),
    'total.type',
  ],
  [
    'a field that may now be null',
    ({ components }) => set(components.schemas.Role.properties.name, 'type', ['string', 'null']),
    'name.type',
  ],
  [
    'a field that can no longer be null',
    ({ components }) => set(components.schemas.Member.properties.title, 'type', 'string'),
    'title.type',
  ],
  ['a field that may now be absent', ({ components }) => components.schemas.Member.required.pop(), 'required'],
  [
    'another format',
    ({ components }) => set(components.schemas.RosterClient.properties.since, 'format', 'date'),
    'since.format',
  ],
  [
    'a narrowed field',
    ({ components }) => set(components.schemas.Role.properties.key, 'maxLength', 20),
    'key.maxLength',
  ],
  [
    'another bound of a number',
    ({ components }) => set(components.schemas.SeatCounts.properties.used, 'maximum', 100),
    'used.maximum',
  ],
  [
    'a bound taken away',
    ({ components }) => delete components.schemas.SeatCounts.properties.used.minimum,
    'used.minimum',
  ],
  [
    'an enum that gains a value',
    ({ components }) => components.schemas.RosterClient.properties.kind.enum.push('coach'),
    'kind.enum',
  ],
  [
    'an enum that loses a value',
    ({ components }) => components.schemas.RosterClient.properties.status.enum.pop(),
    'status.enum',
  ],
  [
    'a union that gains a form',
    ({ components }) => components.schemas.Outcomes.properties.calmMessages.anyOf.push({ type: 'string' }),
    'calmMessages.anyOf',
  ],
  [
    'a closed object',
    ({ components }) => set(components.schemas.Role, 'additionalProperties', false),
    'additionalProperties',
  ],
  ['a removed read', ({ paths }) => delete paths['/v1/orgs/{orgId}/seats'], 'paths./v1/orgs/{orgId}/seats'],
  ['a renamed operation', (draft) => set(getOrg(draft), 'operationId', 'readOrg'), 'get.operationId'],
  [
    'a read that needs another scope',
    (draft) => set(getOrg(draft), 'x-required-scope', 'org.roles.read'),
    'x-required-scope',
  ],
  ['a removed status', (draft) => delete getOrg(draft).responses['304'], 'responses.304'],
  [
    'a removed header',
    ({ components }) => delete components.responses.RateLimited.headers['Retry-After'],
    'headers.Retry-After',
  ],
  ['a header no longer promised', ({ components }) => set(components.headers.ETag, 'required', false), 'ETag.required'],
  [
    'another content type',
    (draft) => rename(getOrg(draft).responses['200'].content, 'application/json', 'text/json'),
    'application/json',
  ],
  [
    'a new parameter that is required',
    (draft) => getOrg(draft).parameters.push({ in: 'query', name: 'at', required: true }),
    'query at',
  ],
  ['a parameter removed', (draft) => getOrg(draft).parameters.pop(), 'header If-None-Match'],
  [
    'a parameter that becomes required',
    ({ components }) => set(components.parameters['If-None-Match'], 'required', true),
    'If-None-Match.required',
  ],
  [
    'a request body where there was none',
    (draft) => set(getOrg(draft), 'requestBody', { content: {} }),
    'get.requestBody',
  ],
  [
    'another way to authenticate',
    ({ components }) =>
      set(components.securitySchemes, 'token', components.securitySchemes.apiKey) &&
      delete components.securitySchemes.apiKey,
    'securitySchemes.apiKey',
  ],
  ['a read without a key', (draft) => set(draft, 'security', []), 'security'],
  ['a removed server', ({ servers }) => servers.pop(), 'servers'],
  ['a removed event', ({ webhooks }) => delete webhooks['seat.given'], 'webhooks.seat.given'],
  [
    'a field of an event removed',
    (draft) => delete getEventSchema(draft, 'seat.ended').properties.data.properties.reason,
    'data.properties.reason',
  ],
  [
    'a header of a delivery removed',
    ({ webhooks }) => webhooks['seat.given'].post.parameters.shift(),
    'header Service-Signature',
  ],
  ['a renamed schema', ({ components }) => rename(components.schemas, 'Metric', 'Share'), 'components.schemas.Metric'],
];

const allowed: [what: string, change: (draft: Draft) => void][] = [
  ['a field more', ({ components }) => set(components.schemas.Organization.properties, 'timeZone', { type: 'string' })],
  [
    'a field more, always there',
    ({ components }) =>
      set(components.schemas.Role.properties, 'rank', { type: 'integer' }) &&
      components.schemas.Role.required.push('rank'),
  ],
  [
    'a field more in an event',
    (draft) => set(getEventSchema(draft, 'seat.given').properties.data.properties, 'kind', { type: 'string' }),
  ],
  ['a read more', ({ paths }) => set(paths, '/v1/orgs/{orgId}/invoices', { get: {} })],
  ['an event more', ({ webhooks }) => set(webhooks, 'member.joined', { post: {} })],
  ['a status more', (draft) => set(getOrg(draft).responses, '410', { description: 'Gone' })],
  ['a header more', ({ components }) => set(components.responses.NotFound.headers, 'Deprecation', { schema: {} })],
  ['a header now promised', ({ components }) => set(components.headers.RateLimit, 'required', true)],
  ['a parameter more that may be left out', (draft) => getOrg(draft).parameters.push({ in: 'query', name: 'at' })],
  [
    'a header of deliveries more',
    ({ webhooks }) =>
      webhooks['seat.given'].post.parameters.push({ in: 'header', name: 'webhook-region', required: true }),
  ],
  [
    'other texts and examples',
    (draft) =>
      set(getOrg(draft), 'summary', 'Another') &&
      set(draft.components.schemas.Role.properties.key, 'description', 'Another'),
  ],
  [
    'a part written out in place of its component',
    (draft) =>
      set(getOrg(draft).responses['200'].content['application/json'], 'schema', draft.components.schemas.Organization),
  ],
];

describe('the comparison of two versions of the document', () => {
  it.each(rejected)('rejects %s', (_what, change, path) => {
    const breaks = findBreaks(
      draftChange(() => {}),
      draftChange(change),
    );
    expect(breaks).not.toEqual([]);
    expect(breaks.join('\n')).toContain(path);
  });

  it.each(allowed)('allows %s', (_what, change) => {
    const before = draftChange(() => {});
    const after = draftChange(change);
    expect(after).not.toEqual(before);
    expect(findBreaks(before, after)).toEqual([]);
  });
});

describe('the document', () => {
  it('has only gained content since its first commit', () => {
    const commits = listCommits(file);
    const texts = commits.map((commit) => git('show', `${commit}:${file}`));
    const versions = [
      ...texts.map((text): object => JSON.parse(text ?? '{}')),
      openApiDocument({ baseUrls: defaultBaseUrls }),
    ];
    const steps = [...commits, 'the working copy'];
    if (commits.length === 0)
      console.log(`  ${file} has no committed version here, so there is nothing to compare with yet`);
    else if (git('rev-parse', '--is-shallow-repository')?.trim() === 'true') {
      console.log('  this clone is shallow, so only the versions in it are compared: fetch the whole history in CI');
    }
    const breaks = versions.slice(1).flatMap((after, index) => {
      const step = steps[index + 1] ?? '';
      const lost = findBreaks(versions[index] ?? {}, after).filter((line) => !forgiven.has(line));
      return lost.map((line) => `${step}: ${line}`);
    });
    expect(breaks).toEqual([]);
  });
});

function draftChange(change: (draft: Draft) => void): Draft {
  const draft = structuredClone(openApiDocument({ baseUrls: defaultBaseUrls }));
  change(draft);
  return draft;
}

function set(target: Draft, name: string, value: unknown): true {
  target[name] = value;
  return true;
}

function rename(target: Draft, from: string, to: string): void {
  target[to] = target[from];
  delete target[from];
}

/**
 * Returns the commits that changed a file, oldest first. A merge is one step, so parallel branches
 * are not compared with each other.
 */
function listCommits(path: string): string[] {
  const log = git('log', '--first-parent', '--format=%H', '--diff-filter=AM', '--', path) ?? '';
  return log.split('\n').filter(Boolean).reverse();
}

/** Returns git's output, or null when there is no repository, no such commit or no such version. */
function git(...words: string[]): string | null {
  try {
    const root = fileURLToPath(new URL('../../../', import.meta.url));
    return execFileSync('git', words, {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 64 << 20,
    });
  } catch {
    return null;
  }
}
