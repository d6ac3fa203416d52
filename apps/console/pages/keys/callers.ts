import type { KeyCaller } from '#domain/keys/usage.ts';
import { table } from '../../components/table.ts';
import { relativeTime } from '../../components/time.ts';
import { type Html, html } from '../../web/html.ts';

/** Addresses that a key was called from, by its last 1,000 uses. */
export const callersTable = (callers: readonly KeyCaller[]): Html =>
  table<KeyCaller>({
    caption: 'Addresses of its last calls',
    columns: [
      { heading: 'Address', main: true, cell: ({ address }) => html`<code>${address ?? 'unknown'}</code>` },
      { heading: 'Last call', cell: ({ lastUsedAt }) => relativeTime(lastUsedAt) },
      { heading: 'Of its last 1,000 calls', numeric: true, cell: ({ uses }) => uses.toLocaleString('en') },
    ],
    rows: callers,
  });
