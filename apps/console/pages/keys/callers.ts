import type { KeyCaller } from '#domain/keys/list.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { table } from '../../components/table.ts';
import { relativeTime } from '../../components/time.ts';

/** Renders the IP addresses that used a key, by its last 1,000 calls. */
export const callersTable = (callers: readonly KeyCaller[]): Html =>
  table<KeyCaller>({
    caption: 'IP addresses of recent calls',
    columns: [
      { heading: 'IP address', main: true, cell: ({ address }) => html`<code>${address ?? 'Unknown'}</code>` },
      { heading: 'Last call', cell: ({ lastUsedAt }) => relativeTime(lastUsedAt) },
      { heading: 'Calls (of the last 1,000)', numeric: true, cell: ({ uses }) => uses.toLocaleString('en') },
    ],
    rows: callers,
  });
