import type { WebhookDetails } from '#domain/webhooks/list.ts';
import { badge } from '../../components/notice.ts';
import { table } from '../../components/table.ts';
import { relativeTime, time } from '../../components/time.ts';
import { type Html, html } from '../../web/html.ts';

type Secret = WebhookDetails['secrets'][number];

/**
 * The life of a webhook's secrets, never their values. One whose overlap is over signs nothing, and
 * is erased soon.
 */
export function secretsTable(secrets: readonly Secret[], now: Date): Html {
  const signing = secrets.filter(({ validUntil }) => validUntil === null || new Date(validUntil) > now);
  if (signing.length === 0) return html`<p>There are none: they were erased with the webhook.</p>`;
  return table<Secret>({
    caption: 'Signing secrets',
    rows: signing,
    columns: [
      {
        heading: 'Secret',
        main: true,
        cell: ({ validUntil }) => (validUntil === null ? badge('good', 'newest') : badge('plain', 'replaced')),
      },
      { heading: 'Made', cell: ({ createdAt }) => time(createdAt) },
      {
        heading: 'Signs',
        cell: ({ validUntil }) =>
          validUntil === null ? 'until it is replaced' : html`until ${time(validUntil)} (${relativeTime(validUntil)})`,
      },
    ],
  });
}
