import type { SecretPeriod } from '#domain/webhooks/list.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { badge } from '../../components/notice.ts';
import { table } from '../../components/table.ts';
import { relativeTime, time } from '../../components/time.ts';

/** Returns a table of the secrets that sign now, without their values. */
export function secretsTable(secrets: readonly SecretPeriod[], now: Date): Html {
  const signing = secrets.filter(({ validUntil }) => validUntil === null || new Date(validUntil) > now);
  if (signing.length === 0) return html`<p>No signing secrets. They were deleted with the webhook.</p>`;
  return table<SecretPeriod>({
    caption: 'Signing secrets',
    rows: signing,
    columns: [
      {
        heading: 'Secret',
        main: true,
        cell: ({ validUntil }) => (validUntil === null ? badge('good', 'Current') : badge('plain', 'Replaced')),
      },
      { heading: 'Created', cell: ({ createdAt }) => time(createdAt) },
      {
        heading: 'Signs',
        cell: ({ validUntil }) =>
          validUntil === null ? 'Until replaced' : html`Until ${time(validUntil)} (${relativeTime(validUntil)})`,
      },
    ],
  });
}
