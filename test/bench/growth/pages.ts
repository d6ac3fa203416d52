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
  lines('audit log, newest', () => '/audit-log'),
  lines('audit log, from the middle', ({ line }) => `/audit-log?at=older_${line.at}_${line.id}`),
  lines('audit log of a key', ({ keyId }) => `/audit-log?key=${keyId}`),
  lines('audit log of a person', ({ personId }) => `/audit-log?person=${personId}`),
  lines('audit log, a rare read', () => '/audit-log?action=api.getFirmOutcomes'),
  lines('audit log, rejected', () => '/audit-log?result=denied'),
  lines('audit log, of people', () => '/audit-log?result=completed'),
  lines('audit log, rejected of a key', ({ keyId }) => `/audit-log?key=${keyId}&result=denied`),
  lines('audit log, two that never meet', ({ keyId }) => `/audit-log?key=${keyId}&action=role.change`),
  lines('audit log, a rare read of a key', ({ keyId }) => `/audit-log?key=${keyId}&action=api.getFirmOutcomes`),
  lines('audit log, what a person did', ({ personId }) => `/audit-log?person=${personId}&result=completed`),
  lines('one line', ({ line }) => `/audit-log/${line.id}`),
  lines('API keys', () => '/keys'),
  lines('one API key', ({ keyId }) => `/keys/${keyId}`),
  lines('overview', () => ''),
  lines('CSV, first byte', () => '/audit-log/csv'),
  lines('CSV of a rare read, first byte', () => '/audit-log/csv?action=api.getFirmOutcomes'),
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
