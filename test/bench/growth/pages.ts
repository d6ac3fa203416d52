import type { FilledOrganization } from './fill-organization.ts';

/**
 * A page that is measured in an organization with few and in one with many rows. `of` names the
 * rows.
 */
export interface MeasuredPage {
  name: string;
  of: 'lines' | 'deliveries';
  /** Path after `/o/<organization>`. */
  path: (organization: FilledOrganization) => string;
}

const lines = (name: string, path: MeasuredPage['path']): MeasuredPage => ({ name, of: 'lines', path });
const deliveries = (name: string, path: MeasuredPage['path']): MeasuredPage => ({ name, of: 'deliveries', path });
const ofWebhook = (rest: string) => (organization: FilledOrganization) => `/webhooks/${organization.webhookId}${rest}`;

/** Every page whose list grows. Add a row for a new one. */
export const pages: readonly MeasuredPage[] = [
  lines('activity, newest', () => '/activity'),
  lines('activity, from the middle', ({ line }) => `/activity?at=older_${line.at}_${line.id}`),
  lines('activity of a key', ({ keyId }) => `/activity?key=${keyId}`),
  lines('activity of a person', ({ personId }) => `/activity?person=${personId}`),
  lines('activity, a rare read', () => '/activity?action=api.getFirmOutcomes'),
  lines('activity, refused', () => '/activity?result=denied'),
  lines('activity, of people', () => '/activity?result=completed'),
  lines('activity, refused of a key', ({ keyId }) => `/activity?key=${keyId}&result=denied`),
  lines('activity, two that never meet', ({ keyId }) => `/activity?key=${keyId}&action=role.change`),
  lines('activity, a rare read of a key', ({ keyId }) => `/activity?key=${keyId}&action=api.getFirmOutcomes`),
  lines('activity, what a person did', ({ personId }) => `/activity?person=${personId}&result=completed`),
  lines('one line', ({ line }) => `/activity/${line.id}`),
  lines('API keys', () => '/keys'),
  lines('one API key', ({ keyId }) => `/keys/${keyId}`),
  lines('overview', () => ''),
  lines('CSV, first byte', () => '/activity/csv'),
  lines('CSV of a rare read, first byte', () => '/activity/csv?action=api.getFirmOutcomes'),
  deliveries('webhooks', () => '/webhooks'),
  deliveries('one webhook', ofWebhook('')),
  deliveries('deliveries, newest', ofWebhook('/deliveries')),
  deliveries('deliveries, exhausted', ofWebhook('/deliveries?status=failed')),
  deliveries('one webhook, 30 days of health', ofWebhook('?health=30d')),
  deliveries('deliveries of a type that none is of', ofWebhook('/deliveries?type=seat.ended')),
  deliveries('one delivery', (organization) => ofWebhook(`/deliveries/${organization.eventId}`)(organization)),
  deliveries('one attempt', (organization) =>
    ofWebhook(`/deliveries/${organization.eventId}/attempts/1`)(organization),
  ),
];
