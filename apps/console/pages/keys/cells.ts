import { dayMs } from '#domain/contract/durations.ts';
import type { KeyUsage } from '#domain/keys/list.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { chips } from '../../components/chips.ts';
import { badge } from '../../components/notice.ts';
import { keyStatus } from '../../components/status.ts';
import type { Column } from '../../components/table.ts';
import { displayName, truncate } from '../../components/text.ts';
import { dayOrTime, relativeTime } from '../../components/time.ts';
import type { Page } from '../../web/response.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** A key expires soon from this many days before its expiry. */
const soonDays = 14;
/** A key is unused after this many days without a call. */
const unusedDays = 30;

/** Returns a key's name, or its prefix when it has none. */
export const keyName = ({ label, hint }: Pick<KeyUsage, 'label' | 'hint'>): Html =>
  label === '' ? html`<code class="hint">${hint}</code>` : displayName(label);

/** What a key that is not valid is, after “This key”. */
export const notValid = { revoked: 'is revoked', expired: 'has expired', inactive: 'is inactive' } as const;

export const keyHintCell = ({ hint }: Pick<KeyUsage, 'hint'>): Html => html`<code class="hint">${hint}</code>`;

/** Returns the status of a key at `now`. */
export const renderStatus = (key: KeyUsage, now: Date): Html => keyStatus(key, isExpiringSoon(key, now));

/** Returns whether a key expires soon and is not replaced by another. */
export const isExpiringSoon = ({ expiresAt, state, successorId }: KeyUsage, now: Date): boolean =>
  state === 'valid' &&
  successorId === null &&
  expiresAt !== null &&
  expiresAt.getTime() - now.getTime() < soonDays * dayMs;

/** Returns whether a replaced key was used after its replacement, among the `validKeys`. */
export function isUsedAfterRotation({ successorId, lastUsedAt }: KeyUsage, validKeys: readonly KeyUsage[]): boolean {
  const successor = validKeys.find(({ id }) => id === successorId);
  return successor !== undefined && lastUsedAt !== null && lastUsedAt.getTime() > getLastUse(successor);
}

export const keyBreadcrumbs = (visit: MemberVisit, key: KeyUsage): Page['breadcrumbs'] => [
  [keyTitle(key), visit.at(`/keys/${key.id}`)],
  ['API keys', visit.at('/keys')],
];

export const keyTitle = ({ label, hint }: Pick<KeyUsage, 'label' | 'hint'>): string => truncate(label || hint, 60);

/** Returns a key with its name in quotation marks, for a title or a button. */
export const quotedKey = (key: Pick<KeyUsage, 'label' | 'hint'>): string => `API key “${keyTitle(key)}”`;

/** Returns the last use of a key, or its creation: a new key may not be deployed yet. */
export const getLastUse = ({ lastUsedAt, createdAt }: KeyUsage): number => (lastUsedAt ?? createdAt).getTime();

/** Returns whether a valid key was not used for `unusedDays`. */
export const isUnused = (key: KeyUsage, now: Date): boolean =>
  key.state === 'valid' && now.getTime() - getLastUse(key) > unusedDays * dayMs;

const unused = badge('plain', 'Unused');

/** Renders the addresses from which a key may be used. */
export const allowedAddresses = ({ allowedAddresses: ranges }: Pick<KeyUsage, 'allowedAddresses'>): Html =>
  ranges.length === 0 ? html`Any` : chips(ranges);

/** Renders the calls of a key in the last day, which are counted in intervals. */
export const recentUses = ({ uses24h }: KeyUsage): Html =>
  html`${uses24h.toLocaleString('en')} <span class="quiet">Counted within a minute</span>`;

/** Renders the last call of a key. One after the key has ended was denied. */
export function lastUse({ lastUsedAt, revokedAt, expiresAt, creatorLeftAt }: KeyUsage): Html {
  const ends = [revokedAt, expiresAt, creatorLeftAt].filter((end) => end !== null);
  const isDenied = lastUsedAt !== null && ends.some((end) => end <= lastUsedAt);
  return html`${relativeTime(lastUsedAt, 'Never')} ${isDenied ? badge('plain', 'Denied') : nothing}`;
}

/** Returns the columns of a list of keys, or `only` those with the given headings. */
export function keyColumns(visit: MemberVisit, only?: readonly string[]): Column<KeyUsage>[] {
  const now = visit.console.now();
  const columns: Column<KeyUsage>[] = [
    {
      heading: 'Key',
      main: true,
      cell: (key) =>
        html`<a href="${visit.at(`/keys/${key.id}`)}">${keyName(key)}</a>
          ${key.number === null ? nothing : html`<span class="quiet regular">Key ${key.number}</span>`}
          ${key.label === '' ? nothing : html`<br>${keyHintCell(key)}`}`,
    },
    { heading: 'Status', whenNarrow: 'beside', cell: (key) => renderStatus(key, now) },
    { heading: 'Creator', whenNarrow: 'hidden', cell: ({ creatorName }) => displayName(creatorName) },
    { heading: 'Scopes', whenNarrow: 'hidden', cell: ({ scopes }) => chips(scopes) },
    {
      heading: 'Last used',
      cell: (key) => html`${lastUse(key)} ${isUnused(key, now) ? unused : nothing}`,
    },
    {
      heading: 'Calls in 24\u00a0h',
      numeric: true,
      whenNarrow: 'hidden',
      cell: ({ uses24h }) => uses24h.toLocaleString('en'),
    },
    {
      heading: 'Expires',
      cell: ({ expiresAt }) =>
        expiresAt === null ? html`<span class="quiet">Never</span>` : dayOrTime(expiresAt, now),
    },
  ];
  return only === undefined ? columns : columns.filter(({ heading }) => only.includes(heading));
}
