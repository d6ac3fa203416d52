import { type KeyUsage, usesCounted } from '#domain/keys/usage.ts';
import { displayName, truncate } from '../../components/display-name.ts';
import { badge } from '../../components/notice.ts';
import { keyStatus } from '../../components/status.ts';
import type { Column } from '../../components/table.ts';
import { relativeTime, time } from '../../components/time.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** Days before its expiry from which a key is pointed out. */
const soonDays = 14;
/** Days without a use from which a key is called unused. */
const unusedDays = 30;
const dayMs = 86_400_000;

/** What a person called a key; its hint when they called it nothing. */
export const keyName = ({ label, hint }: Pick<KeyUsage, 'label' | 'hint'>): Html =>
  label === '' ? html`<code class="hint">${hint}</code>` : displayName(label);

export const keyHintCell = ({ hint }: Pick<KeyUsage, 'hint'>): Html => html`<code class="hint">${hint}</code>`;

/** The status of a key at `now`. */
export const statusOf = (key: KeyUsage, now: Date): Html => keyStatus(key, isExpiringSoon(key, now));

export const isExpiringSoon = ({ expiresAt, state }: KeyUsage, now: Date): boolean =>
  state === 'live' && expiresAt !== null && expiresAt.getTime() - now.getTime() < soonDays * dayMs;

/** A key's name in a title. */
export const keyTitle = ({ label, hint }: Pick<KeyUsage, 'label' | 'hint'>): string => truncate(label || hint, 60);

/** A live key that nobody has used for long, or ever since it was made long ago. */
export function isUnused({ lastUsedAt, createdAt, state }: KeyUsage, now: Date): boolean {
  return state === 'live' && now.getTime() - (lastUsedAt ?? createdAt).getTime() > unusedDays * dayMs;
}

export const usesText = (uses: number): string =>
  uses > usesCounted ? `over ${usesCounted.toLocaleString('en')}` : uses.toLocaleString('en');

/** When a key stops by itself. */
export function expiryCell({ expiresAt }: KeyUsage): Html {
  return expiresAt === null ? html`<span class="quiet">never</span>` : time(expiresAt);
}

/** The columns of a list of keys; `only` those, when given. */
export function keyColumns(visit: MemberVisit, only?: readonly string[]): Column<KeyUsage>[] {
  const now = visit.console.now();
  const columns: Column<KeyUsage>[] = [
    {
      heading: 'Key',
      main: true,
      cell: (key) =>
        html`<a href="${visit.at(`/keys/${key.id}`)}">${keyName(key)}</a>${key.label === '' ? nothing : html`<br>${keyHintCell(key)}`}`,
    },
    { heading: 'State', cell: (key) => statusOf(key, now) },
    { heading: 'Made by', cell: ({ makerName }) => displayName(makerName) },
    { heading: 'Scopes', cell: ({ scopes }) => scopeList(scopes) },
    {
      heading: 'Last use',
      cell: (key) =>
        html`${relativeTime(key.lastUsedAt, 'never')}${isUnused(key, now) ? html` ${badge('plain', 'unused')}` : nothing}`,
    },
    { heading: 'Uses in 24\u00a0h', numeric: true, cell: ({ uses24h }) => usesText(uses24h) },
    { heading: 'Expires', cell: expiryCell },
  ];
  return only === undefined ? columns : columns.filter(({ heading }) => only.includes(heading));
}

/** Scopes, one a line. */
export const scopeList = (scopes: readonly string[]): Html =>
  html`<ul class="plain-list">${scopes.map((scope) => html`<li>${scope}</li>`)}</ul>`;
